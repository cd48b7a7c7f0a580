# Ranks on two hosts over the backend tcp, on a network of their own: their results are right, also while another user holds 300 connections to their ports and opens
# 2,000 a second; a killed rank is named at once, and at the deadline one behind a cut link. Nobody else can join.
# timeout: 120
# serial
. "$(dirname "$0")/lib.sh"
for program in comm_sums comm_victim; do [ -x "$MUSTER_BIN/$program" ] || skip "built without comm"; done
make_hosts
cp "$here/../cluster/node_rsh.py" "$MUSTER_BIN/comm_sums" "$MUSTER_BIN/comm_victim" "$bin/" && chmod -R a+rX "$bin" || exit 1
install -d -o "${uid_of[alice]}" -m 700 "$homes/alice/rsh"
on node alice python3 "$bin/node_rsh.py" serve "$homes/alice/rsh" </dev/null >/dev/null 2>&1 &
wait_until 20 test -S "$homes/alice/rsh/node" || exit 1

# The launcher's own connections go another way than those of the ranks.
as_root_on login ip link add ranks0 type veth peer name ranks0 netns "ms$$-node" || exit 1
as_root_on login sh -c 'ip addr add 10.78.0.1/24 dev ranks0 && ip link set ranks0 up'
as_root_on node sh -c 'ip addr add 10.78.0.2/24 dev ranks0 && ip link set ranks0 up'

run_ranks() { # OPTION... -- PROGRAM...
    on login alice GLOO_SOCKET_IFNAME=ranks0 NODE_RSH_FOLDER="$homes/alice/rsh" MUSTER_LOG=warning timeout 60 "$bin/muster" run -q --engine remote \
        --remote-shell "$bin/node_rsh.py" "$@"
}

expect_exit 0 run_ranks -H login:2,node:2 -- "$bin/comm_sums" tcp
for rank in 0 1 2 3; do expect_matches stdout "^rank $rank: [0-9]+ results are right"; done

# Attacked from the moment when they listen.
run_ranks -H login:1,node:1 -- bash -c "'$bin/comm_victim' collective pause 1 20 tcp" >"$lib_dir/run.out" 2>"$lib_dir/run.err" &
run=$!
wait_until 30 test -e "$common/paused" || fail "the ranks did not start: $(cat "$lib_dir/run.err")"
ports=$(ss_ports=$(ip netns exec "ms$$-login" sh -c 'cat /proc/net/tcp' | awk -v uid="${uid_of[alice]}" '$4 == "0A" && $8 == uid && $2 ~ /^01004E0A:/ { sub(/.*:/, "", $2); print $2 }') &&
    for hex in $ss_ports; do echo "10.78.0.1:$((16#$hex))"; done)
[ -n "$ports" ] || fail 'no rank listens on 10.78.0.1'
mkfifo "$lib_dir/never"
exec 7<>"$lib_dir/never"
on node mallory python3 "$bin/port_caller.py" hold 300 $ports <"$lib_dir/never" >"$lib_dir/held" 2>/dev/null &
wait_until 30 grep -q held "$lib_dir/held"
on node mallory python3 "$bin/port_caller.py" flood 2000 $ports <"$lib_dir/never" >"$lib_dir/flooded" 2>/dev/null &
wait_until 20 grep -q flooding "$lib_dir/flooded"
on login alice touch "$common/go"
end_run 50
expect_equal "$rc" 0 "the exit code of an attacked run: $(cat "$lib_dir/run.err" "$lib_dir/run.out")"
for pid in $(pgrep -U "${uid_of[mallory]}" python3); do kill -KILL "$pid" 2>/dev/null; done

# A killed rank is named by the others, long before their deadline.
expect_exit 137 run_ranks -H login:2,node:1 --grace 3s -- "$bin/comm_victim" collective kill 2 60 tcp
for rank in 0 1; do expect_matches stdout "rank $rank: .*culprits \\[2\\]"; done

# Behind a cut link: each end names the other at its deadline.
rm -f "$common/paused" "$common/go"
run_ranks -H login:1,node:1 --grace 10s -- "$bin/comm_victim" collective pause 1 3 tcp >"$lib_dir/run.out" 2>"$lib_dir/run.err" &
run=$!
wait_until 30 test -e "$common/paused" || fail "the ranks did not start: $(cat "$lib_dir/run.err")"
as_root_on login ip link set ranks0 down
on login alice touch "$common/go"
end_run 50
COMMAND='a run whose link is cut'
cp "$lib_dir/run.out" "$OUT"
expect_matches stdout 'rank 0: (timeout|peer failed), culprits \[1\]' 'rank 1: (timeout|peer failed), culprits \[0\]' # who comes second sees the first one end
