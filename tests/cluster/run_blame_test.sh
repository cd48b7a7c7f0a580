# timeout: 280
# Who is named when a run ends from outside: the scheduler's doing is not blamed on a rank, nor a watcher's death, nor the engine's.
. "$(dirname "$0")/cluster_lib.sh"
CLUSTER_CONF='PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP' \
    CLUSTER_GPU_VARIABLES=1 start_cluster 4 4
install_muster
muster=prefix/bin/muster
run() { inside "$muster" run "$@"; }

write_program sit <<'SIT'
echo $$ >"$0.new.$RANK" && mv "$0.new.$RANK" "$0.pid.$RANK"
exec sleep infinity
SIT
# Told to end, it does so well: nothing in how it ends shows why.
write_program save <<'SAVE'
trap 'exit 0' TERM
echo $$ >"$0.new.$RANK" && mv "$0.new.$RANK" "$0.pid.$RANK"
while :; do sleep 0.1; done
SAVE
all_sit() { [ "$(ls "$work" | grep -c "^$1\.pid\.")" = "$2" ]; }
sitting() { # NAME RANKS PROGRAM RUN_OPTION...
    local name=$1 ranks=$2 program=$3
    shift 3
    cp "$work/$program" "$work/$name"
    start run "$@" -- "./$name"
    wait_until 30 all_sit "$name" "$ranks" || exit 1
}
# The same by a batch script; its job is then in $job.
sitting_batch() { # NAME RANKS SBATCH_OPTION...
    local name=$1 ranks=$2
    shift 2
    cp "$work/sit" "$work/$name"
    write_program "$name.job" <<<"exec $work/prefix/bin/muster run -- ./$name"
    submit_script "$name.job" "$@"
    wait_until 40 all_sit "$name" "$ranks" || exit 1
}
expect_job_end() { # SAYING
    wait_until 60 has_ended "$job"
    COMMAND="job $job"
    cp "$work/slurm-$job.out" "$OUT"
    expect_contains stdout "$1"
    expect_not_contains stdout 'was killed by signal' 'exited with code 0 while'
}

# The time limit, which Slurm looks at every half minute: this one goes on beside the others.
sitting_batch limit 4 -N1 -w node4 --gres=gpu:4 --time 1
limited=$job
spared='^node4: '

# A job is cancelled: from salloc, where muster itself gets no signal, and as a batch job, where it does.
for program in sit save; do
    allocate -N2 -w node1,node2 --gres=gpu:4
    sitting "cancelled_$program" 8 "$program"
    expect_true as_user scancel "$job"
    expect_end 143
    expect_contains stderr "job $job was cancelled"
    expect_not_contains stderr 'was killed by signal'
    wait_until 30 has_ended "$job"
    wait "$salloc_pid" 2>/dev/null
done
sitting_batch batch 8 -N2 -w node1,node2 --gres=gpu:4
expect_true as_user scancel "$job"
expect_job_end "job $job was cancelled"

# Another job takes its place.
sitting_batch preempted 8 -N2 -w node1,node2 --gres=gpu:4
expect_true as_user sbatch -Q -p high -N2 -w node1,node2 --exclusive --wrap true
expect_job_end "job $job was preempted by another job"

# Slurm gives a node up before muster misses it: the node's ranks are named, also where Slurm puts the job back into the queue.
as_operator() { "$cluster" operator scontrol "$@"; }
slurmd_of() {
    local pid
    for pid in $(ip netns pids "$CLUSTER_PREFIX-$1"); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != slurmd ] || echo "$pid"; done
}
give_up_node2() { # its daemon stands still, lest it says that the node is well
    kill -STOP $(slurmd_of node2)
    expect_true as_operator update nodename=node2 state=down reason=test
}
node2_is_idle() { [ "$(as_user sinfo -h -N -n node2 -p main -o %T)" = idle ]; }
take_back_node2() {
    kill -CONT $(slurmd_of node2)
    as_operator update nodename=node2 state=resume 2>/dev/null # or it has come back by itself
    wait_until 60 node2_is_idle
}
for requeue in --no-requeue --requeue; do
    name=given_up$requeue
    cp "$work/sit" "$work/$name"
    write_program "$name.job" <<<"[ \"\${SLURM_RESTART_COUNT:-0}\" = 0 ] || exit
trap : TERM
prefix/bin/muster run --grace 1s -- ./$name
echo \$? >code.$name"
    submit_script "$name.job" -o "said.$name" "$requeue" -N2 -w node1,node2 --gres=gpu:4
    wait_until 40 all_sit "$name" 8 || exit 1
    give_up_node2
    wait_until 30 test -s "$work/code.$name"
    cp "$work/said.$name" "$OUT"
    COMMAND="job $job $requeue, without node2"
    expect_contains stdout "job $job has lost a node, as the scheduler says (ranks 4-7 on node2)"
    expect_not_contains stdout 'was killed by signal'
    expect_equal "$(cat "$work/code.$name")" 125 'the exit code of a run without a node'
    as_user scancel "$job"
    wait_until 30 has_ended "$job"
    take_back_node2
done
allocate -N2 -w node1,node2 --gres=gpu:4
sitting given_up 8 sit
give_up_node2
expect_end 125
expect_contains stderr "job $job has lost a node, as the scheduler says (ranks 4-7 on node2)"
release
take_back_node2

# It is up again before anybody asks: the job's own record still names it, but for that of Slurm 22.05.
allocate -N2 -w node1,node2 --gres=gpu:4
sitting back 8 sit
give_up_node2
as_operator update nodename=node2 state=resume
kill -CONT $(slurmd_of node2)
expect_end 125
back=$(job_field "$job" FailedNode)
[ -z "$back" ] || expect_equal "$back" node2 'the node that Slurm has lost'
expect_contains stderr "job $job has lost a node, as the scheduler says${back:+ (ranks 4-7 on node2)}"
release
take_back_node2

# A watcher is killed: the engine then ends the ranks of all the others. One that is stopped keeps everybody waiting.
allocate -N4 --exclude node4 -N3 -w node1,node2,node3 --gres=gpu:4
watcher_of() { "$cluster" on "$1" ps -o ppid= -p "$(cat "$work/$2")" | tr -d ' '; }
sitting watcher 12 sit
expect_true "$cluster" on node3 kill -9 "$(watcher_of node3 watcher.pid.9)"
expect_end 125
expect_contains stderr 'the watcher of rank 9 on node3 was killed'
expect_not_contains stderr 'signal 15'
expect_nothing_left 20
sitting stopped 12 sit --heartbeat 1s
expect_true "$cluster" on node3 kill -STOP "$(watcher_of node3 stopped.pid.9)"
expect_end 125
expect_took 20000 'from the stop of a watcher to the end of the run'
expect_contains stderr 'the watcher of rank 9 on node3 has not answered for'
expect_nothing_left 20

# srun itself is killed.
sitting engine 12 sit
for pid in $("$cluster" on head pgrep -x srun); do "$cluster" on head kill -9 "$pid"; done
expect_end 125
expect_contains stderr 'srun was killed by signal 9 (SIGKILL)'
expect_nothing_left 20

# A time limit shows what ranks of all nodes do.
expect_exit 124 run --timeout 3s --on-hang 'echo seen {pid}' -- bash -c '[ $RANK = 5 ] && kill -STOP $$; exec sleep 100'
expect_matches stderr '^muster: rank 5 on node2, pid [0-9]+: stopped' '^muster: rank 11 on node3, pid [0-9]+: asleep in sleep' \
    '^muster: --on-hang of rank 11 on node3, pid [0-9]+:$'
expect_equal "$(grep -c '^seen ' "$ERR")" 12 'ranks that were asked about'
expect_nothing_left

# A node is full: what is said comes from the kernel's count of its cgroup, as Slurm makes one where it confines memory.
if mkdir "/sys/fs/cgroup/memory/$CLUSTER_PREFIX" 2>/dev/null; then
    group=/sys/fs/cgroup/memory/$CLUSTER_PREFIX
    init=$(cat "$CLUSTER_DIR/run/node2.init")
    nsenter -t "$init" -m sh -c 'mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory && mount -t cgroup -o memory none /sys/fs/cgroup/memory'
    echo $((192 << 20)) >"$group/memory.limit_in_bytes"
    for pid in $(ip netns pids "$CLUSTER_PREFIX-node2"); do echo "$pid" >"$group/cgroup.procs"; done
    expect_exit 137 run -- bash -c '[ $RANK = 6 ] && exec python3 -c "x = bytearray(600 << 20)"; exec sleep 100'
    expect_contains stderr 'rank 6 on node2' 'was killed by signal 9 (SIGKILL): out of memory'
    expect_nothing_left
    for pid in $(cat "$group/cgroup.procs"); do echo "$pid" >/sys/fs/cgroup/memory/cgroup.procs; done
    rmdir "$group"
fi
release

# A step of a job is cancelled, over all engines but Open MPI 5's mpirun: that is told, nobody is blamed, and nothing is started again. Folders of killed agents
# stay until a later run.
allocate -N2 -w node1,node2 --gres=gpu:4
expect_cancelled() { # SAYING, with the code 143
    expect_true as_user scancel "$(as_user squeue -s -h -j "$job" -o %i | grep -E '\.[0-9]+$' | tail -n 1)"
    expect_end "${2:-143}"
    expect_matches stderr "$1"
    expect_not_contains stderr 'was killed by signal' 'died' 'restart 1' 'generation 1 begins'
}
ways=('--engine srun' '--engine remote' '--max-restarts 2')
"$cluster" run mpirun --version 2>/dev/null | grep -q 'Open MPI) 4' && ways+=('--engine mpirun')
"$cluster" run mpiexec.hydra --version 2>/dev/null | grep -q HYDRA && ways+=('--engine mpiexec')
for options in "${ways[@]}"; do
    # shellcheck disable=SC2086
    sitting "step$(tr -dc a-z <<<"$options")" 8 sit $options
    expect_cancelled "^muster: error: (generation 0: )?step $job\.[0-9]+ was cancelled"
done
# Of ranks that are in an MPI world, too, whose step Slurm ends in the same words for one of them. Over PMI-2 nothing shows which it was.
is_in_world() { grep -q 'about to do stop' "$ERR"; }
if install_programs mpi_fault 2>/dev/null; then
    for options in "${ways[@]}"; do
        case $options in '--engine srun' | '--engine mpirun') ;; *) continue ;; esac # the others' steps are none of PMIx
        # shellcheck disable=SC2086
        start run --ranks-per-node 2 $options -- ./mpi_fault stop 1
        wait_until 40 is_in_world || exit 1
        expect_cancelled "^muster: error: (generation 0: )?step $job\.[0-9]+ was cancelled"
    done
fi
if command -v mpicc.mpich >/dev/null && mpicc.mpich -o "$work/mpich_fault" "$MUSTER_SOURCE_DIR/tests/cli/programs/mpi_fault.c"; then
    start run --engine srun --ranks-per-node 2 -- ./mpich_fault stop 1
    wait_until 40 is_in_world || exit 1
    expect_cancelled "MPI_Abort of a rank, or step $job\.[0-9]+ was cancelled|srun killed others at the same moment" 137
fi
release

# A node is dead before the ranks start, and Slurm does not know it yet.
allocate -N3 -w node1,node2,node3 --gres=gpu:4
"$cluster" crash node3
expect_exit 125 run -- true
expect_contains stderr 'ranks 8-11 on node3'
expect_not_contains stderr 'as the first'

job=$limited
expect_job_end "job $limited is out of time"
