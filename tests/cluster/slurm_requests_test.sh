# Whatever a job has asked for tasks, processors and GPUs by, the ranks get all of it: what salloc leaves for an srun that is given nothing is no order.
# timeout: 180
. "$(dirname "$0")/cluster_lib.sh"
start_cluster 3 4
install_muster
muster=prefix/bin/muster

write_program tell <<'TELL'
echo "$RANK on $(hostname) GPU $MUSTER_GPU_INDEX, cpus ${SLURM_CPUS_PER_TASK-none}, bind ${SLURM_TRES_BIND-none}"
TELL
write_program sit <<'SIT'
: >"sits.$RANK"
while [ ! -e go ]; do sleep 0.1; done
SIT
write_program where <<<'echo "$RANK on $(hostname)"'

# ranks NODES COUNT [CPUS]: the lines of `tell` on the first NODES nodes with COUNT ranks each; what it knows of a binding is Slurm's own word.
ranks() {
    local node local_rank rank=0
    for ((node = 1; node <= $1; node++)); do
        for ((local_rank = 0; local_rank < $2; local_rank++)); do echo "$((rank++)) on node$node GPU $local_rank, cpus ${3-none}"; done
    done | sort -V
}
expect_ranks() { # WHAT NODES COUNT [CPUS]
    expect_equal "$(sed 's/, bind .*//' "$OUT" | sort -V)" "$(ranks "${@:2}")" "ranks of a job by $1"
}

# One task with all processors of the node, and all of its GPUs: the usual form.
allocate -N2 -w node1,node2 --ntasks-per-node=1 --cpus-per-task=8 --gres=gpu:4
expect_exit 0 inside "$muster" run -- ./tell
expect_ranks --cpus-per-task=8 2 4 8
# What the user himself has left for srun.
expect_exit 0 inside env SRUN_OUTPUT=out SRUN_ERROR=err SRUN_INPUT=none SLURM_EXTERNAL_LAUNCHER=1 SLURM_EXIT_ERROR=9 SLURM_DISTRIBUTION=cyclic "$muster" run -- ./tell
expect_ranks 'variables for srun' 2 4 8
expect_true test ! -e "$work/out"
release

# A part of the tasks gets all processors, over each engine.
allocate -N2 -w node1,node2 --ntasks-per-node=2 -c2 --gres=gpu:4
engines=srun
! command -v mpirun.openmpi >/dev/null || engines+=' mpirun'
! command -v mpiexec.hydra >/dev/null || engines+=' mpiexec'
for engine in $engines; do
    rm -f "$work"/sits.* "$work/go"
    # From 23.11 on the job has options for an srun that a launcher of MPI starts; they may be gone.
    start inside env -u OMPI_MCA_plm_slurm_args -u PRTE_MCA_plm_slurm_args -u HYDRA_LAUNCHER_EXTRA_ARGS "$muster" run --engine "$engine" -n 2 --ranks-per-node 1 -- ./sit
    all_sit() { [ -e "$work/sits.0" ] && [ -e "$work/sits.1" ]; }
    wait_until 30 all_sit || exit 1
    as_user scontrol -o show step "$job" >"$work/steps"
    # mpirun starts one daemon, on the other node. MPICH's Hydra asks for a step of an external launcher from 4.2 on: that has all of the job, and no count of it.
    expect_matches "$work/steps" "StepId=$job\\.[0-9]+ .*State=RUNNING.* CPUs=([48] |0 .* Name=hydra_pmi_proxy .* TRES=\(null\))"
    expect_not_contains "$work/steps" ' CPUs=2 '
    : >"$work/go"
    expect_end 0
done
release

# GPUs by the task, or bound to tasks.
for asked in '-n8 --ntasks-per-node=4 --gpus-per-task=1' '-n8 --ntasks-per-node=4 --gres=gpu:4 --gpu-bind=single:1'; do
    # shellcheck disable=SC2086
    allocate -N2 -w node1,node2 $asked
    expect_exit 0 inside "$muster" run -- ./tell
    expect_ranks "$asked" 2 4
    release
done
allocate -N2 -w node1,node2 -n6 --gpus-per-task=1
expect_exit 0 inside "$muster" run -- ./tell
expect_equal "$(sort -V "$OUT" | cut -d, -f1 | paste -sd';')" '0 on node1 GPU 0;1 on node1 GPU 1;2 on node1 GPU 2;3 on node1 GPU 3;4 on node2 GPU 0;5 on node2 GPU 1' '4 and 2'
release

# Uneven layouts, and nodes in another order than Slurm's.
allocate -N3 --ntasks-per-node=4 --gres=gpu:4
for hosts in node3:4,node2:1,node1:3 node2:2,node1:3 node3:1,node1:1; do
    expect_exit 0 inside "$muster" run -H "$hosts" -- ./where
    want=$(rank=0; for host in ${hosts//,/ }; do for ((i = 0; i < ${host#*:}; i++)); do echo "$((rank++)) on ${host%:*}"; done; done)
    expect_equal "$(sort -V "$OUT")" "$want" "-H $hosts"
done
release

# A user's own views of the queue hide no job.
cat >"$work/waits.sh" <<<$'#!/bin/sh\nsleep 100'
submit_script waits.sh --hold --job-name='a | b'
expect_exit 0 as_user env SQUEUE_PARTITION=none SQUEUE_STATES=RUNNING SQUEUE_FORMAT2=Name SLURM_TIME_FORMAT=relative "$muster" jobs
expect_matches stdout "^$job +a \\| b +PENDING +1 .* it is held; release it by scontrol release"
expect_exit 0 as_user env SQUEUE_USERS=root SCANCEL_STATE=RUNNING "$muster" cancel "$job"
expect_contains stdout "job $job cancelled; it was PENDING"
