# Several runs in one job, lines written for one machine, and runs outside of a cluster's jobs.
. "$(dirname "$0")/lib.sh"
# Several runs in one job: each gets GPUs of its own, and a third, for which there is no room, says so.
printf 'localhost\n' >nodes
in_job() { env PBS_JOBID=7.head PBS_NODEFILE="$PWD/nodes" CUDA_VISIBLE_DEVICES=0,1,2,3 "$@"; }
in_job "$MUSTER" run -n 2 -- sh -c 'echo "gpu $MUSTER_GPU_INDEX"; until [ -e go ]; do sleep 0.05; done' >first 2>first.err &
PID=$!
wait_until 20 grep -qs 'gpu 1' first
expect_exit 0 in_job "$MUSTER" run -n 2 -- sh -c 'echo "gpu $CUDA_VISIBLE_DEVICES $MUSTER_GPU_INDEX $LOCAL_RANK"'
expect_equal "$(sort "$OUT" | tr '\n' ' ')" 'gpu 2,3 0 0 gpu 2,3 1 1 ' 'the GPUs of the second run, of which LOCAL_RANK is the number'
expect_contains stderr 'another run of this job on '
expect_exit 0 in_job "$MUSTER" run -n 3 -- true
expect_contains stderr 'this one uses the same GPUs'
: >go
wait $PID
expect_exit 0 in_job "$MUSTER" run -n 2 -- sh -c 'echo "gpu $MUSTER_GPU_INDEX"'
expect_equal "$(sort "$OUT" | tr '\n' ' ')" 'gpu 0 gpu 1 ' 'the GPUs once the first has ended'

# Two that start at once; the runs of a rank have what the rank has; one that is killed keeps nothing.
: >all
for run in a b; do
    in_job "$MUSTER" run -q -n 2 --timeout 30 -- sh -c 'echo "$CUDA_VISIBLE_DEVICES" >>all; until [ "$(wc -l <all)" = 4 ]; do sleep 0.05; done' &
done
wait
expect_equal "$(sort all | tr '\n' ' ')" '0,1,2,3 0,1,2,3 2,3 2,3 ' 'the GPUs that two runs see which started at once'
expect_exit 0 in_job "$MUSTER" run -n 1 -- "$MUSTER" run -n 1 -- true
expect_not_contains stderr 'another run'
: >killed
in_job "$MUSTER" run -q -n 4 -- sh -c 'echo $PPID $$ >>killed; exec sleep 1000' &
PID=$!
wait_until 20 sh -c '[ "$(wc -l <killed)" = 4 ]'
kill -9 $PID $(tr ' ' '\n' <killed | sort -u)
wait $PID
for pid in $(cat killed); do wait_until 20 sh -c "! kill -0 $pid 2>/dev/null"; done
rm -rf /dev/shm/muster-"$(id -u)"-$PID-* # as a later run would, after a while
expect_exit 0 in_job "$MUSTER" run -n 4 -- true
expect_not_contains stderr 'another run'

# Lines written for one machine: localhost is the job's node that this is, and words for mpirun change nothing.
hostname >nodes
expect_exit 0 env PBS_JOBID=8.head PBS_NODEFILE="$PWD/nodes" "$MUSTER" run -np 1 -H localhost:1 -- true
expect_exit 2 env PBS_JOBID=8.head PBS_NODEFILE="$PWD/nodes" "$MUSTER" run -np 1 -H elsewhere -- true
expect_exit 0 "$MUSTER" run -n 1 --mpi-args '--mca btl self' -- true
expect_contains stderr 'note: --engine-args (--mpi-args) change nothing'

# Where jobs can be submitted, a run outside of them says so.
mkdir cluster
for program in sbatch squeue; do printf '#!/bin/sh\nexit 1\n' >cluster/$program && chmod +x cluster/$program; done
expect_exit 0 env SLURM_CONF=/dev/null PATH="$PWD/cluster:$PATH" "$MUSTER" run -n 1 -- true
expect_contains stderr 'this shell is in no job of this Slurm cluster, so the ranks run here'
expect_exit 0 env SLURM_CONF=/dev/null PATH="$PWD/cluster:$PATH" "$MUSTER" run -n 1 --scheduler local -- true
expect_not_contains stderr 'in no job'
expect_exit 125 "$MUSTER" run --nodes 2 -- true
expect_contains stderr 'this shell is in no job: get nodes by'

# On a login node, as a settings file calls it, no ranks start outside of a job, unless the machine is meant.
mkdir -p config/muster
printf 'login-nodes = "login*,%s"\n' "$(hostname -s)" >config/muster/muster.toml
on_login() { expect_exit "$1" env XDG_CONFIG_HOME="$PWD/config" "$MUSTER" run -n 1 "${@:2}" -- echo ran; }
on_login 125
expect_contains stderr "is a login node ($PWD/config/muster/muster.toml:1: login-nodes has $(hostname -s))" 'muster submit or muster alloc'
expect_not_contains stdout ran
on_login 0 --scheduler local
on_login 0 -H localhost:1
on_login 0 --dry-run
expect_exit 0 env XDG_CONFIG_HOME="$PWD/config" PBS_JOBID=8.head PBS_NODEFILE="$PWD/nodes" "$MUSTER" run -n 1 -- true
expect_exit 0 env MUSTER_LOGIN_NODES='other[0-9]' "$MUSTER" run -n 1 -- true

# Ports of a range only, on one node MASTER_PORT; a range that is too small is told.
expect_exit 0 "$MUSTER" run -n 1 --ports 41000-41063 -- bash -c 'echo "$MASTER_PORT $MUSTER_PORTS"'
expect_matches stdout '^410[0-6][0-9] 41000-41063$'
expect_exit 125 "$MUSTER" run -n 1 --ports 41000-41000 -- true
expect_contains stderr 'free TCP ports between 41000 and 41000, but need' '--ports'
for wrong in 41000 80-90 41000-40000 a-b; do
    expect_exit 2 "$MUSTER" run -n 1 --ports $wrong -- true
    expect_contains stderr "'$wrong' is no range of ports"
done

# doctor looks at Python, and at its packages, by starting it.
mkdir pythons
printf '#!/bin/sh\necho "3.9.1 /opt/python"; echo "2.0 /opt/torch"; echo "- ModuleNotFoundError: No module named muster"\n' >pythons/python3 && chmod +x pythons/python3
PATH="$PWD/pythons:$PATH" "$MUSTER" doctor >"$OUT" 2>"$ERR"
expect_matches stdout '^ok +python3 +3.9.1' '^ok +package torch +2.0' '^note +package muster +ModuleNotFoundError'

# What a note quotes of the environment commands no terminal.
mkdir -p refusing
printf '#!/bin/sh\necho no such job >&2\nexit 1\n' >refusing/scontrol
chmod +x refusing/scontrol
SLURM_JOB_ID=$'7\e[2J' PATH=$PWD/refusing:$PATH expect_exit 125 "$MUSTER" run -n 1 -- true
expect_contains stderr '7\x1b[2J'
! grep -q "$(printf '\033')" "$ERR" || fail "a note holds an escape sequence"
for command in doctor hosts 'plan -n 1'; do
    SLURM_JOB_ID=$'7\e[2J' PATH=$PWD/refusing:$PATH "$MUSTER" $command >"$OUT" 2>"$ERR"
    COMMAND="muster $command"
    expect_true grep -qF '7\x1b[2J' "$OUT" "$ERR"
    ! grep -q "$(printf '\033')" "$OUT" "$ERR" || fail "what it prints holds an escape sequence"
done
