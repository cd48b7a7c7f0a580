# The same for ranks that wait for each other in MPI.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
fault=$MUSTER_BIN/mpi_fault
[ -x "$fault" ] || skip "built without MPI"

run=("$MUSTER" run -q -n 4)
expect_exit 0 "${run[@]}" -- "$fault" none
expect_equal "$(sort "$OUT" | tr '\n' ' ')" "rank 0 of 4 rank 1 of 4 rank 2 of 4 rank 3 of 4 "
expect_nothing_left

for n in 1 2 3; do  # the culprit is always the same, whoever notices first
    expect_exit 137 "${run[@]}" -- "$fault" kill 2
    expect_contains stderr "rank 2 on " "killed by signal 9" "| about to do kill"
    expect_nothing_left
done
expect_exit 3 "${run[@]}" -- "$fault" exit3 1
expect_contains stderr "rank 1 on " "exited with code 3"
expect_nothing_left
expect_exit 1 "${run[@]}" -- "$fault" exit0 1
expect_contains stderr "rank 1 on " "without MPI_Finalize"
expect_nothing_left
expect_exit 42 "${run[@]}" -- "$fault" abort42 3
expect_contains stderr "rank 3 on " "aborted the job with code 42"
expect_nothing_left

# A stopped rank: the others hang in their barrier until the timeout ends all, the stopped one included.
expect_exit 124 "${run[@]}" --timeout 2s -- "$fault" stop 1
expect_nothing_left

# A rank that never comes to MPI_Init.
expect_exit 124 "${run[@]}" --start-timeout 5s -- sh -c '[ $RANK = 3 ] && exec sleep 100; exec "$0" none' "$fault"
expect_contains stderr "3 of 4 ranks have met (initialised MPI, or connected to MASTER_PORT) after --start-timeout 5 s; missing: rank 3 on "
expect_nothing_left

# muster is killed while ranks are in MPI: their shared memory goes too.
for victim in guardian launcher; do
    start "${run[@]}" -- "$fault" stop 1
    wait_until 20 out_lines 4
    launcher=$(ps -o pid= --ppid "$PID" | tr -d ' ' | head -n 1)
    if [ $victim = guardian ]; then kill -9 "$PID"; else kill -9 "$launcher"; fi
    expect_end 137
    expect_nothing_left
done

# Inside another launcher, or with what one left in the environment, the world is still the right one.
expect_exit 0 "$MUSTER" run -q -n 2 -- "$MUSTER" run --nested -q -n 2 -- "$fault" none
expect_equal "$(grep -c 'of 2' "$OUT")" 4 "ranks in worlds of two"
if command -v mpirun.openmpi >/dev/null; then
    root=(); [ "$(id -u)" = 0 ] && root=(--allow-run-as-root)
    expect_exit 0 mpirun.openmpi "${root[@]}" --oversubscribe -n 2 "$MUSTER" run --nested -q -n 2 -- "$fault" none
    expect_equal "$(grep -c 'of 2' "$OUT")" 4 "ranks in worlds of two"
fi
expect_exit 0 env SLURM_PROCID=5 SLURM_NTASKS=9 PMI_RANK=1 PMI_SIZE=7 PMI_FD=99 PMIX_RANK=3 PMIX_NAMESPACE=gone OMPI_COMM_WORLD_SIZE=12 \
    PMIX_SERVER_URI2='gone;tcp4://127.0.0.1:1' "${run[@]}" -- "$fault" none
expect_equal "$(grep -c 'of 4' "$OUT")" 4 "ranks in a world of four"
expect_nothing_left
