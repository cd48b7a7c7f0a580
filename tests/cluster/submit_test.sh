# muster init, submit, watch, logs, show, jobs, cancel, rerun and alloc in a real Slurm, as an ordinary user.
# timeout: 180
# parts: jobs
. "$(dirname "$0")/cluster_lib.sh"
export CLUSTER_KILL_WAIT=2
start_cluster 2 4
install_muster
m() { as_user prefix/bin/muster "$@"; }
# submit OPTIONS...: the job's number is then in $job.
submit() {
    m submit --site generic-slurm --time 5min "$@" >"$OUT" 2>"$ERR" || fail "muster submit $*"
    job=$(sed -n 's/^job //p' "$OUT")
    [ -n "$job" ] || exit 1
}

# Over two nodes, watched to its end: the lines of the ranks, and the job's code. Rank 5 looks for the files of the others until all are there: they are the only event
# that a shell on another node can see.
submit --gpus 8 --gpus-per-node 4 --job-name train -- bash -c 'echo "rank $RANK of $WORLD_SIZE"; echo "muster-metric: loss=$RANK"; : >"said.$RANK"
[ "$RANK" = 5 ] || exit 0; until [ "$(ls said.* | wc -l)" = 8 ]; do sleep 0.05; done; exit 3'
ended=$job
expect_exit 3 m watch "$job"
expect_contains stdout '[0] rank 0 of 8' '[7] rank 7 of 8' 'rank 5 on node2'
expect_matches stderr "^muster: job $job: FAILED after .*exit code 3" '^muster: last metric: loss=[0-7]$'
expect_true test -x "$work/muster-runs/$job.sh" -a -e "$work/muster-runs/$job.out"
expect_exit 3 m watch "$job" --rank 5 --grep '^rank' # of one that has ended, too
expect_equal "$(cat "$OUT")" '[5] rank 5 of 8' 'what is watched'
expect_exit 0 m logs "$job" --rank 2
expect_equal "$(cat "$OUT")" '[2] rank 2 of 8
[2] muster-metric: loss=2' 'the log of rank 2'
expect_true python3 - "$work/muster-runs/$job/run.json" "$job" <<'PY'
import json, os, sys
run = json.load(open(sys.argv[1]))
assert run["schema"] == "muster.run/1" and run["ranks"] == 8 and run["site"] == "generic-slurm", run
assert run["allocation"]["job_id"] == sys.argv[2] and [n["name"] for n in run["allocation"]["nodes"]] == ["node1", "node2"], run
assert [(p.split(",")[0], p.split(", GPU ")[1]) for p in run["places"]] == [("rank %d on node%d" % (r, r // 4 + 1), str(r % 4)) for r in range(8)], run["places"]
assert run["exit"]["code"] == 3 and run["exit"]["rank"] == 5 and run["exit"]["host"] == "node2", run["exit"]
assert run["exit"]["cause"].startswith("rank 5 on node2") and "exited with code 3" in run["exit"]["cause"], run["exit"]
environment = os.path.join(os.path.dirname(sys.argv[1]), "environment")
assert os.stat(environment).st_mode & 0o777 == 0o600 and "SLURM_JOB_ID=" in open(environment).read()
PY
expect_exit 0 m show --all "$job"
expect_matches stdout '^asked for +2 nodes, 4 ranks on each, 00:05:00$' '^state +FAILED$' '^exit code +3$' "^run +$work/muster-runs/$job$" 'JobState=FAILED'
expect_exit 0 m show "$job"
expect_not_contains stdout 'JobState'
expect_contains stdout "muster show --all $job: the record of slurm itself"

# A job file; what the command line says goes before it. Two jobs are watched by one question.
expect_exit 0 m init first
printf '[job]\nsite = "generic-slurm"\ngpus = 2\ntime = "5min"\ntag-output = true\ncommand = ["bash", "-c", "echo $GREETING"]\n[job.env]\nGREETING = "hello you"\n' >"$work/job.toml"
expect_exit 0 m submit --file job.toml --gpus 1 --json
expect_contains stderr 'job from job.toml: ' # all that it sets is named
job=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["id"])' "$OUT")
first=$job
submit --gpus 1 -- bash -c 'exit 0'
expect_exit 0 m watch "$first" "$job"
expect_contains stdout "[$first:0] hello you"

# Cancelled: the code says so; one that waits says why. `sleep 100` is only something to cancel.
submit --gpus 1 --hold -- sleep 100
held=$job
submit --gpus 1 -- sleep 100
start m watch "$job" "$held"
wait_until 30 grep -q "job $job: RUNNING" "$ERR"
wait_until 30 grep -q "job $held: PENDING: it is held" "$ERR"
m jobs >"$work/jobs" || fail 'muster jobs'
expect_matches "$work/jobs" "^$job +muster +RUNNING +1 " "^$held .* it is held"
m cancel "$job" "$held" >"$work/cancelled" || fail 'muster cancel'
expect_matches "$work/cancelled" "^job $job cancelled; it was RUNNING$" "^job $held cancelled; it was PENDING$"
expect_end 143
expect_exit 1 m cancel "$ended"
expect_contains stderr 'it has ended already (FAILED)'

# A chain: the second job has nothing left to do. An array: each task has a run folder of its own.
submit --gpus 1 --chain 2 --job-name chain -- bash -c 'echo "link $MUSTER_CHAIN_LINK"'
chain=($job)
expect_equal "${#chain[@]}" 2 'jobs of the chain'
submit --gpus 1 --array 0-1 -- bash -c 'echo "task $MUSTER_ARRAY_INDEX"; exit $((MUSTER_ARRAY_INDEX * 4))'
expect_exit 4 m watch "$job" "${chain[@]}"
expect_contains stdout "[${job}_0:0] task 0" "[${job}_1:0] task 1" "[${chain[0]}:0] link 1"
expect_true grep -q 'has ended with 0 already' "$work/muster-runs/${chain[1]}.out"
expect_exit 0 m logs "${job}_1"
expect_equal "$(grep '^\[' "$OUT")" '[0] task 1' 'the log of a task'
expect_exit 0 m show "$job"
expect_equal "$(grep -E '^(task|state|run) ' "$OUT" | awk '{print $1, $2}' | sed "s|$work/muster-runs/.*|FOLDER|" | sort | uniq -c | awk '{print $1 $2 $3}' | paste -sd' ')" \
    "2runFOLDER 1state${job}_0 1state${job}_1 1task${job}_0 1task${job}_1" 'all tasks of the array'
expect_contains stdout 'exited with code 4'
expect_exit 0 m show --json "$job"
expect_true python3 - "$OUT" "$job" <<'PY'
import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
assert [(r["job"], r["run"]["exit"]["code"]) for r in runs] == [(sys.argv[2] + "_0", 0), (sys.argv[2] + "_1", 4)], runs
PY
expect_exit 125 m logs "$job" --rank 5
expect_contains stderr "job $job: no rank 5: the ranks are 0 to 0"
expect_exit 0 m show "${job}_1"
expect_matches stdout '^asked for +1 node, 1 rank on each' "^exit code +4$" "^placed +"

# A sweep of the program's options: every combination in its words, the job's name and the folder; one table of the results.
submit --gpus 1 --each lr=0.1,0.01 --each 'mode=a b,c' --job-name 'lr{lr}' --output-dir 'sweep/lr{lr}-{index}' --env 'MODE={mode}' -- bash -c '
    echo "got $1 $MODE \${x}"; echo "muster-metric: loss 9"; echo "muster-metric: loss $1"; scontrol -o show job "$SLURM_JOB_ID" | grep -o "JobName=[^ ]*"
    [ "$1$MODE" != 0.01c ] || exit 3' x '{lr}'
expect_exit 3 m watch "$job"
expect_contains stdout "[${job}_1:0] got 0.1 c \${x}" "[${job}_2:0] got 0.01 a b \${x}" "[${job}_0:0] JobName=lr0.1" "[${job}_3:0] JobName=lr0.01"
results() { # of `muster show`, the rows of the table
    expect_exit 0 "$@"
    grep "^${job}_" "$OUT" | sed "s/^${job}_//; s/  */ /g" | paste -sd'|'
}
expect_equal "$(results m show "$job")" '0 0.1 a b 0.1 COMPLETED sweep/lr0.1-0|1 0.1 c 0.1 COMPLETED sweep/lr0.1-1|2 0.01 a b 0.01 COMPLETED sweep/lr0.01-2|3 0.01 c 0.01 FAILED, exit code 3 sweep/lr0.01-3' 'results of the sweep'
expect_matches stdout '^task +lr +mode +loss +state +folder'
expect_exit 0 m logs "${job}_2"
expect_contains stdout '[0] got 0.01 a b'
expect_exit 0 m show "${job}_3"
expect_matches stdout '^run +.*/sweep/lr0.01-3$' '^exit code +3$'
expect_exit 0 m show --json "$job"
expect_true python3 -c 'import json, sys; rows = json.load(open(sys.argv[1]))["results"]; assert [(r["parameters"], r["metrics"]["loss"]["value"], r["exit_code"]) for r in rows][2:] == [({"lr": "0.01", "mode": "a b"}, 0.01, 0), ({"lr": "0.01", "mode": "c"}, 0.01, 3)], rows' "$OUT"

# While a chain waits, no other one begins by its name in its folder.
submit --gpus 1 --hold --chain 2 --job-name chain -- true
chain=($job)
expect_exit 2 m submit --site generic-slurm --time 5min --gpus 1 --chain 2 --job-name chain -- true
expect_contains stderr "whose first job is ${chain[0]}, still has jobs that wait or run (" --job-name "${chain[1]}"
m cancel "${chain[@]}" >/dev/null || fail 'muster cancel'

# Followed from before it starts to its end.
submit --gpus 1 -- bash -c 'echo first; sleep 1; echo last'
expect_exit 0 m logs --follow "$job"
expect_equal "$(cat "$OUT")" '[0] first
[0] last' 'what is followed'

# What the script itself prints is seen with the ranks' lines: a module that is not there.
submit --gpus 1 --setup 'nosuchmodule load cuda' --setup 'echo "prepared on $(hostname)"' -- echo started
expect_exit 0 m watch "$job"
expect_matches stdout 'nosuchmodule: command not found$' '^prepared on node' '^\[0\] started$'
expect_exit 0 m logs "$job"
expect_equal "$(sed 's/.*module: /module: /; s/on node.*/on NODE/' "$OUT")" 'module: command not found
prepared on NODE
[0] started' 'lines of the script and the ranks'
# One that --module loads ends the job.
submit --gpus 1 --module nosuch -- echo started
expect_exit 127 m watch "$job"
expect_contains stdout 'module: command not found'
expect_not_contains stdout started

# A plain script of sbatch: its output is read where Slurm writes it. Of several jobs one that nobody knows ends nothing.
mkdir -p "$work/plain" && chmod 777 "$work/plain"
job=$(as_user bash -c 'cd plain && printf "#!/bin/bash\necho out; echo err >&2; exit 4\n" >job.sh && sbatch --parsable -e errors job.sh')
expect_exit 4 m watch "$job"
expect_contains stdout out err
expect_exit 0 m logs "$job"
expect_equal "$(sort "$OUT" | tr '\n' ' ')" 'err out ' 'output of a plain job'
expect_exit 125 m logs "$job" --rank 0
expect_contains stderr "job $job: no files by rank" 'leave out --rank'
expect_exit 4 m watch "$job" --rank 0
expect_contains stderr 'note: no files by rank'
expect_exit 125 m watch 999 "$job"
expect_contains stderr 'job 999: the scheduler does not know it (any more)'
expect_contains stdout out
job=$(as_user bash -c 'cd plain && printf "#!/bin/bash\necho task \$SLURM_ARRAY_TASK_ID\n" >array.sh && sbatch --parsable --array=0-2 array.sh')
expect_exit 0 m watch "$job"
expect_exit 0 m logs "$job"
expect_equal "$(cat "$OUT")" "[${job}_0] task 0
[${job}_1] task 1
[${job}_2] task 2" 'tasks of a plain array'

# Its muster run may leave the ranks' files in any folder.
cat >"$work/plain/run.sh" <<SH
#!/bin/bash
#SBATCH -n 2
echo mine
$work/prefix/bin/muster run -q --output-dir results -- bash -c 'echo "rank \$RANK"'
SH
job=$(as_user bash -c 'cd plain && sbatch --parsable run.sh')
in_plain() { as_user bash -c 'cd plain && exec "$@"' - "$work/prefix/bin/muster" "$@"; }
expect_exit 0 in_plain watch "$job"
expect_equal "$(sort "$OUT")" '[0] rank 0
[1] rank 1
mine' 'what is watched of a plain job with a run'
expect_exit 0 in_plain logs "$job" --rank 1
expect_equal "$(cat "$OUT")" '[1] rank 1' 'rank 1 of a plain job'

# Again: in this shell, and as a job.
expect_exit 0 m rerun "muster-runs/$ended" --submit
job=$(sed -n 's/^job //p' "$OUT")
expect_exit 3 m watch "$job"

# A shell with nodes, in which muster run just works.
expect_exit 0 m alloc --site generic-slurm --gpus 2 --time 5min -- muster run -- bash -c 'echo "rank $RANK of $WORLD_SIZE on $(hostname)"'
expect_matches stdout '^rank 0 of 2 on node' '^rank 1 of 2 on node'
expect_exit 0 m alloc --file job.toml -- echo 'mine, and not that of the file'
expect_equal "$(cat "$OUT")" 'mine, and not that of the file' 'the program of the command line'

# Refused before anything is queued.
expect_exit 2 m submit --site generic-slurm --time 5min --gpus 40 --gpus-per-node 4 -- true
expect_contains stderr 'sbatch --test-only refuses the job' 'not available'
expect_exit 125 m watch 999
expect_contains stderr 'the scheduler does not know it'
expect_exit 125 m logs 999
expect_contains stderr 'job 999: the scheduler does not know it (any more), and there is no output in'

# Why a job never started is shown, too.
job=$(as_user sbatch --parsable --hold --wrap 'exit 3')
waits=$(as_user sbatch --parsable --dependency="afterok:$job" --kill-on-invalid-dep=yes --wrap true)
as_user scontrol release "$job"
wait_until 60 has_ended "$waits"
expect_exit 0 m show "$waits"
expect_matches stdout '^state +CANCELLED' '^why +the job that it depends on did not end as it must \(DependencyNeverSatisfied\)'
expect_exit 143 m watch "$waits"
expect_contains stderr "job $waits: CANCELLED before it started: the job that it depends on did not end as it must"
# Nor is one taken that is to wait for the success of a job that has failed; sbatch does not say why.
expect_exit 2 m submit --site generic-slurm --time 5min --gpus 1 --after "ok:$job" -- true
expect_contains stderr "job $job has ended: FAILED, exit code 3" "so --after ok:$job cannot come true"
# Of an array the task that failed is named, wherever it stands.
submit --gpus 1 --array 0-1 -- bash -c 'exit $((MUSTER_ARRAY_INDEX * 4))'
expect_exit 4 m watch "$job"
expect_exit 2 m submit --site generic-slurm --time 5min --gpus 1 --after "$job" -- true
expect_contains stderr "job ${job}_1 has ended: FAILED, exit code 4" "so --after ok:$job cannot come true"
expect_not_contains stderr --no-check "${job}_0"

# Slurm 22.05 takes a job that it does not know as one that ended as wanted, 24.11 refuses it; muster's record of it knows better. 40000 is the job `ended` under a number that Slurm does
# not know.
records=$(as_user bash -c 'echo "${XDG_STATE_HOME:-$HOME/.local/state}/muster/jobs"')
as_user bash -c 'sed "s/\"id\": *\"$1\"/\"id\": \"40000\"/" "$2/slurm-$1.json" >"$2/slurm-40000.json" && cp -r "muster-runs/$1" muster-runs/40000 &&
    sed -i "s/\"job_id\": *\"$1\"/\"job_id\": \"40000\"/" muster-runs/40000/run.json' - "$ended" "$records"
expect_exit 2 m submit --site generic-slurm --time 5min --gpus 1 --after 40000 -- true
expect_contains stderr "job 40000 has ended with exit code 3, as $work/muster-runs/40000/run.json says; so --after ok:40000 cannot come true: leave it out, or name another job"
as_user sbatch --test-only --dependency=afterok:40001 --wrap true >"$OUT" 2>"$ERR" && slurm=0 || slurm=2
expect_exit $slurm m submit --site generic-slurm --time 5min --gpus 1 --check-only --after notok:40000 -- true
expect_not_contains stderr 'note: the scheduler does not know'
expect_exit 0 m submit --site generic-slurm --time 5min --gpus 1 --check-only --no-check --after 40000 -- true
expect_exit $slurm m submit --site generic-slurm --time 5min --gpus 1 --check-only --after 40001 -- true
expect_contains stderr 'note: the scheduler does not know job 40001 (any more); Slurm 22.05 takes it as one that has ended as --after ok wants'

# Who has saved learns which job goes on, and when none is left. Jobs on other nodes see the test's word as a file, and have to look for it.
m submit --site generic-slurm --time 5min --gpus 1 --chain 3 --job-name used -- bash -c 'until [ -e "go.$MUSTER_CHAIN_LINK" ]; do sleep 0.05; done; exit 75' >"$OUT" 2>"$ERR"
jobs=($(sed -n 's/^job //p' "$OUT"))
m watch "${jobs[@]}" >"$OUT" 2>"$ERR" &
as_user touch go.1
wait_until 60 grep -q "job ${jobs[0]}: saved, and goes on in job ${jobs[1]}$" "$ERR"
as_user touch go.2
wait_until 60 grep -q "job ${jobs[1]}: saved, and goes on in job ${jobs[2]}$" "$ERR"
as_user touch go.3
wait $!
expect_equal $? 75 'code of a chain that is used up'
expect_contains stderr "job ${jobs[2]}: saved, and no other job of the chain waits or runs: submit it again if there is work left"
