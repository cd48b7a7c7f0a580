# timeout: 300
# Whatever dies, on whichever node: the run ends in time, with the right code, says who and where, and leaves nothing behind.
. "$(dirname "$0")/cluster_lib.sh"
CLUSTER_GPU_VARIABLES=1 start_cluster 4 4
install_muster
muster=prefix/bin/muster
run() { inside "$muster" run "$@"; }

# Waits to be ended, and tells by files that it is there and what it was told. The sleep is a descendant that muster must end.
write_program sit <<'SIT'
trap 'echo TERM >"$0.told.$RANK"; exit 0' TERM
sleep infinity &
echo $$ >"$0.new.$RANK" && mv "$0.new.$RANK" "$0.pid.$RANK"
while wait; do sleep infinity & done # the signal may end the sleep first
SIT
all_sit() { [ "$(ls "$work" | grep -c "^$1\.pid\.")" = "$2" ]; }
# sitting NAME RANKS RUN_OPTION...: starts so many ranks of a copy of it and waits until all are there.
sitting() {
    local name=$1 ranks=$2
    shift 2
    cp "$work/sit" "$work/$name"
    start run "$@" -- "./$name"
    wait_until 30 all_sit "$name" "$ranks" || exit 1
}

allocate -N4 --gres=gpu:4

# One rank's process is killed.
sitting killed 16
victim=$(cat "$work/killed.pid.9")
mark
expect_true "$cluster" on node3 kill -9 "$victim"
expect_end 137
expect_took 4900 'from the death of a rank to the end of the run' # nobody waits for --grace (5 s)
expect_contains stderr 'rank 9 on node3' 'killed by signal 9'
expect_equal "$(ls "$work" | grep -c '^killed\.told\.')" 15 'ranks that were asked to end'
expect_nothing_left

# A rank exits; the others would wait for ever.
expect_exit 3 run -- bash -c '[ $RANK = 13 ] && echo "last words" && exit 3; exec sleep infinity'
expect_contains stderr 'rank 13 on node4' 'exited with code 3'
expect_nothing_left

# Ranks that wait for each other in MPI.
if install_programs mpi_fault 2>/dev/null; then
    expect_mpi_exit 0 run --timeout 20s -- ./mpi_fault none
    expect_equal "$(grep -c '^rank [0-9]* of 16$' "$OUT")" 16 'ranks in a world of 16'
    expect_mpi_exit 137 run --timeout 20s -- ./mpi_fault kill 9
    expect_contains stderr 'rank 9 on node3' 'killed by signal 9'
    expect_mpi_exit 42 run --timeout 20s -- ./mpi_fault abort42 5
    # Slurm kills them all. Who asked for it is MPI's own word, but that of Open MPI 5 goes to Slurm, which drops it: then it is the rank that ended with the code, where
    # its watcher could still tell, and srun's code.
    expect_matches stderr 'MPI_ABORT was invoked on rank 5|error: rank 5 on node2 .*exited with code 42|error: srun ended its ranks and exited with code 42'
    expect_mpi_exit 3 run --timeout 20s -- ./mpi_fault exit3 2
    expect_contains stderr 'rank 2 on node1' 'exited with code 3'
    # Slurm's PMIx kills the others, and all watchers: now and then, on a busy machine, that of rank 5 before it can report the end of its rank. What the first victim's
    # watcher reports then says so, and the run is repeated.
    for try in 1 2 3; do
        expect_mpi_exit '1|137' run --timeout 20s -- ./mpi_fault exit0 5
        [ "$got" = 137 ] || break
        expect_contains stderr 'srun killed others at the same moment: another rank may have failed first'
    done
    expect_contains stderr 'rank 5 on node2' 'exited with code 0 while others were in its MPI world'
    expect_nothing_left
fi

# Interrupted on the login node.
sitting interrupted 16
kill_on_head() { # SIGNAL: each of muster's processes there
    local pid
    for pid in $("$cluster" on head pgrep -x muster); do "$cluster" on head kill "-$1" "$pid" 2>/dev/null; done
}
mark
kill_on_head TERM
expect_end 143
expect_took 4900 'from SIGTERM to the end of the run'
expect_equal "$(ls "$work" | grep -c '^interrupted\.told\.')" 16 'ranks that were asked to end'
expect_nothing_left

# muster itself is killed. Where its guardian lives on, nothing is left anywhere; else the nodes find out by themselves, and only a folder on the login node is.
sitting launcher 16
guardian=$("$cluster" on head pgrep -o -x muster)
launcher=$("$cluster" on head pgrep -P "$guardian" -x muster)
"$cluster" on head kill -KILL "$launcher"
expect_end 137
expect_nothing_left 20
sitting orphaned 16
kill_on_head KILL
expect_end 137
spared='^head: file /dev/shm/muster-'
expect_nothing_left 20
as_user bash -c 'rm -rf /dev/shm/muster-*'

# A node's slurmstepd is killed. srun alone would wait for ever.
stepds_of() {
    local pid
    for pid in $(ip netns pids "$CLUSTER_PREFIX-$1"); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != slurmstepd ] || echo "$pid"; done
}
sitting stepd 16 --heartbeat 2s
spared=': file /tmp/spmix_appdir_' # Slurm's own, of a slurmstepd that could not remove it
victims=$(stepds_of node2)
expect_true test -n "$victims"
mark
kill -9 $victims
expect_end 125
expect_took 17000 'from the death of a slurmstepd to the end of the run'
expect_contains stderr node2
expect_nothing_left 20
release

# Nodes are lost: one by its link, one by its power. Slurm would need longer to notice than muster does.
allocate -N2 -w node1,node3 --gres=gpu:4
sitting link 8 --heartbeat 2s
link=$PID
first_out=$OUT first_err=$ERR
OUT=$lib_dir/stdout.2 ERR=$lib_dir/stderr.2
allocate -N2 -w node2,node4 --gres=gpu:4
sitting power 8 --heartbeat 2s
mark
"$cluster" link node3 down
"$cluster" crash node4
expect_end 125
expect_took 17000 'from the loss of a node to the end of the run'
expect_contains stderr 'lost ranks 4-7 on node4: nothing there has answered for'
PID=$link OUT=$first_out ERR=$first_err
expect_end 125
expect_took 17000 'from the loss of a link to the end of the run'
expect_contains stderr node3
expect_nothing_left 20 # on node3 too, which nobody can tell anything
