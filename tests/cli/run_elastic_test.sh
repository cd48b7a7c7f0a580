# timeout: 240
# Ranks of an elastic program go on in place, without those that are lost: killed, stopped or departed.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/elastic.sh"

expect_exit 0 env FAULTS=kill:2:5 "${run[@]}" --tag-output --sample 0.1s --output-dir out -- $python "$steps"
expect_contains stderr "muster: note: generation 0: rank 2 on $host (member 2) was killed by signal 9 (SIGKILL); 3 ranks go on in place" \
    "muster: note: generation 1: 3 ranks in place: rank 2 on $host is gone"
expect_contains stdout "[$host:2 g1] member 3: rank 2 of 3 in generation 1 from step 5, RANK 2, HOROVOD_SIZE 3"
sed -i 's/^\[[^]]*\] //' "$OUT"
expect_survivors 3 55 0 1 3
expect_equal "$($python -c '
import json
run = json.load(open("out/run.json"))
print(run["generation"], run["exit"]["code"])
for g in run["generations"]:
    print(g["number"], g["kind"], g["code"], g["rank"], g["member"], g["members"], g["in_place"], g["seconds"]["lived"] > 0, g["seconds"]["waited"] >= 0, g["seconds"]["start"] >= 0)
')" '1 0
0 rank 137 2 2 [0, 1, 2, 3] True True True True
1 last 0 -1 -1 [0, 1, 3] False True False False'
# The samples are those of the present generation, by its ranks' numbers.
expect_equal "$($python -c '
import json
run = json.load(open("out/samples.json"))
print(run["generation"], run["world_size"], [rank["rank"] for node in run["nodes"] for rank in node["ranks"]])
')" '1 3 [0, 1, 2]' samples

expect_exit 0 env FAULTS=kill:0:5 "${run[@]}" -q -- $python "$steps" # rank 0
expect_survivors 3 55 1 2 3
expect_exit 0 env FAULTS='kill:0:5 kill:3:5' "${run[@]}" -q -- $python "$steps" # two at once
expect_survivors 2 55 1 2
expect_exit 0 env FAULTS='kill:1:3 kill:0:7' "${run[@]}" -q -- $python "$steps" # one after the other
expect_survivors 2 55 2 3
expect_exit 0 env FAULTS='kill:1:0' "${run[@]}" -q -- $python "$steps" # before the first step
expect_survivors 3 55 0 2 3
expect_exit 0 env FAULTS='exit:1:4:3' "${run[@]}" -- $python "$steps"
expect_contains stderr "(member 1) exited with code 3; 3 ranks go on in place"
expect_survivors 3 55 0 2 3

# Sockets within one node: the launcher tells the ranks where the others listen, also those that come later.
export MUSTER_COMM_BACKEND=tcp
expect_exit 0 env FAULTS='kill:0:3 kill:2:7' "${run[@]}" -- $python "$steps"
expect_survivors 2 55 1 3
expect_exit 0 env FAULTS='kill:2:5' UNTIL=4 "$MUSTER" run -n 4 --slots-per-node 5 --timeout 100s --min-np 2 --spares 1 -- $python "$steps"
expect_equal "$(grep -c ' ends: rank . of 4' "$OUT")" 4 "ranks that have ended well"
expect_exit 0 env FAULTS='kill:2:5' UNTIL=4 "$MUSTER" run -n 4 --slots-per-node 5 --timeout 100s --min-np 2 --spares 1 --warm-spares -- $python "$steps"
expect_equal "$(grep -c ' ends: rank . of 4' "$OUT")" 4 "ranks that have ended well"
unset MUSTER_COMM_BACKEND
# A host of two names is two nodes, which muster's own sockets join.
expect_exit 0 env FAULTS='kill:0:5' "$MUSTER" run -H localhost:2,127.0.0.1:2 --timeout 100s --min-np 2 -- $python "$steps"
expect_survivors 3 55 1 2 3

# A rank that departs with code 0 while the others train.
expect_exit 0 env FAULTS='exit:1:4:0' "${run[@]}" -- $python "$steps"
expect_survivors 3 55 0 2 3
# While they form the next generation.
expect_exit 0 env FAULTS='kill:3:5' KILL_ON_RESET='0:1' "${run[@]}" -q -- $python "$steps"
expect_survivors 2 55 1 2
# A stopped one is killed before the others go on without it.
expect_exit 0 env FAULTS='stop:2:5' MUSTER_COMM_DEADLINE=2s "${run[@]}" -- $python "$steps"
expect_contains stderr "rank 2 on $host (member 2) is stopped, and the others go on without it: killing it"
expect_survivors 3 55 0 1 3
# Rank 2 may have come to step 5, or hear of the loss before and stop in the next generation, where the others wait for it until the deadline.
expect_exit 0 env FAULTS='stop:2:5 kill:0:5' MUSTER_COMM_DEADLINE=2s "${run[@]}" -q -- $python "$steps"
expect_survivors 2 55 1 3
# Nobody misses it: the others compute, or it is the last one.
expect_exit 0 env FAULTS='stop:2:5' "${run[@]}" -- $python "$steps"
expect_contains stderr "rank 2 on $host (member 2) has been stopped (SIGSTOP, or a frozen cgroup) for more than 5 s: killing it"
expect_survivors 3 55 0 1 3
expect_exit 137 env FAULTS='kill:0:3 kill:2:3 kill:3:3 stop:1:6' "$MUSTER" run -n 4 --slots-per-node 4 --timeout 100s --min-np 1 -- $python "$steps"
expect_contains stderr "rank 0 on $host (member 1) has been stopped (SIGSTOP, or a frozen cgroup) for more than 5 s: killing it" "muster sent it, since the rank was stopped: see what sent it SIGSTOP, or froze its cgroup"
expect_nothing_left
# One that is stopped after it has asked for the next generation, while another still computes, is not taken into it.
expect_exit 0 env FAULTS='kill:0:5 stop-asking:1:5 busy:2:5:1' "${run[@]}" -- $python "$steps"
expect_contains stderr "rank 1 on $host (member 1) is stopped, and the others go on without it: killing it"
expect_survivors 2 55 2 3

# Before elastic.run has begun a stopped rank ends the run, and is to blame, not the one that has missed it.
expect_exit 1 env MUSTER_COMM_DEADLINE=2s "${run[@]}" -- $python -c '
import os, signal, muster, numpy as np
from muster import arrays, world
muster.init()
arrays.allreduce(np.ones(1), "x")
if world.rank() == 1: os.kill(os.getpid(), signal.SIGSTOP)
arrays.allreduce(np.ones(1), "y")'
expect_matches stderr "^muster: error: generation 0: rank 1 on $host \(member 1\) is stopped, so rank [023] on $host \(member [023]\), which waited for it, exited with code 1"
expect_nothing_left

# A failure that comes again in every world, where nobody is gone, ends the run.
expect_exit 1 "${run[@]}" -- $python -c '
import muster
from muster import arrays, elastic, errors, world
muster.init()
def train(state):
    if world.rank() == 1: raise errors.CollectiveError("comes again")
    arrays.broadcast_object(1)
    arrays.broadcast_object(1)
elastic.run_fn(train)(elastic.ObjectState(arrays.broadcast_object, world.rank, step=0))'
expect_contains stderr "CollectiveError: comes again" "generation 10: 4 ranks in place: a collective failed, and no rank is gone"
expect_not_contains stderr "generation 11: 4 ranks in place"
expect_nothing_left
