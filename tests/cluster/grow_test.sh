# timeout: 300
# Ranks on several nodes follow the hosts that come and go (--host-discovery-script) in place, by a remote shell.
. "$(dirname "$0")/cluster_lib.sh"
start_elastic_cluster 3 2
cp "$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_hosts.py" "$work/" && chmod a+r "$work/elastic_hosts.py"
serve_remote_shell node1 node2 node3
tell() { printf '%s\n' "$@" >"$work/hosts.new" && mv "$work/hosts.new" "$work/hosts"; }
said() { grep -q "$1" "$OUT"; }
begin() { # HOST... -- OPTIONS...
    local hosts=()
    while [ "$1" != -- ]; do hosts+=("$1") && shift; done
    rm -f "$work/end"
    tell "${hosts[@]}"
    start as_user prefix/bin/muster run --host-discovery-script 'cat hosts' --heartbeat 2s --timeout 100s "${@:2}" -- /usr/bin/python3 elastic_hosts.py
}
# goes_on MEMBER RANK SIZE GENERATION
goes_on() { wait_until 40 said "^member $1, pid [0-9]*: rank $2 of $3 in generation $4\$" || exit 1; }
finish() {
    : >"$work/end"
    expect_end 0
    expect_equal "$(grep -c "^member [0-9]* ends: rank [0-9]* of $1, " "$OUT")" "$1" 'ranks at the end'
    local count
    count=$(sed -n 's/^member .* ends: .*, \([0-9]*\) samples$/\1/p' "$OUT" | sort -u)
    [ -n "${lossy-}" ] || expect_equal "$(sed -n 's/^sample //p' "$OUT" | sort -n | paste -sd' ')" "$(seq -s' ' 0 $((count - 1)))" 'samples, each once'
    expect_nothing_left
}

# A host comes, the first one goes, and comes back; those that stay are the same processes.
begin node1:1 node2:1 -- -n 2 --min-np 1 --max-np 4 --output-dir out
goes_on 1 1 2 0
tell node1:1 node2:1 node3:2
goes_on 3 3 4 1
goes_on 0 0 4 1
tell node2:1 node3:2
goes_on 1 0 3 2
tell node2:1 node3:2 node1:1
goes_on 4 3 4 3
finish 4
expect_contains stderr 'generation 1: 4 ranks in place: 2 come in on node3; spare 0 is rank 2; spare 1 is rank 3' \
    'generation 2: 3 ranks in place: rank 0 on node1 is gone' 'generation 3: 4 ranks in place: 1 comes in on node1'
for member in 0 1 2 3 4; do expect_equal "$(sed -n "s/^member $member, pid \([0-9]*\):.*/\1/p" "$OUT" | sort -u | wc -l)" 1 "processes of member $member"; done
expect_true test -s "$work/out/spare.01/stdout"

# From one node to several, and all that began are gone in the end.
begin node1:1 -- -n 1 --min-np 1 --max-np 3
goes_on 0 0 1 0
tell node1:1 node2:1 node3:1
goes_on 2 2 3 1
tell node2:1 node3:1
goes_on 1 0 2 2
finish 2

# The launcher is killed: nothing is left of what it has started later either.
begin node1:1 -- -n 1 --min-np 1 --max-np 2
goes_on 0 0 1 0
tell node1:1 node2:1
goes_on 1 1 2 1
starter=$("$cluster" on head pgrep -of 'bin/muster remote')
"$cluster" on head kill -9 "$("$cluster" on head ps -o ppid= -p "$starter" | tr -d ' ')"
expect_end 137
expect_nothing_left 20

# A host to which the remote shell does not come (it hangs: the sleep is the fault) has its slot free again after --start-timeout.
cat >"$work/hanging_rsh" <<'END'
#!/bin/bash
[ "$1" = node8 ] && exec sleep 1000
exec "${0%/*}/node_rsh.py" "$@"
END
chmod a+rx "$work/hanging_rsh"
MUSTER_REMOTE_SHELL=$work/hanging_rsh begin node1:1 node2:1 -- -n 2 --min-np 1 --max-np 3 --start-timeout 15s --blacklist-cooldown-range 1,1
goes_on 1 1 2 0
tell node1:1 node2:1 node8:1
wait_until 60 grep -q 'spare 0 on node8 could not be started; another takes its place in 1 s' "$ERR" || exit 1
tell node1:1 node2:1 node3:1
goes_on 2 2 3 1
finish 3
expect_contains stderr 'the rank that was started on node8 has not come to init() within 15 s (--start-timeout): killing it'

# A host that does not answer keeps nobody waiting; one that came later is lost, cools down, and comes back.
lossy=1
begin node1:1 node2:1 -- -n 2 --min-np 1 --max-np 3 --blacklist-cooldown-range 1,1
goes_on 1 1 2 0
tell node1:1 node2:1 node9:1
wait_until 40 grep -q 'spare 0 on node9 could not be started; another takes its place in 1 s' "$ERR" || exit 1
tell node1:1 node2:1 node3:1
wait_until 40 said 'rank 2 of 3 in generation 1$' || exit 1
"$cluster" link node3 down
wait_until 60 said 'rank 0 of 2 in generation 2$' || exit 1
"$cluster" link node3 up
wait_until 60 said 'rank 2 of 3 in generation 3$' || exit 1
finish 3
expect_contains stderr 'note: no agent of muster came from node9' 'lost rank 2 on node3; 2 ranks go on in place'
expect_not_contains stderr 'error: '
