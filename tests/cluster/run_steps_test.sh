# timeout: 150
# Steps that Slurm makes in its own way: GPUs that differ from node to node, MPICH's map of its nodes, a reader that goes away, and muster inside of a step.
. "$(dirname "$0")/cluster_lib.sh"
CLUSTER_GPU_VARIABLES=1 start_cluster 3 4
install_muster
muster=prefix/bin/muster
write_program say <<'SAY'
echo "rank $RANK of $WORLD_SIZE on $(</proc/sys/kernel/hostname) gpu ${MUSTER_GPU_INDEX:--} of ${CUDA_VISIBLE_DEVICES:-none}"
SAY

# Jobs by a sum of GPUs: 4 and 1.
allocate -N2 --gpus=5
run() { inside "$muster" run "$@"; }
uneven='rank 0 of 5 on node1 gpu 0 of 0,1,2,3; rank 1 of 5 on node1 gpu 1 of 0,1,2,3; rank 2 of 5 on node1 gpu 2 of 0,1,2,3; '
uneven+='rank 3 of 5 on node1 gpu 3 of 0,1,2,3; rank 4 of 5 on node2 gpu 0 of 0'
expect_exit 0 run -- ./say
expect_equal "$(lines "$OUT")" "$uneven" 'ranks of a job of 4 and 1 GPUs'
expect_exit 0 inside srun -Q --interactive --preserve-env "$muster" run -- ./say
expect_equal "$(lines "$OUT")" "$uneven" 'the same, in the step of an interactive shell'
expect_exit 0 run --nnodes 1 -- ./say
expect_equal "$(grep -c '^rank [0-3] of 4 on node1' "$OUT")" 4 'ranks on one of its nodes'
expect_exit 0 run --ranks-per-node 1 -- ./say
expect_equal "$(lines "$OUT")" 'rank 0 of 2 on node1 gpu 0 of 0,1,2,3; rank 1 of 2 on node2 gpu 0 of 0' 'one rank on each'
if "$cluster" run mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    expect_exit 0 run --engine mpirun -- ./say
    expect_equal "$(lines "$OUT")" "$uneven" 'ranks by mpirun in a job of 4 and 1 GPUs'
fi
release
batch -N3 -n3 --gpus=6 --ntasks-per-node=1 <<'JOB'
prefix/bin/muster run -q -- ./say
JOB
finish_job
expect_equal "$code" 0:0 'exit code of the job'
expect_equal "$(grep -c '^rank [0-5] of 6 on node[1-3] gpu' "$OUT")" 6 "ranks of a job of 6 GPUs on 3 nodes; $(cat "$OUT")"

# Two runs at a time: they hear of each other where both have ranks on a node.
write_program meet <<'MEET'
: >"$1"
until [ -e "$2" ]; do sleep 0.1; done
MEET
batch -N2 -n2 --gres=gpu:4 <<'JOB'
mapfile -t host < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
prefix/bin/muster run -H "${host[0]}:4" -- ./meet first.a first.b &
prefix/bin/muster run -H "${host[1]}:4" -- ./meet first.b first.a &
wait
echo then
prefix/bin/muster run -H "${host[0]}:1,${host[1]}:1" -- ./meet then.a then.b &
prefix/bin/muster run -H "${host[1]}:2" -- ./meet then.b then.a &
wait
JOB
finish_job
expect_equal "$code" 0:0 'exit code of the job'
expect_equal "$(grep -oE '^then|another run of this job' "$OUT" | paste -sd';')" 'then;another run of this job' "notes of other runs; $(cat "$OUT")"

# MPICH learns from Slurm who shares a node: Debian's hangs in MPI_Finalize now and then, whoever started it, so only what ranks say before that counts.
allocate -N3 --gres=gpu:4
if command -v mpicxx.mpich >/dev/null && mpicxx.mpich -o "$work/mpich" "$MUSTER_SOURCE_DIR/tests/cluster/world_size_main.cpp"; then
    chmod 755 "$work/mpich"
    run --ranks-per-node 2 --timeout 8s -- ./mpich sharing >"$OUT" 2>"$ERR"
    expect_equal "$(lines "$OUT")" "$(for r in {0..5}; do echo "rank $r of 6 on node$((r / 2 + 1)) with 2"; done | paste -sd';' | sed 's/;/; /g')" \
        "MPICH's ranks on a node; $(cat "$ERR")"
    run -n 6 --timeout 8s -- ./mpich sharing >"$OUT" 2>"$ERR"
    expect_contains stderr 'note: with this layout Slurm does not tell MPICH which ranks share a node'
else
    echo 'MPICH: not here'
fi

# The reader of the output goes away.
flood() { timeout 30 "$cluster" run env "${salloc_env[@]}" "$muster" run "$@" -- bash -c 'while echo x; do sleep 0.1; done'; }
COMMAND='muster run -- … | head -n 1'
(cd "$work" && flood 2>"$ERR" | head -n 1 >"$OUT"; echo "${PIPESTATUS[0]}" >"$lib_dir/code")
expect_equal "$(cat "$lib_dir/code") $(cat "$OUT")" '141 x' 'exit code and output of a run whose reader left'
expect_not_contains stderr 'rank '
expect_nothing_left

# In a step of several tasks each of them would start all ranks.
expect_exit 2 inside srun -Q --overlap -N2 -n2 --gres=none "$muster" run -- ./say
expect_contains stderr 'this is task 0 of 2 of an srun' 'this is task 1 of 2 of an srun' 'start muster once, without srun'
expect_equal "$(cat "$OUT")" '' 'what ran'
expect_exit 0 inside srun -Q --overlap -N2 -n2 --gres=none "$muster" run --nested -n 1 --scheduler local -- echo ran
expect_equal "$(grep -c '^ran$' "$OUT")" 2 'runs that insist'
expect_exit 0 inside srun -Q --overlap -N2 -n2 --gres=none "$muster" hosts
expect_exit 2 run -n 3 --map-by node -- "$muster" run -- ./say
expect_contains stderr 'this is rank ' ' of 3 of a muster run'

# A job that was submitted in a task, or by a rank, is none of its tasks, although sbatch passes on their variables.
write_program next <<'NEXT'
prefix/bin/muster run -- ./say
NEXT
expect_exit 0 inside srun -Q --overlap -N3 -n3 --gres=none bash -c '[ $SLURM_PROCID != 2 ] || sbatch --parsable -N2 --gres=gpu:1 next'
first=$(tail -n 1 "$OUT")
expect_exit 0 run --ranks-per-node 1 -- bash -c '[ $RANK != 2 ] || sbatch --parsable -N2 --gres=gpu:1 next'
second=$(tail -n 1 "$OUT")
release
for job in $first $second; do
    finish_job
    expect_equal "$code" 0:0 "exit code of the job; $(cat "$OUT")"
    expect_equal "$(grep -c '^rank [01] of 2 on node' "$OUT")" 2 "ranks of a job that a task submitted; $(cat "$OUT")"
done
expect_nothing_left
