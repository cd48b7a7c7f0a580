# timeout: 480
# --warm-spares over several nodes: processes on the last nodes wait in init(), and take the places of lost ranks and of those of a lost node.
. "$(dirname "$0")/cluster_lib.sh"
start_elastic_cluster 3 2
steps="/usr/bin/python3 steps.py"
gate=$work/gate

run() { inside env "${vars[@]}" "GATE=$gate" prefix/bin/muster run --verbose --ranks-per-node 2 --heartbeat 2s --timeout 60s --spares 1 --warm-spares "$@"; }
out_has() { grep -q "^$1" "$OUT"; }
waits() { grep -q "^muster: generation 0: spare $1 on node3 waits for the place of a lost rank" "$ERR"; }
# begin SPARE... OPTIONS...: starts the steps; no rank fails before the gate is there, and these spares wait by then.
begin() {
    local spare
    rm -f "$gate"
    start run "${@:2}" -- $steps
    for spare in $1; do wait_until 60 waits "$spare" || exit 1; done
}
allocate -N3 --ntasks-per-node=2 --no-kill

# ------------------------------------------------------------------------------------------------ who takes their places

vars=(FAULTS=kill:2:5)
begin '0 1' --min-np 4 --tag-output --output-dir out
touch "$gate"
expect_end 0
expect_contains stderr 'muster: note: generation 0: rank 2 on node2 (member 2) was killed by signal 9 (SIGKILL); 3 ranks go on in place' \
    'muster: note: generation 1: 4 ranks in place: rank 2 on node2 is gone, 1 comes in on node3; spare 0 is rank 3'
expect_contains stdout '[node3:3 g1] member 4: rank 3 of 4 in generation 1 from step 5, RANK 3, HOROVOD_SIZE 4'
expect_contains "$work/out/spare.00/stdout" 'member 4 ends: rank 3 of 4, total 55'
expect_equal "$(/usr/bin/python3 -c '
import json, sys
run = json.load(open(sys.argv[1]))
print(run["ranks"], [g["members"] for g in run["generations"]])
for one in run["spares"]: print(one["spare"], one["place"].split(",")[0], one["generation"], one["rank"], one["member"])
' "$work/out/run.json")" "4 [[0, 1, 2, 3], [0, 1, 3, 4]]
0 spare 0 on node3 1 3 4
1 spare 1 on node3 None None None"
sed -i 's/^\[[^]]*\] //' "$OUT"
expect_survivors 4 55 0 1 3 4
expect_nothing_left

vars=(FAULTS='kill:0:5 kill:3:5') # one on each node at once, rank 0 among them
begin '0 1' --min-np 4
touch "$gate"
expect_end 0
expect_survivors 4 55 1 2 4 5
vars=(FAULTS='kill:1:3 kill:2:5 kill:3:7') # more than there are spares
begin '0 1' --min-np 2
touch "$gate"
expect_end 0
expect_survivors 3 55 0 4 5
vars=(FAULTS='kill:2:3 kill:4:7') # one that had come in, too
begin '0 1' --min-np 2
touch "$gate"
expect_end 0
expect_survivors 4 55 0 1 3 5
vars=(FAULTS=stop:2:5 MUSTER_COMM_DEADLINE=2s)
begin '0 1' --min-np 4
touch "$gate"
expect_end 0
expect_survivors 4 55 0 1 3 4

# A node, cut off: those on the other one take the places of both of its ranks.
vars=(FAULTS=exit:0:0:0)
begin '0 1' --min-np 2 --output-dir out
wait_until 60 out_has 'member 0 has pid'
"$cluster" link node2 down
wait_until 60 grep -q 'generation 0: lost ranks 2-3 on node2; 2 ranks go on in place' "$ERR"
"$cluster" link node2 up # its side ends by itself
touch "$gate"            # for which rank 0 has waited
expect_end 0
expect_contains stderr '2 come in on node3' 'spare 0 is rank 1; spare 1 is rank 2'
expect_survivors 3 55 1 4 5

# A restart where a node is lost has that of the spares, and none waits any more.
vars=(FAULTS='kill:0:2 kill:1:4 kill:2:6')
begin '0 1' --min-np 4 --max-restarts 1 -q
touch "$gate"
expect_end 0
expect_survivors 4 55 6 7 8 9

# ------------------------------------------------------------------------------------------------ spares that end

# While they wait: killed, or with their node. The ranks go on, and nobody takes their places.
vars=(FAULTS=kill:2:5 KILL_AS_JOINING=4)
begin '0 1' --min-np 2
touch "$gate"
expect_end 0
expect_survivors 4 55 0 1 3 5
vars=(FAULTS='kill:2:5')
rm -f "$gate"
start run --min-np 2 -- $steps
for spare in 0 1; do wait_until 60 waits $spare || exit 1; done
"$cluster" crash node3
wait_until 60 grep -q '^muster: note: generation 0: spare 0 on node3 is lost with its node; no other takes its place' "$ERR"
touch "$gate"
expect_end 0
expect_survivors 3 55 0 1 3
"$cluster" boot node3
wait_until 60 as_user srun -Q --overlap -N1 -n1 -w node3 true
# In vain, or without ever coming to init().
vars=()
touch "$gate"
expect_exit 0 run --min-np 2 -- $steps
expect_survivors 4 55 0 1 2 3
expect_exit 0 run --min-np 2 -- bash -c '[ $RANK -lt $WORLD_SIZE ] || exec sleep 1000; exec "$@"' - $steps
expect_survivors 4 55 0 1 2 3
expect_exit 3 run --min-np 2 -- bash -c '[ $RANK -lt $WORLD_SIZE ] || exec sleep 1000; exit 3'
expect_exit 0 run --min-np 2 -- bash -c '[ $RANK -lt $WORLD_SIZE ] || exit 0; exec "$@"' - $steps
expect_contains stderr 'muster: note: generation 0: spare 1 on node3 exited with code 0; no other takes its place'
expect_nothing_left
release

# ------------------------------------------------------------------------------------------------ hosts

# Over hosts, by a remote shell, with all ranks on one.
serve_remote_shell node1 node2
rm -f "$gate"
start as_user env FAULTS=kill:1:5 "GATE=$gate" prefix/bin/muster run --verbose -H node1:3,node2:3 --min-np 2 --spares 1 --warm-spares --timeout 60s -- $steps
wait_until 60 grep -q 'spare 0 on node2 waits' "$ERR" && touch "$gate"
expect_end 0
expect_contains stderr 'generation 1: 3 ranks in place: rank 1 on node1 is gone, 1 comes in on node2; spare 0 is rank 2'
expect_survivors 3 55 0 2 3

# Once the node of the ranks is lost, those of the spares have it all: no spare is left, and the ranks there go on in place as any do.
lose_node1() { # COMMAND...: runs muster, whose ranks are on node1, and whose spares on node2
    rm -f "$gate"
    start "$@" --verbose -H node1:3,node2:3 --heartbeat 2s --spares 1 --warm-spares --max-restarts 1 --timeout 60s -- $steps
    wait_until 60 grep -q 'spare 0 on node2 waits' "$ERR" && wait_until 60 out_has 'member 0 has pid' || exit 1
    "$cluster" link node1 down
    wait_until 60 out_has 'member 3 has pid'
    "$cluster" link node1 up
    touch "$gate"
    expect_end 0
}
lose_node1 as_user env FAULTS='kill:0:5 kill:3:5' "GATE=$gate" prefix/bin/muster run --min-np 2
expect_contains stderr 'generation 1: rank 0 on node2 (member 3) was killed by signal 9 (SIGKILL); 2 ranks go on in place'
expect_survivors 2 55 4 5
lose_node1 as_user ./node_rsh.py node2 cd "$work" '&&' FAULTS=kill:0:5 "GATE=$gate" "MUSTER_REMOTE_SHELL=$work/node_rsh.py" prefix/bin/muster run # from the node that is left
expect_not_contains stderr 'generation 1: spare '
expect_survivors 3 55 3 4 5
