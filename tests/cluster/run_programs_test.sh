# timeout: 300
# Programs that nobody wrote for muster come up over several nodes as they are.
. "$(dirname "$0")/cluster_lib.sh"
CLUSTER_GPU_VARIABLES=1 start_cluster 4 4
install_muster
muster=prefix/bin/muster
python=/usr/bin/python3
allocate -N4 --gres=gpu:4
run() { inside "$muster" run "$@"; }

# ranks_of SIZE: what programs say of themselves, "rank R of SIZE".
expect_ranks() { expect_equal "$(grep -oE '^rank [0-9]+ of [0-9]+' "$OUT" | sort -V)" "$(for ((r = 0; r < $1; r++)); do echo "rank $r of $1"; done)" 'the ranks'; }

# Open MPI
if [ -n "${MUSTER_WORLD_SIZE:-}" ]; then
    cp "$MUSTER_WORLD_SIZE" "$work/world_size" && chmod 755 "$work/world_size"
    expect_mpi_exit 0 run --timeout 20s -- ./world_size
    expect_equal "$(sort -V "$OUT")" "$(for r in {0..15}; do echo "rank $r of 16 on node$((r / 4 + 1))"; done)" 'the ranks'
    expect_mpi_exit 0 run --timeout 20s -n 7 --nodes 2 -- ./world_size
    expect_equal "$(sort -V "$OUT")" "$(for r in {0..6}; do echo "rank $r of 7 on node$((r / 4 + 1))"; done)" 'the ranks'
    expect_mpi_exit 0 run --timeout 20s -n 6 --map-by node -- ./world_size
    expect_equal "$(sort -V "$OUT")" "$(for r in {0..5}; do echo "rank $r of 6 on node$((r % 4 + 1))"; done)" 'the ranks'
else
    echo 'Open MPI: not here'
fi

# MPICH, by srun and PMI-2. Debian's 4.0.2 often hangs in MPI_Finalize on several nodes, whoever started it (bare srun and mpiexec too): one rank waits in UCX for
# a peer that waits in PMI's barrier. Their world is what is tested here, and what ranks say before that.
if install_programs hello_mpich 2>/dev/null; then
    run --timeout 20s -- ./hello_mpich >"$OUT" 2>"$ERR"
    got=$?
    case $got in
        0) ;;
        124) echo 'MPICH hung in MPI_Finalize' ;;
        *) fail "exit code $got of an MPICH program" ;;
    esac
    expect_ranks 16
else
    echo 'MPICH: not here'
fi
# Slurm kills all ranks of a program that aborts, and none of their codes is the program's.
if command -v mpicc.mpich >/dev/null && mpicc.mpich -o "$work/mpich_fault" "$MUSTER_SOURCE_DIR/tests/cli/programs/mpi_fault.c"; then
    chmod 755 "$work/mpich_fault"
    expect_mpi_exit 42 run --timeout 30s --ranks-per-node 2 -- ./mpich_fault abort42 5
    expect_contains stderr 'rank 5 on node3' 'aborted the job with code 42 (MPI_Abort)'
fi

# mpi4py
if $python -c 'import mpi4py' 2>/dev/null; then
    cp "$MUSTER_SOURCE_DIR/tests/mpi/programs/hello_mpi4py.py" "$work"
    expect_mpi_exit 0 run --timeout 30s -n 8 --ranks-per-node 2 -- $python hello_mpi4py.py
    expect_ranks 8
else
    echo 'mpi4py: not here'
fi

# PyTorch: the loop of a tutorial, with what torchrun would set. A thread of its gloo that still holds a tensor while the interpreter ends aborts now and then
# (reported as pytorch/pytorch issue 190489).
if $python -c 'import torch.distributed as d; assert d.is_available()' 2>/dev/null; then
    cp "$MUSTER_SOURCE_DIR/tests/cli/programs/train_ddp.py" "$work/train.py"
    longest_s=120
    for try in 1 2 3; do
        # Debian 13's PyTorch has no libuv; muster's Python part, which says so to it, is not installed here.
        run -n 4 --slots-per-node 2 -x USE_LIBUV=0 -- $python train.py >"$OUT" 2>"$ERR"
        got=$?
        [ $got = 134 ] && grep -q 'terminate called without an active exception' "$ERR" || break
        echo "PyTorch fell while its interpreter ended, try $try"
    done
    [ $got = 0 ] || fail "exit code $got of a PyTorch program: $(cat "$ERR")"
    expect_equal "$(sort "$OUT")" "$(for r in 0 1 2 3; do echo "rank $r of 4, local rank $((r % 2)) on node$((r / 2 + 1))"; done)" 'the ranks'
else
    echo 'PyTorch: not here'
fi
spared=': file /dev/shm/mpich_shm_' # of the one that aborted: Slurm kills the watchers too, which would remove it
expect_nothing_left
release
