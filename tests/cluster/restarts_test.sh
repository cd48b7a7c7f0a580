# timeout: 240
# muster run --max-restarts over nodes of a Slurm job that lives on without one of them (--no-kill): a step a node, a spare that comes in, fewer ranks where there is no other.
. "$(dirname "$0")/cluster_lib.sh"
CLUSTER_GPU_VARIABLES=1 start_cluster 4 4
install_muster
muster=prefix/bin/muster
run() { inside "$muster" run --ranks-per-node 2 --heartbeat 2s --max-restarts 3 "$@"; }
generation_of() { sed -n "s/^rank \([0-9]*\) of \([0-9]*\) in $1 on /\1 of \2 on /p" "$OUT" | sort -n | paste -sd';' | sed 's/;/; /g'; }
write_program sit <<'SIT'
echo "rank $RANK of $WORLD_SIZE in $MUSTER_GENERATION on $(hostname -s)"
[ "$MUSTER_GENERATION" -lt "$1" ] || exit 0
echo $$ >"$0.$RANK"
exec sleep 1000
SIT
all_there() { [ "$(grep -c "in $1 on" "$OUT")" = "$2" ]; }

allocate -N4 --no-kill --gres=gpu:4

# A rank: the next generation is on the same nodes.
expect_exit 0 run -n 8 -- bash -c 'echo "rank $RANK of $WORLD_SIZE in $MUSTER_GENERATION on $(hostname -s)"; [ "$RANK.$MUSTER_GENERATION" != 5.0 ] || exit 3; [ "$MUSTER_GENERATION" = 1 ] || exec sleep 1000'
expect_contains stderr 'generation 0: rank 5 on node3 (member 5' 'exited with code 3' 'generation 1 begins in'
expect_equal "$(generation_of 1)" "$(for r in {0..7}; do echo "$r of 8 on node$((r / 2 + 1))"; done | paste -sd';' | sed 's/;/; /g')" 'ranks of generation 1'
expect_nothing_left

# MPI programs meet anew, over muster's own servers.
if install_programs mpi_fault 2>/dev/null; then
    expect_mpi_exit 0 run --timeout 60s --tag-output -n 4 -- bash -c '[ "$MUSTER_GENERATION" != 0 ] && exec ./mpi_fault none; exec ./mpi_fault exit3 1'
    expect_equal "$(grep -c ' g1\] rank [0-9]* of 4$' "$OUT")" 4 'ranks in a second world of 4'
    expect_nothing_left
fi

# A node: its spare comes in, whose processes are ranks 4 and 5 then, since they come last.
start run --spares 1 --output-dir muster-runs/%j -- ./sit 1
wait_until 60 all_there 0 6 || exit 1
expect_equal "$(generation_of 0)" '0 of 6 on node1; 1 of 6 on node1; 2 of 6 on node2; 3 of 6 on node2; 4 of 6 on node3; 5 of 6 on node3' 'ranks of generation 0'
"$cluster" crash node2
expect_end 0
expect_contains stderr 'node2' 'generation 1 begins in'
expect_equal "$(generation_of 1)" '0 of 6 on node1; 1 of 6 on node1; 2 of 6 on node3; 3 of 6 on node3; 4 of 6 on node4; 5 of 6 on node4' 'ranks of generation 1'
expect_true grep -q '"kind": "node"' "$work/muster-runs/$job/run.json"
if has_part jobs; then
    expect_exit 0 as_user "$muster" show "$job"
    expect_contains stdout 'generation 0' 'generation 1' 'node2'
fi
expect_nothing_left 20

# Without a spare: too few for all ranks, enough for --min-np. node2 stays out.
start run -H node1,node3,node4 --min-np 4 -- ./sit 1
wait_until 60 all_there 0 6 || exit 1
"$cluster" crash node4
expect_end 0
expect_equal "$(generation_of 1)" '0 of 4 on node1; 1 of 4 on node1; 2 of 4 on node3; 3 of 4 on node3' 'ranks of a smaller generation'
expect_nothing_left 20
# A rank fails at the moment when a node is lost: that of the ranks that do not end is left out, too.
start run -H node1,node3 --grace 1s -- ./sit 1
wait_until 60 all_there 0 4 || exit 1
"$cluster" crash node3
"$cluster" on node1 kill -9 "$(cat "$work/sit.1")"
expect_end 137
expect_contains stderr 'rank 1 on node1' 'ranks 2-3 on node3 did not end within'
expect_contains stderr 'no restart after generation 0' 'ask for --spares N, or allow fewer ranks by --min-np N'
expect_nothing_left 20
