# Scripts of arrays, chains, requeued jobs and artifacts, in a real Slurm, as an ordinary user.
# timeout: 240
# parts: jobs data
. "$(dirname "$0")/cluster_lib.sh"
[ -x "$MUSTER_BIN/muster-stage" ] || skip 'no muster-stage was built: artifacts are copied by it'
export CLUSTER_KILL_WAIT=8 CLUSTER_CONF='PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=3 MaxTime=INFINITE State=UP
PartitionName=high Nodes=ALL PriorityTier=9 PreemptMode=OFF MaxTime=INFINITE State=UP'
start_cluster 2 4
install_muster
cp "$MUSTER_BIN/muster-stage" "$work/prefix/bin/" && chmod 755 "$work/prefix/bin/muster-stage"

# script FILE OPTIONS...: what `muster script` prints.
script() {
    as_user prefix/bin/muster script --site test-cluster --no-limits --time 5min "${@:2}" >"$work/$1" 2>"$work/notes" || {
        fail "muster script: $(cat "$work/notes")"
        exit 1
    }
}
field_of() { as_user scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1; }

# A sweep: one array, each job with its own number of ranks.
script sweep.sh --sweep 1,2,8 -- bash -c 'echo "$RANK of $WORLD_SIZE in job $MUSTER_ARRAY_INDEX"'
submit_script sweep.sh --exclusive --output=sweep.%a.out
array=$job
# A chain: the first job fails, the second goes on and ends with 0, the third has nothing to do. They wait behind each other meanwhile.
script chain.sh --chain 3 --gpus 1 --job-name links -- bash -c 'echo x >>steps; test "$(wc -l <steps)" -ge 2'
submit_script chain.sh
first=$job
MUSTER_CHAIN_START=2 submit_script chain.sh --dependency=afterany:"$first" --export=ALL
second=$job
MUSTER_CHAIN_START=3 submit_script chain.sh --dependency=afterany:"$second" --export=ALL
finish_job
expect_equal "$code" 0:0 'exit code of the third job'
expect_contains stdout 'job 3 of 3: the program has ended with 0 already'
expect_equal "$(field_of "$first" ExitCode) $(field_of "$second" ExitCode)" '1:0 0:0' 'exit codes of the first and the second job'
expect_equal "$(wc -l <"$work/steps")" 2 'runs of the program'
job=$array
for index in 0 1 2; do wait_until 60 has_ended "${array}_$index"; done
expect_equal "$(cat "$work"/sweep.*.out | grep "^[0-9]" | sort -V | paste -sd';')" "$(for i in 0:1 1:2 2:8; do for ((r = 0; r < ${i#*:}; r++)); do
    echo "$r of ${i#*:} in job ${i%:*}"
done; done | sort -V | paste -sd';')" 'ranks of the jobs of the sweep'

# Preempted: the ranks get the signal, what they write then is brought to the shared folder, and the job starts again and finds it. A path with blanks,
# quotes and $(…) stays one. The program computes for ever (here: short sleeps, between which a shell takes the signal).
folder="out '\$(touch pwned)'"
script preempted.sh --queue low --requeue --gpus 2 --artifacts "$folder/%j" --artifacts-every 1h --stage-in "my data:/tmp/it's" -- bash -c '
    grep -q stuff "/tmp/it'"'"'s/my data/file" || exit 9
    [ "$RANK" != 0 ] || echo x >>lives
    if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
        cat "$MUSTER_ARTIFACTS_DIR"/*/artifacts/saved.$RANK && exit 0
        exit 8
    fi
    trap "echo saved by $RANK >$MUSTER_SYNC_DIR/saved.$RANK" USR1
    : >ready.$RANK
    while :; do sleep 0.05; done'
as_user bash -c 'mkdir "my data" && echo stuff >"my data/file"'
submit_script preempted.sh
low=$job
wait_until 60 test -e "$work/ready.0" -a -e "$work/ready.1" || exit 1
write_program take.sh <<<'exit 0'
submit_script take.sh --partition=high --nodes=2 --exclusive --time=1
finish_job
job=$low
finish_job
expect_equal "$code $(job_field "$job" JobState)" '0:0 COMPLETED' 'end of the preempted job'
# Slurm 25.05 starts such a job once more after it has ended with 0.
expect_equal "$(wc -l <"$work/lives")" 2 'how often the program was started'
restarts=$(job_field "$job" Restarts)
[ "$restarts" = 1 ] || expect_contains stdout "job $job: the program has ended with 0 already"
echo "restarts of the preempted job: $restarts"
expect_equal "$(grep -o 'saved by [01]' "$OUT" | sort -u | paste -sd' ')" 'saved by 0 saved by 1' 'what the second run finds'
expect_true test ! -e "$work/pwned"

# Cancelled, as at the time limit: SIGTERM, and some seconds later the end. What was written is brought, also by a program that knows no signal.
script cancelled.sh --gpus 8 --artifacts kept --artifacts-every 1s -- bash -c 'echo early >"$MUSTER_SYNC_DIR/early.$RANK"; : >begun.$RANK; exec sleep infinity'
submit_script cancelled.sh
all_begun() { [ "$(ls "$work"/begun.* 2>/dev/null | wc -l)" = 8 ]; }
wait_until 60 all_begun || exit 1
all_kept() { [ "$(ls "$work"/kept/node[12]/artifacts/early.* 2>/dev/null | wc -l)" = 8 ]; }
wait_until 30 all_kept # every so often; a node that were lost now would lose nothing of it
for node in 1 2; do (cd / && "$cluster" on "node$node" bash -c 'for f in /tmp/muster-*/artifacts; do echo late >"$f/late"; done'); done
as_user scancel "$job"
finish_job
expect_equal "$(cat "$work"/kept/node[12]/artifacts/late | paste -sd' ')" 'late late' 'what was written last'
