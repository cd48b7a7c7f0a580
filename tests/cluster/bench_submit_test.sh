# timeout: 240
# A study whose points are batch jobs: submitted by one command, one of them cancelled, shown as failed, and gone on with by the same command.
# parts: bench jobs
. "$(dirname "$0")/cluster_lib.sh"
[ -x "$MUSTER_BIN/muster-bench" ] || skip 'muster-bench was not built (launcher only)'
export CLUSTER_KILL_WAIT=2
start_cluster 2 2
install_muster
cp "$MUSTER_BIN/muster-bench" "$work/prefix/bin/" && chmod 755 "$work/prefix/bin/muster-bench" || exit 1
write_program train <<'TRAIN'
[ "$RANK" != 0 ] || echo "$WORLD_SIZE $1 $2" >>starts
[ ! -e hang ] || [ "$WORLD_SIZE $2" != '4 1' ] || { : >"hangs.$RANK"; exec sleep infinity; }
echo "muster-metric: step_s $((8 / WORLD_SIZE + RANK)) s"
TRAIN
scale() { as_user prefix/bin/muster-bench scale --ranks 1,2,4 --repeats 2 --warmup 0 --time-metric step_s --take step_s=last,min -o study --submit "$@" -- ./train {nodes} {repeat}; }
options='--site generic-slurm --gpus-per-node 2 --time 5min'
job_of() { python3 -c 'import json, sys; print([j["id"] for j in json.load(open(sys.argv[1]))["jobs"] if j["ranks"] == int(sys.argv[2])][-1])' "$work/study/jobs.json" "$1"; }
jobs_made() { python3 -c 'import json, sys; print(*[j["ranks"] for j in json.load(open(sys.argv[1]))["jobs"]])' "$work/study/jobs.json"; }

# What would be submitted; and one job that cannot be keeps the others from the queue.
expect_exit 0 scale --submit-options "$options" --dry-run
expect_matches stdout '^## 1 rank: ' '^## 4 ranks: ' '#SBATCH --nodes=2' '^ *exec .*/muster-bench scale .*--only 4 '
expect_exit 2 scale --submit-options '--site generic-slurm --gpus-per-node 3 --time 5min'
expect_contains stderr 'the job of 4 ranks would be refused, so none was submitted' '--gpus-per-node 2'
expect_exit 2 as_user prefix/bin/muster-bench scale --ranks 1,2,8 -o study --submit --submit-options "$options" -- ./train # more nodes than there are
expect_contains stderr 'the job of 8 ranks would be refused, so none was submitted' 'sbatch --test-only refuses the job'
expect_true test ! -e "$work/study/jobs.json" -a ! -e "$work/starts"
expect_equal "$(ls -A "$work/muster-runs" 2>/dev/null)" '' 'scripts of jobs that were checked only'

: >"$work/hang"
expect_exit 0 scale --submit-options "$options"
expect_matches stderr '^job [0-9]+: 1 rank$' '^job [0-9]+: 4 ranks$' 'the same command collects .* and writes the page study/report.html once all have ended'
wait_until 60 test -e "$work/hangs.3" || exit 1
for ranks in 1 2; do wait_until 60 has_ended "$(job_of $ranks)" || exit 1; done
job=$(job_of 4)
as_user prefix/bin/muster cancel "$job" >/dev/null || fail 'muster cancel'
wait_until 60 has_ended "$job" || exit 1
rm "$work/hang"

# Shown, without submitting anything: two points, and a failed one with its job's end.
expect_exit 1 scale --collect
expect_matches stdout '^ *1 +1 +8\.00 ' '^ *2 +1 +4\.00 .* 2\.00 +100%' "^ *4 +2 +- " "^4 ranks: failed: job $job: CANCELLED"
expect_matches stdout '^Provisional \(4 of 6 runs[,)]' '^unfinished: 4 of 6 runs were made \(4 ranks: 0 of 2\)'
expect_not_contains stdout '2 failed'
expect_not_contains stderr 'the same command goes on'
expect_exit 0 as_user prefix/bin/muster-bench report study --format json
expect_true python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["studies"][0]["runs"]) == 4' "$OUT"
expect_equal "$(jobs_made)" '1 2 4' 'jobs so far'

# Going on: that one only.
expect_exit 0 scale --submit-options "$options" --wait
expect_matches stderr "^4 ranks: job $job has ended without all of its runs \\(CANCELLED.*\\); it is submitted again"
expect_equal "$(jobs_made)" '1 2 4 4' 'jobs in the end'
expect_matches stdout '^ranks +nodes +step_s' '^ *1 +1 +8\.00 ' '^ *2 +1 +4\.00 .* 2\.00 +100%' '^ *4 +2 +2\.00 .* 4\.00 +100%' 'each number of ranks ran in its own job'
expect_equal "$(sort "$work/starts" | paste -sd,)" '1 1 1,1 1 2,2 1 1,2 1 2,4 2 1,4 2 1,4 2 2' 'runs that were started, with their nodes'
expect_true python3 - "$work/study/results.json" <<'PY'
import json, os, sys
study = json.load(open(sys.argv[1]))
assert study["scheduler"] == "slurm" and len(study["runs"]) == 6, study
assert study["points"][2]["hosts"] == ["node1", "node2"], study["points"]
assert len(study["variables"]["SLURM_JOB_ID"].split(",")) == 3, study["variables"]
for run in study["runs"]:
    assert run["status"] == "ok" and os.path.exists(os.path.join(os.path.dirname(sys.argv[1]), run["output"])), run
PY
expect_true grep -q '<td class="speedup">' "$work/study/report.html"

# Nothing is missing: nothing is submitted. More repetitions are; without --submit the folder is refused.
expect_exit 0 scale --submit-options "$options" --wait
expect_equal "$(jobs_made)" '1 2 4 4' 'jobs when nothing is missing'
expect_exit 2 as_user prefix/bin/muster-bench scale --ranks 1,2,4 -o study -- ./train
expect_contains stderr 'give --submit to go on with it'
expect_nothing_left
