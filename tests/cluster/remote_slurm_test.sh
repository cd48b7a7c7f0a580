# muster run --engine remote in a Slurm job: one srun starts an agent on each node, and the ranks are muster's own from then on. With MEASURE=N also how long N runs take over srun
# and over remote, in turn.
# timeout: 180
# parts: preflight
. "$(dirname "$0")/cluster_lib.sh"
CLUSTER_GPU_VARIABLES=1 start_cluster 4 4
install_muster
muster=prefix/bin/muster
run() { inside "$muster" run --engine remote "$@"; }
allocate -N4 --gres=gpu:4

expect_exit 0 run -n 8 --ranks-per-node 2 -- bash -c 'echo "rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(hostname -s), step ${SLURM_PROCID-none}, GPU $MUSTER_GPU_INDEX of $CUDA_VISIBLE_DEVICES"'
expect_equal "$(sort -V "$OUT")" "$(for rank in {0..7}; do echo "rank $rank of 8, $((rank % 2)) of 2 on node$((rank / 2 + 1)), step none, GPU $((rank % 2)) of 0,1,2,3"; done)" ranks
expect_exit 0 run --nodes 2 --map-by node -n 4 -- bash -c 'echo "rank $RANK on $(hostname -s)"'
expect_equal "$(lines "$OUT")" 'rank 0 on node1; rank 1 on node2; rank 2 on node1; rank 3 on node2' 'ranks dealt out over two of four nodes'
expect_exit 0 run --verbose --nodes 2 -n 2 -- true
expect_contains stderr 'remote'
expect_equal "$(echo hello | inside "$muster" run --engine remote -n 4 --ranks-per-node 1 -- bash -c '[ "$RANK" != 0 ] || cat')" hello 'what rank 0 read'
expect_exit 0 run --preflight -n 4 --ranks-per-node 1 -- true

# Munge seals the agents' key for this user alone.
write_program keys <<'KEYS'
for line in /proc/[0-9]*/cmdline; do tr '\0' '\n' <"$line" 2>/dev/null; done | grep -cE '^[0-9a-f]{64}$'
tr '\0' ' ' <"/proc/$(ps -o ppid= -p "$PPID" | tr -d ' ')/cmdline" | grep -c ' munge:'
KEYS
expect_exit 0 run -n 1 -- ./keys
expect_equal "$(lines "$OUT")" '0; 1' 'keys on command lines; tickets of munge there'

# Ends.
expect_exit 7 run -n 4 --ranks-per-node 1 -- bash -c '[ "$RANK" != 2 ] || exit 7; exec sleep 60'
expect_contains stderr 'rank 2 on node3' 'exited with code 7'
expect_nothing_left
write_program sit <<'SIT'
trap 'echo "rank $RANK saved"; exit 0' TERM
echo "$PPID" >"$0.watcher.$RANK.new" && mv "$0.watcher.$RANK.new" "$0.watcher.$RANK"
while :; do sleep 1000 & wait $!; done
SIT
all_sit() { [ "$(ls "$work" | grep -c '^sit\.watcher\.[0-9]*$')" = 4 ]; }
sitting() {
    rm -f "$work"/sit.watcher.*
    start run --grace 2s -n 4 --ranks-per-node 1 "$@" -- ./sit
    wait_until 30 all_sit || exit 1
}
sitting
"$cluster" on head kill -TERM "$("$cluster" on head pgrep -nf 'bin/muster run --engine')"
expect_end 143
expect_equal "$(grep -c saved "$OUT")" 4 "ranks that saved: $(cat "$OUT" "$ERR")"
expect_nothing_left
sitting
"$cluster" on node3 kill -9 "$("$cluster" on node3 ps -o ppid= -p "$(cat "$work/sit.watcher.2")" | tr -d ' ')"
expect_end 125
expect_contains stderr 'muster-agent on node3 died'
spared=': file /dev/shm/muster-' # the folder of a killed agent: a later run on that host sweeps it
expect_nothing_left
sitting
"$cluster" on head kill -9 "$("$cluster" on head pgrep -nf 'bin/muster run --engine')"
expect_end 137
expect_nothing_left

# MPI meets by muster's own servers, whatever plugins this Slurm has.
if [ -n "${MUSTER_WORLD_SIZE:-}" ]; then
    cp "$MUSTER_WORLD_SIZE" "$work/world_size" && chmod 755 "$work/world_size"
    expect_mpi_exit 0 run --timeout 20s -n 4 --ranks-per-node 1 -- ./world_size
    expect_equal "$(grep -c ' of 4 on node' "$OUT")" 4 'ranks in a world of MPI'
fi

for ((turn = 0; turn < ${MEASURE:-0}; ++turn)); do
    for engine in srun remote; do
        mark
        inside "$muster" run -q --engine $engine -n 16 --ranks-per-node 4 -- /bin/true </dev/null || echo "$engine failed"
        echo "$engine $((($(date +%s%N) - marked_at) / 1000000)) ms"
    done
done
