# timeout: 120
# Hosts that come and go (--host-discovery-script), on this machine, whose slots a script tells: who is waited for, what the ranks are asked for, which slots cool down, what ends the run.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
host=$(hostname)
cat >hosts.sh <<'SH'
#!/bin/sh
[ ! -e hang ] || { : >hangs; exec sleep 1000; }
[ ! -e fault ] || { echo 'no server' >&2; exit 3; }
[ ! -e flaps ] || { # another answer each time
    n=$(cat asked)
    echo $((n + 1)) >asked
    [ $((n % 3)) = 0 ] || { [ $((n % 3)) = 1 ] && echo "$(hostname):1"; exit 0; }
    printf '%s:3\nlocalhost:1\n' "$(hostname)"
    exit 0
}
cat hosts
SH
chmod +x hosts.sh
mkfifo fifo
# A program that saves at SIGUSR1, and is done once there is a file `end`.
cat >rank.sh <<'SH'
trap 'exit 75' USR1
echo "g$MUSTER_GENERATION life $MUSTER_LIFE rank $RANK of $WORLD_SIZE"
[ "$RANK.$MUSTER_GENERATION" != "${1-}" ] || exit 3
until [ -e end ]; do read -r -t 0.02 <>fifo; done
exit 0
SH
run=("$MUSTER" run --host-discovery-script ./hosts.sh)
tell() { printf '%s\n' "$@" >hosts.new && mv hosts.new hosts; }
said() { grep -qx "$1" "$OUT"; }

# More slots, fewer, and a script that fails for a while: the ranks are asked to save, and go on with what there is.
tell "$host:2"
start "${run[@]}" -n 2 --min-np 1 --max-np 3 --output-dir out -- bash rank.sh
wait_until 20 said 'g0 life 0 rank 1 of 2'
tell "$host:4" "$host:4"
wait_until 20 said 'g1 life 1 rank 2 of 3'
tell "$host"
wait_until 20 said 'g2 life 2 rank 0 of 1'
: >fault
wait_until 20 grep -q 'ended with code 3: no server; the hosts stay as they were meanwhile' "$ERR"
rm fault
tell "$host:2"
wait_until 20 said 'g3 life 3 rank 1 of 2'
: >hang
wait_until 20 test -e hangs
: >end
expect_end 0
expect_contains stderr 'muster: note: generation 0: 1 more slot can be used: SIGUSR1 to 2 ranks; once all have saved and ended with 75, the next generation begins' \
    'generation 1: 2 of the slots in use are gone: SIGUSR1 to 3 ranks' 'muster: note: generation 3 begins, as hosts come or go'
expect_equal "$(grep -c 'no server' "$ERR")" 1 'how often the fault is told'
expect_equal "$(/usr/bin/python3 -c 'import json; print([(g["kind"], g["ranks"]) for g in json.load(open("out/run.json"))["generations"]])')" \
    "[('hosts', 2), ('hosts', 3), ('hosts', 1), ('last', 2)]" generations
expect_nothing_left
rm hang hangs end

# A slot whose rank failed cools down: the others go on, and ask it back.
tell "$host:2"
start "${run[@]}" -n 2 --min-np 1 --blacklist-cooldown-range 1 60 -- bash rank.sh 1.0
wait_until 20 said 'g1 life 1 rank 0 of 1'
wait_until 20 said 'g2 life 2 rank 1 of 2'
: >end
expect_end 0
expect_contains stderr 'rank 1 on' 'exited with code 3' 'generation 1: 1 more slot can be used: SIGUSR1 to 1 rank'
rm end

# Too few slots are waited for, at the start and later.
: >hosts
start "${run[@]}" -n 2 -- sh -c 'echo "$RANK of $WORLD_SIZE"'
wait_until 20 grep -q 'note: waiting for hosts, 00:10:00 at most (--elastic-timeout): 2 slots needed, 0 usable; no host' "$ERR"
tell "$host:5"
expect_end 0
expect_equal "$(sort "$OUT" | paste -sd,)" '0 of 2,1 of 2' 'no more than -n'
: >hosts
expect_exit 124 "${run[@]}" -n 2 --elastic-timeout 1s -- true
expect_contains stderr 'error: waited for hosts for 1 s (--elastic-timeout): 2 slots needed, 0 usable'
start "${run[@]}" -n 2 --elastic-timeout 0 -- true
wait_until 20 grep -q 'note: waiting for hosts: 2 slots needed, 0 usable' "$ERR"
tell "$host:2"
expect_end 0
: >"$OUT"
start "${run[@]}" -n 2 --elastic-timeout 1s -- bash rank.sh
wait_until 20 said 'g0 life 0 rank 1 of 2'
tell "$host:1"
expect_end 124
expect_contains stderr "2 slots needed, 1 usable; $host: 1 slot"
expect_nothing_left
# More slots than ranks, and nobody has said how far the run may grow.
tell "$host:2"
start "${run[@]}" -n 2 -- bash rank.sh
wait_until 20 said 'g0 life 0 rank 1 of 2'
tell "$host:3"
wait_until 20 grep -q 'there are 3 slots, and this run has 2 ranks at most; start it with --max-np 3 to let it grow' "$ERR"
: >end
expect_end 0
expect_not_contains stderr SIGUSR1
rm end
# Below --min-np, and up again; a host that comes and goes, and is another each time that the script is asked.
tell "$host:2"
start "${run[@]}" -n 2 -- bash rank.sh
wait_until 20 said 'g0 life 0 rank 1 of 2'
tell "$host:1"
wait_until 20 grep -q 'waiting for hosts' "$ERR"
tell "$host:2"
wait_until 20 said 'g1 life 1 rank 1 of 2'
echo 1 >asked
: >flaps
wait_until 60 grep -q '^g4 ' "$OUT"
tell "$host:2"
: >end
rm flaps
expect_end 0
expect_nothing_left
rm end
# Without -n as many as there are.
tell "$host:3"
expect_exit 0 "${run[@]}" -q --min-np 2 -- sh -c 'echo "$RANK of $WORLD_SIZE"'
expect_equal "$(sort "$OUT" | paste -sd,)" '0 of 3,1 of 3,2 of 3' ranks
tell "$host"
expect_exit 0 "${run[@]}" -q --slots-per-host 2 -- sh -c 'echo "$RANK of $WORLD_SIZE"'
expect_equal "$(sort "$OUT" | paste -sd,)" '0 of 2,1 of 2' 'slots of hosts that have none'

# A script that never worked, and limits.
expect_exit 2 "$MUSTER" run --host-discovery-script ./no-such -n 1 -- true
expect_contains stderr 'error: --host-discovery-script ./no-such ended with code 127' 'try it by itself'
expect_exit 2 "$MUSTER" run --host-discovery-script 'echo a:b' -n 1 -- true
expect_contains stderr 'no number of slots; print HOST or HOST:SLOTS'
tell "$host:1"
expect_exit 11 "${run[@]}" -n 1 --reset-limit 1 --blacklist-cooldown-range=1,1 -- sh -c 'exit $((10 + MUSTER_GENERATION))'
expect_contains stderr 'no restart after generation 1: this was restart 1 of 1 (--reset-limit)'
expect_exit 10 "${run[@]}" -n 1 --max-restarts 0 -- sh -c 'exit 10'
expect_exit 2 "$MUSTER" run --host-discovery-script 'echo localhost slots=2' -n 1 -- true
expect_contains stderr 'echo localhost slots=2 printed a wrong line: this character cannot be part of a host name; print HOST or HOST:SLOTS; try it by itself'
for wrong in '--max-np 3' '--elastic-timeout 9' '--blacklist-cooldown-range 1,2'; do
    expect_exit 2 "$MUSTER" run $wrong -- true
    expect_contains stderr 'give --host-discovery-script CMD as well'
done
for wrong in '-H a' '--spares 1' '--max-np 1 -n 2' '--min-np 3 -n 2' '--blacklist-cooldown-range 9,3' '--blacklist-cooldown-range 9' '--blacklist-cooldown-range 0,3'; do
    expect_exit 2 "${run[@]}" $wrong -- true
done
