# timeout: 300
# A rank is lost while the others go on without another one: in each phase, rank 0 or a newcomer too. Nobody waits for it for ever.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || skip "NumPy is not installed"
[ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip "the Python package is not built"
phases="$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_phases.py"

# dies DEATHS RANKS MEMBER...: these members end well, as so many ranks.
dies() {
    rm -f pid.*
    expect_exit 0 env DIE="$1" "$MUSTER" run -q -n 4 --slots-per-node 4 --min-np 2 --timeout 60s -- $python "$phases"
    expect_survivors "$2" 10 "${@:3}"
}

dies 'step:1:0 reform:2:0' 2 0 3 # one that has said that it comes
dies 'step:1:0 reform:0:0' 2 2 3
for phase in restore reset sync begin; do
    dies "step:1:0 $phase:0:1" 2 2 3 # rank 0
    dies "step:1:0 $phase:3:1" 2 0 2
done
dies 'broadcast:0:0' 3 1 2 3 # rank 0 in a broadcast, of the first world and of a later one
dies 'step:1:0 broadcast:0:1' 2 2 3
dies 'sync:0:0 sync:1:1' 2 2 3 # one after the other, before any step

# A newcomer.
for phase in sync begin; do
    rm -f gate
    start env DIE="step:1:0 $phase:4:1" GATE=gate "$MUSTER" run --verbose -n 4 --slots-per-node 5 --min-np 2 --spares 1 --warm-spares --timeout 60s -- $python "$phases"
    wait_until 60 grep -q 'spare 0 on .* waits for the place of a lost rank' "$ERR" && touch gate
    expect_end 0
    expect_contains stderr 'spare 0 is rank 3'
    expect_survivors 3 10 0 2 3
done
# Too few are left.
expect_exit 137 env DIE='step:1:0 sync:2:1 sync:3:1' "$MUSTER" run -n 4 --min-np 2 --timeout 60s -- $python "$phases"
expect_contains stderr 'the others cannot go on in place: 1 rank left, 2 needed (--min-np)'
expect_nothing_left
