# timeout: 400
# Ranks of an elastic program follow the hosts that come and go (--host-discovery-script) in place, on this machine, whose slots a script tells.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || skip "NumPy is not installed"
[ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip "the Python package is not built"
host=$(hostname)
program="$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_hosts.py"
tell() { printf '%s\n' "$@" >hosts.new && mv hosts.new hosts; }
said() { grep -q "$1" "$OUT"; }
noted() { grep -q "$1" "$ERR"; }
run=("$MUSTER" run --host-discovery-script 'cat hosts' --timeout 100s)
begin() { # HOSTS OPTIONS...
    rm -f end
    tell "$1"
    start "${run[@]}" "${@:2}" -- $python "$program"
}
# goes_on MEMBER RANK SIZE GENERATION
goes_on() { wait_until 60 said "^member $1, pid [0-9]*: rank $2 of $3 in generation $4\$" || exit 1; }
pids_of() { sed -n "s/^member $1, pid \([0-9]*\):.*/\1/p" "$OUT" | sort -u; }
# finish SIZE: the end, with ranks each of which has had its samples once.
finish() {
    : >end
    expect_end 0
    expect_equal "$(grep -c "^member [0-9]* ends: rank [0-9]* of $1, " "$OUT")" "$1" 'ranks at the end'
    local count
    count=$(sed -n 's/^member .* ends: .*, \([0-9]*\) samples$/\1/p' "$OUT" | sort -u)
    expect_equal "$(sed -n 's/^sample //p' "$OUT" | sort -n | paste -sd' ')" "$(seq -s' ' 0 $((count - 1)))" 'samples, each once'
    expect_nothing_left
}

# Two slots more, one fewer.
begin "$host:2" -n 2 --min-np 1 --max-np 4 --output-dir out
goes_on 1 1 2 0
tell "$host:4"
goes_on 3 3 4 1
goes_on 0 0 4 1
tell "$host:3"
goes_on 2 2 3 2
goes_on 0 0 3 2
finish 3
expect_contains stderr "muster: note: generation 1: 4 ranks in place: 2 come in on $host; spare 0 is rank 2; spare 1 is rank 3" \
    "muster: note: generation 2: 3 ranks in place: rank 3 on $host is gone"
for member in 0 1 2 3; do expect_equal "$(pids_of $member | wc -l)" 1 "processes of member $member"; done
expect_matches stdout '^member 0 hears 2$' '^member 0 hears 1$'
expect_not_contains stderr SIGUSR1 error

# Who comes late, or not: one that never comes to init() and one that ends there keep nobody waiting, and their slots cool down; no more than --max-np; one that
# fails as it gets the state is a lost rank, whose slot is asked back.
begin "$host:2" -n 2 --min-np 1 --max-np 3
goes_on 1 1 2 0
tell "$host:9"
goes_on 2 2 3 1
finish 3
HANG=2 begin "$host:2" -n 2 --min-np 1 --max-np 4 --start-timeout 15s --blacklist-cooldown-range 1,1
goes_on 1 1 2 0
tell "$host:4"
goes_on 3 3 4 2 # by a second process
finish 4
expect_contains stderr "the rank that was started on $host has not come to init() within 15 s (--start-timeout): killing it" \
    "spare 0 on $host was killed by signal 9 (SIGKILL); another takes its place in 1 s" 'generation 1: 3 ranks in place: 1 comes in'
DIE=3 begin "$host:2" -n 2 --min-np 1 --max-np 4 --blacklist-cooldown-range 1,1
goes_on 1 1 2 0
tell "$host:4"
goes_on 3 3 4 '[12]' # the second process may still come in with the other newcomer
finish 4
expect_contains stderr "spare 1 on $host exited with code 3; another takes its place in 1 s"
DIE_IN_SYNC=2 begin "$host:2" -n 2 --min-np 1 --max-np 3 --blacklist-cooldown-range 1,1
goes_on 1 1 2 0
tell "$host:3"
goes_on 3 2 3 3
finish 3
expect_contains stderr 'rank 2 on' '(member 2) was killed by signal 9 (SIGKILL); 2 ranks go on in place' 'generation 3: 3 ranks in place: 1 comes in'

# Nobody leaves where too few would be left, or nobody with the state: the others come first.
begin "$host:2" -n 2 --min-np 2 --max-np 2
goes_on 1 1 2 0
tell localhost:1 "$host:1"
goes_on 2 1 2 1
tell localhost:2
goes_on 3 1 2 2
finish 2

# No more generations than --reset-limit allows.
begin "$host:2" -n 2 --min-np 1 --max-np 4 --reset-limit 1
goes_on 1 1 2 0
tell "$host:3"
goes_on 2 2 3 1
tell "$host:1"
expect_end 125
expect_contains stderr 'error: generation 1: the others cannot go on in place: this was generation 1, the last one that --reset-limit 1 allows'
expect_nothing_left
