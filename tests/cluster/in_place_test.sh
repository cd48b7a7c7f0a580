# timeout: 480
# Ranks on several nodes go on in place, without a rank or a node that is lost: over steps of a Slurm job, and over hosts.
. "$(dirname "$0")/cluster_lib.sh"
start_elastic_cluster 3 2
steps="/usr/bin/python3 steps.py"

run() { inside env "FAULTS=$faults" "${more[@]}" prefix/bin/muster run --ranks-per-node 2 --heartbeat 2s --min-np 2 --timeout 50s "$@" -- $steps; }
more=()
allocate -N3 --ntasks-per-node=2 --no-kill

faults=kill:2:5
expect_exit 0 run --nodes 2
expect_contains stderr 'generation 0: rank 2 on node2 (member 2) was killed by signal 9 (SIGKILL); 3 ranks go on in place' \
    'generation 1: 3 ranks in place: rank 2 on node2 is gone'
expect_matches stdout '^member 3: rank 2 of 3 in generation 1 from step 5, RANK 2, HOROVOD_SIZE 3$'
expect_survivors 3 55 0 1 3
faults=kill:0:5 # rank 0, with whose state and at whose node the others begin
expect_exit 0 run --nodes 2 -q
expect_survivors 3 55 1 2 3
faults='kill:1:5 kill:2:5' # one on each node, at once
expect_exit 0 run --nodes 2 -q
expect_survivors 2 55 0 3
faults='kill:2:3 kill:3:7' # all of a node, one after the other
expect_exit 0 run --nodes 2 -q
expect_survivors 2 55 0 1
faults=exit:3:4:0 # one departs
expect_exit 0 run --nodes 2
expect_survivors 3 55 0 1 2
faults=kill:3:5 more=(KILL_ON_RESET=0:1) # one more while they form the next generation
expect_exit 0 run --nodes 2 -q
expect_survivors 2 55 1 2
faults=stop:2:5 more=(MUSTER_COMM_DEADLINE=2s) # a stopped rank is killed before the others go on without it
expect_exit 0 run --nodes 2
expect_contains stderr 'rank 2 on node2 (member 2) is stopped, and the others go on without it: killing it'
expect_survivors 3 55 0 1 3
more=()

# Too few are left: a restart where one is allowed, else the end.
faults='kill:0:2 kill:1:4 kill:2:6'
expect_exit 137 run --nodes 2
expect_contains stderr 'the others cannot go on in place: 1 rank left, 2 needed (--min-np)' 'muster: error: generation 2: '
expect_nothing_left
expect_exit 0 run --nodes 2 --max-restarts 1 -q
expect_survivors 4 55 4 5 6 7

# A node: cut off, its side lives on until it misses the launcher; without power; its agent killed. What ranks there had is not counted twice.
lose_node() { # NODE COMMAND...
    local size=$1
    shift
    faults= more=(MOST=$((6 - size)))
    start run --output-dir out
    wait_until 30 grep -q '^member 5: rank 5 of 6 in generation 0' "$OUT" || exit 1
    "$@"
    expect_end 0
}
lose_node 2 "$cluster" link node2 down
expect_contains stderr 'generation 0: lost ranks 2-3 on node2; 4 ranks go on in place' 'generation 1: 4 ranks in place'
for member in 0:0 1:1 4:2 5:3; do expect_matches stdout "^member ${member%:*} ends: rank ${member#*:} of 4, total "; done
expect_equal "$(sed -n 's/.* ends: .*total //p' "$OUT" | sort -u | wc -l)" 1 'states at the end'
expect_true grep -q '"kind": "node"' "$work/out/run.json"
"$cluster" link node2 up
expect_nothing_left 20
lose_node 2 "$cluster" crash node3
expect_contains stderr 'lost ranks 4-5 on node3; 4 ranks go on in place'
expect_not_contains stderr error # neither of the node that is known to be lost, nor of the agents of the others
expect_equal "$(grep -c ' ends: rank . of 4' "$OUT")" 4 'ranks that have ended well'
"$cluster" boot node3
release

# Over hosts, by a remote shell, and as torch programs are written.
serve_remote_shell node1 node2
expect_exit 0 as_user env FAULTS=kill:0:5 prefix/bin/muster run -H node1:2,node2:2 --min-np 2 --tag-output -- $steps
expect_contains stderr 'rank 0 on node1 (member 0) was killed by signal 9 (SIGKILL); 3 ranks go on in place'
expect_contains stdout '[node2:2 g1] member 3: rank 2 of 3 in generation 1 from step 5'
sed -i 's/^\[[^]]*\] //' "$OUT"
expect_survivors 3 55 1 2 3

# Agents are stopped: of a host where a rank trains, and of one whose rank is gone. All there ends with the run, however that ends, and wakes them.
serve_remote_shell node3
for signal in TERM KILL; do
    start as_user env FAULTS=kill:1:5 MOST=1 prefix/bin/muster run -H node1:1,node2:1,node3:1 --min-np 2 --heartbeat 2s --timeout 50s -- $steps
    wait_until 30 grep -q 'in generation 1' "$OUT" || exit 1
    for node in node2 node3; do "$cluster" on $node kill -STOP "$("$cluster" on $node pgrep -x muster-agent)"; done
    "$cluster" on head kill -$signal "$("$cluster" on head pgrep -n -f '^prefix/bin/muster run')"
    expect_end $((128 + $(kill -l $signal)))
    expect_nothing_left 20
done
