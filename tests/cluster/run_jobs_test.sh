# timeout: 150
# What Slurm does to a job reaches its ranks: time limit, scancel, requeue. The jobs run beside each other, since most of their time is waiting.
. "$(dirname "$0")/cluster_lib.sh"
CLUSTER_KILL_WAIT=20 start_cluster 4 4
install_muster

# A signal before the end of the job's time: all ranks save and end well; one that does not know the signal, and looks for rank 0's file, is not ended by it. Sent 5 s after the start of a
# job of one minute.
write_program save <<'SAVE'
if [ "$RANK" = 3 ]; then until [ -e saved.0 ]; do sleep 0.1; done; : >saved.3; exit 0; fi
trap ': >"saved.$RANK"; exit 0' USR1
while :; do sleep infinity & wait; done # the signal may end the sleep first
SAVE
batch -N4 --ntasks-per-node=4 -t 2 <<'JOB'
prefix/bin/muster run --signal-before-end USR1@100s -- ./save
JOB
saving=$job

# Out of time, and cancelled, while all ranks wait: the table of what each did comes with the end. One that does not handle the early signal is told of.
write_program hang <<'HANG'
: >"hangs.$SLURM_JOB_ID.$RANK"
exec sleep infinity
HANG
batch -N2 --ntasks-per-node=2 -t 1 <<'JOB'
exec prefix/bin/muster run --signal-before-end USR1@50s -- ./hang
JOB
late=$job
batch -N1 --ntasks-per-node=2 <<'JOB'
exec prefix/bin/muster run -- ./hang
JOB
alone=$job
batch -N1 --ntasks-per-node=1 -t 2 <<'JOB'
exec prefix/bin/muster run --signal-before-end USR1@50s --timeout 1s -- sleep infinity
JOB
limited=$job
batch -N2 --ntasks-per-node=2 <<'JOB'
exec prefix/bin/muster run -- ./hang
JOB
cancelled=$job

# Requeued by its user; the second time it comes to its end.
write_program twice <<'TWICE'
: >"run.${SLURM_RESTART_COUNT:-0}.$RANK"
[ "${SLURM_RESTART_COUNT:-0}" = 1 ] || sleep infinity
TWICE
batch -N4 --ntasks-per-node=2 --requeue <<'JOB'
prefix/bin/muster run -- ./twice
JOB
requeued=$job
files() { [ "$(ls "$work" | grep -c "^$1")" = "$2" ]; } # PREFIX COUNT
wait_until 60 files run.0. 8 || exit 1
expect_exit 0 as_user scontrol requeue "$requeued"

wait_until 60 files "hangs.$alone." 2 || exit 1
wait_until 60 files "hangs.$cancelled." 4 || exit 1
as_user scancel "$alone" "$cancelled"
for job in $alone $cancelled; do
    finish_job
    expect_contains stdout 'got SIGTERM'
    expect_matches stdout '^muster: rank 0 on node[0-9], pid [0-9]+: (asleep in|in an|running)'
done
expect_matches stdout '^muster: rank 3 on node[0-9], pid [0-9]+: (asleep in|in an|running)'

# scancel: SIGTERM, and the time to end by themselves.
write_program sit <<'SIT'
trap 'sleep 0.5; : >"clean.$RANK"; exit 0' TERM
: >"sits.$RANK"
while :; do sleep infinity & wait; done # the signal may end the sleep first
SIT
batch -N4 --ntasks-per-node=2 <<'JOB'
trap : TERM
prefix/bin/muster run --grace 10s -- ./sit
echo "code $?" >code.cancelled
JOB
wait_until 60 files sits. 8 || exit 1
as_user scancel "$job"
finish_job
expect_equal "$(job_field "$job" JobState)" CANCELLED 'state of the job'
expect_true files clean. 8
expect_equal "$(cat "$work/code.cancelled")" 'code 143' 'what muster run ended with'

# A run's own limit is no end that the signal could come before.
job=$limited
finish_job
expect_contains stdout 'note: --signal-before-end: --timeout 1 s ends the run before the signal is due'
expect_equal "$code" 124:0 'exit code at --timeout'

job=$late
finish_job
expect_contains stdout '50 s before the job'"'"'s time is up: no rank handles SIGUSR1: nothing sent'
expect_matches stdout '^muster: rank 0 on node[0-9], pid [0-9]+: (asleep in|in an|running)' '^muster: rank 3 on node[0-9], pid [0-9]+: (asleep in|in an|running)' 'out of time'

job=$saving
finish_job
expect_contains stdout 'SIGUSR1 to 15 of 16 ranks: rank 3 has no handler for it'
expect_equal "$(job_field "$job" JobState) $code" 'COMPLETED 0:0' 'state and exit code of the job that saves'
expect_true files saved. 16

job=$requeued
finish_job
expect_equal "$(job_field "$job" JobState) $code" 'COMPLETED 0:0' 'state and exit code of the requeued job'
expect_true files run.1. 8
expect_nothing_left
