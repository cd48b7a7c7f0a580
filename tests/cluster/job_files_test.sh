# Whose files are whose, in real Slurm: jobs that write to one file or folder, a folder that is missing, and two clusters that number their jobs alike under one home.
# timeout: 180
# parts: jobs
. "$(dirname "$0")/cluster_lib.sh"

# A second cluster, beside the one that start_cluster makes; both see $shared, where the user's files and muster's records are.
start_both() {
    shared=/tmp/muster-shared.$$
    mkdir -p "$shared" && chmod 777 "$shared"
    export CLUSTER_SHARED=$shared
    second=(env "CLUSTER_DIR=/tmp/muster-cluster2.$$" "CLUSTER_PREFIX=mt$$" CLUSTER_NET=10.79.0 CLUSTER_NODES=1 CLUSTER_GPUS=0 "CLUSTER_CONF=ClusterName=beta")
    start_cluster 1 0
    setsid -f bash -c 'tail --pid="$1" -f /dev/null; "${@:2}" down; rm -rf "/tmp/muster-cluster2.$1" "/tmp/muster-shared.$1"' watch $$ "${second[@]}" "$cluster" \
        </dev/null >/dev/null 2>&1
    expect_exit 0 "${second[@]}" "$cluster" up || exit 1
}
at_end_of_first=$(declare -f at_end)
eval "${at_end_of_first/at_end/end_first}"
at_end() {
    [ -z "${second:-}" ] || "${second[@]}" "$cluster" down || fail 'the second cluster did not end'
    end_first
    rm -rf "/tmp/muster-cluster2.$$" "$shared"
}

start_both
install_muster
cp -r "$work/prefix" "$shared/prefix"
folder=$shared/project
mkdir "$folder" && chmod 777 "$folder"
work=$folder # of as_user
m() { as_user env XDG_STATE_HOME="$shared/state" "$shared/prefix/bin/muster" "$@"; }
on_second() { (cd "$work" && exec timeout "$longest_s" "${second[@]}" "$cluster" run env XDG_STATE_HOME="$shared/state" "$@"); }
m2() { on_second "$shared/prefix/bin/muster" "$@"; }
mkdir -p "$shared/state" && chmod 777 "$shared/state"

# Two jobs whose output has one name: the first one's is gone, and what is there is not shown as its own.
write_program train.sh <<SH
#SBATCH --output=train.out
#SBATCH -n 2
echo "script of \$SLURM_JOB_ID"
$shared/prefix/bin/muster run -- bash -c 'echo "rank \$RANK of job \$SLURM_JOB_ID"'
SH
submit_script train.sh
first=$job
expect_exit 0 m watch "$first"
expect_equal "$(sort "$OUT")" "rank 0 of job $first
rank 1 of job $first
script of $first" 'output of the first job'
# Watched from when it waits: the file is still the first one's.
submit_script train.sh --begin=now+2
expect_exit 0 m watch "$job"
expect_equal "$(sort "$OUT")" "rank 0 of job $job
rank 1 of job $job
script of $job" 'output of the second job'
expect_exit 0 m logs "$job"
expect_contains stdout "script of $job"
expect_empty stderr
expect_exit 125 m logs "$first"
expect_empty stdout
expect_contains stderr "job $first: $work/train.out is also the output of job $job, which started later" '#SBATCH --output=train-%j.out'
expect_exit 0 m watch "$first"
expect_empty stdout
expect_contains stderr "note: $work/train.out is also the output of job $job, which started later"
expect_exit 0 m show "$first"
expect_contains stdout "$work/train.out is also the output of job $job"

# Several runs of one job in folders of their own: all are found, and named by these.
write_program several.sh <<SH
#SBATCH -n 1
for each in warmup train/second; do
    $shared/prefix/bin/muster run -q --output-dir "\$each" -- bash -c 'echo "rank in \$0"' "\$each"
done
SH
submit_script several.sh
several=$job
expect_exit 0 m watch "$several"
expect_exit 0 m logs "$several"
expect_equal "$(cat "$OUT")" '[warmup:0] rank in warmup
[train/second:0] rank in train/second' 'lines of two runs'
expect_exit 0 m show "$several"
expect_equal "$(sed -n 's/^run  *//p' "$OUT")" "$work/warmup
$work/train/second" 'the runs of the job'

# A run's folder without the job's number: the second run has taken the place of the first.
write_program folder.sh <<SH
#SBATCH -n 1
$shared/prefix/bin/muster run -q --output-dir results -- bash -c 'echo "rank of job \$SLURM_JOB_ID"'
SH
submit_script folder.sh
first=$job
expect_exit 0 m watch "$first"
expect_equal "$(cat "$OUT")" "[0] rank of job $first" 'the first run in a common folder'
submit_script folder.sh
expect_exit 0 m watch "$job"
expect_exit 125 m logs "$first" --output-dir results --rank 0
expect_contains stderr "$work/results holds a run of job $job, not of job $first" "--output-dir 'results-%j'"

# The folder of the output is missing: Slurm 22.05 fails such a job without a word, and 24.11 makes the folder. submit makes it.
write_program lost.sh <<SH
#SBATCH --output=lost/%j.out
echo never
SH
submit_script lost.sh
wait_until 60 has_ended "$job" || exit 1
if [ ! -d "$work/lost" ]; then
    expect_exit 181 m watch "$job"
    expect_contains stderr "job $job: Slurm could not start it: the folder of its output file $work/lost/$job.out is missing" "mkdir -p $work/lost"
    expect_exit 125 m logs "$job"
    expect_contains stderr "job $job: Slurm could not start it" "mkdir -p $work/lost"
    expect_exit 0 m show "$job"
    expect_matches stdout '^why +Slurm could not start it: the folder of its output file'
fi
expect_exit 0 m submit --check-only --site generic-slurm --time 5min --ranks 1 --sbatch=--output=made/%j.out -- true
expect_contains stderr "note: submit makes the folder $work/made"
expect_true test ! -e "$work/made"
expect_exit 0 m submit --site generic-slurm --time 5min --ranks 1 --sbatch=--output=made/%j.out -- true
expect_contains stderr "note: made the folder $work/made for the job's output made/%j.out"
job=$(sed -n 's/^job //p' "$OUT")
wait_until 60 has_ended "$job" || exit 1
expect_true test -e "$work/made/$job.out"
expect_exit 0 m submit --check-only --site generic-slurm --time 5min --ranks 1 --sbatch=--output=out.log -- true
expect_contains stderr 'note: each job that writes to out.log begins it anew; give each its own: out-%j.log'

# Two clusters, one home, one folder, one number: each has its own record, script, output and run (--no-check: `sbatch --test-only` takes a number, too).
submit() { # m|m2 WORDS...: in $job
    "$1" submit --site generic-slurm --time 5min --ranks 1 "${@:2}" >"$OUT" 2>"$ERR" || fail "muster submit ${*:2}"
    job=$(sed -n 's/^job //p' "$OUT")
    [ -n "$job" ] || exit 1
}
submit m -- bash -c 'echo "on $SLURM_CLUSTER_NAME"'
number=$job
expect_exit 0 m watch "$number"
expect_exit 125 m2 logs "$number"
expect_contains stderr 'of the cluster muster' 'ask there'
expect_exit 125 m2 watch "$number"
expect_contains stderr 'is of the cluster muster: ask there'
until submit m2 --no-check -- bash -c 'echo "on $SLURM_CLUSTER_NAME"' && [ "$job" -ge "$number" ]; do :; done
expect_equal "$job" "$number" 'the number of the second cluster'
expect_exit 0 m2 watch "$number"
expect_equal "$(cat "$OUT")" '[0] on beta' 'what is watched on the second cluster'
expect_exit 0 m watch "$number"
expect_equal "$(cat "$OUT")" '[0] on muster' 'what is watched on the first cluster'
for one in m:muster m2:beta; do
    expect_exit 0 "${one%:*}" logs "$number"
    expect_equal "$(cat "$OUT")" "[0] on ${one#*:}" "the log on ${one#*:}"
    expect_exit 0 "${one%:*}" show "$number"
    expect_matches stdout "^cluster +${one#*:}$"
    expect_equal "$(grep -c '^run ' "$OUT")" 1 "runs on ${one#*:}"
done
expect_equal "$(ls "$work/muster-runs/beta" | grep -c "^$number")" 3 'files of the second cluster'

# Runs of plain scripts in one folder are told apart by the cluster in their records.
write_program plain.sh <<SH
$shared/prefix/bin/muster run -q -n 1 --output-dir 'logs/%j' -- bash -c 'echo "on \$SLURM_CLUSTER_NAME"'
SH
submit_script plain.sh
number=$job
expect_exit 0 m watch "$number"
until other=$(on_second sbatch --parsable plain.sh) && [ "$other" -ge "$number" ]; do :; done
ended_on_second() { on_second scontrol -o show job "$number" | grep -q JobState=COMPLETED; }
wait_until 60 ended_on_second || exit 1
expect_exit 0 m2 watch "$number"
expect_equal "$(cat "$OUT")" '[0] on beta' 'a plain run on the second cluster'
expect_exit 0 m logs "$number"
expect_equal "$(cat "$OUT")" '[0] on muster' 'a plain run on the first cluster'
