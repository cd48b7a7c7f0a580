# timeout: 300
# Keepers over several nodes (--keep-state) that are lost or stand still: another takes over what its node's ranks have, and no restart waits for one that does not answer.
# parts: keep
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
python=/usr/bin/python3
$python -c "import numpy" 2>/dev/null || skip "NumPy is not installed"
unshare -u true 2>/dev/null || skip 'a host of its own name cannot be made here (unshare -u)'
# A node is a name of this machine, as its own processes see it.
cat >shell.sh <<'SH2'
#!/bin/bash
host=$1
shift
exec unshare -u bash -c 'hostname "$0"; exec bash -c "$1"' "$host" "$*"
SH2
chmod +x shell.sh
gate=$PWD/gate
# begin_or_end KILLS OPTIONS...: until a commit of step 6 is on two nodes, and rank 0 waits there; false where the run has ended before.
begin_or_end() {
    rm -f "$gate" "$gate.held"
    start env "HOLD=6:$gate" "KILL=$1" "$MUSTER" run --verbose -H node1:2,node2:2,node3:2 --remote-shell "$PWD/shell.sh" --heartbeat 1s --keep-state node,neighbour \
        "${@:2}" -- $python "$MUSTER_SOURCE_DIR/tests/cli/programs/kept_shards.py"
    wait_until 150 is_on_two_nodes_or_over || exit 1
    told 'commit 6 is on two nodes'
}
is_on_two_nodes_or_over() { told 'commit 6 is on two nodes' || ! kill -0 "$PID" 2>/dev/null; }
begin() {
    begin_or_end "$@" || {
        fail "commit 6 is on two nodes: it is not"
        exit 1
    }
}
# keeper_on NODE: its process, by the name of the machine that it sees.
keeper_on() {
    local pid
    for pid in $(pgrep -x muster-keeper); do
        grep -zq "MUSTER_TEST_MARK=$MUSTER_TEST_MARK" "/proc/$pid/environ" || continue
        [ "$(nsenter -t "$pid" -u hostname)" != "$1" ] || echo "$pid"
    done
}
begins() { sed -n "s/^rank [0-9]* of 6 in generation $1 begins at step \([0-9]*\)/\1/p" "$OUT" | sort -u | paste -sd' '; }
ends() { grep -c '^rank [0-9] ends with ' "$OUT"; }
told() { grep -q "$1" "$ERR"; }

# One is killed: another has the memory of the ranks there, which go on, and after a restart all have what they committed.
begin 2:9 --timeout 120s --max-restarts 1
kill -9 "$(keeper_on node1)"
wait_until 60 told 'note: --keep-state: the keeper on node1 was lost: .*; another holds what ranks there commit'
touch "$gate"
expect_end 0
expect_matches stdout '^rank 0 of 6 in generation 1 begins at step [89]$' '^rank 1 of 6 in generation 1 begins at step [89]$'
expect_equal "$(begins 1 | wc -w)" 1 'steps at which ranks begin again'
expect_equal "$(ends)" 6 'ranks that have ended well'
expect_nothing_left

# One stands still: it is known after --heartbeat and 10 s, and the restart does not wait for it.
begin 2:8 --timeout 120s --max-restarts 1
stopped=$(keeper_on node1)
kill -STOP "$stopped"
touch "$gate"
expect_end 0
expect_matches stdout "^rank 0 of 6 in generation 1 begins at step [78]\$"
expect_equal "$(begins 1 | wc -w)" 1 "steps at which ranks begin again"
expect_equal "$(ends)" 6 'ranks that have ended well'
expect_nothing_left

# The process that leads them stands still: the restart goes on without, and --timeout is kept.
begin 2:8 --timeout 120s --max-restarts 1
kill -STOP "$(pgrep -x -P "$PID" muster-keepers)"
touch "$gate"
expect_end 0
expect_contains stderr 'has not answered for 15 s; what ranks had committed is lost, and they begin from what they find on disk'
expect_equal "$(begins 1)" 0 'step at which ranks begin again'
expect_nothing_left
# A busy machine does not get that far within 15 s: then the run has more. It is to end while it waits these 15 s for an answer.
for limit in 15 45 135; do
    began=$SECONDS
    ! begin_or_end 2:8 --timeout ${limit}s --max-restarts 1 || break
    expect_end 124
done
is_near_its_end() { [ $((SECONDS - began)) -ge $((limit - 10)) ]; }
kill -STOP "$(pgrep -x -P "$PID" muster-keepers)"
wait_until 150 is_near_its_end
touch "$gate"
expect_end 124
expect_contains stderr '--timeout'
expect_nothing_left

# One is killed before the ranks of its node have found their memory: these train on with the others, and keep nothing.
rm -f go
start env HOLD=6:/ "$MUSTER" run --verbose -H node1:2,node2:2,node3:2 --remote-shell "$PWD/shell.sh" --heartbeat 1s --timeout 120s --max-restarts 1 --keep-state node -- \
    sh -c 'touch up.$RANK; until [ -e go ]; do sleep 0.05; done; exec "$@"' - $python "$MUSTER_SOURCE_DIR/tests/cli/programs/kept_shards.py"
wait_until 60 test -e up.0
kill -9 "$(keeper_on node1)"
wait_until 60 told 'what ranks on node1 commit is no longer held'
touch go
expect_end 0
expect_equal "$(ends)" 6 'ranks that have ended well'
expect_contains stdout 'what this rank commits does not outlive its process'
expect_nothing_left
