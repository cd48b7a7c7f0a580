# muster logs without a scheduler: what a script prints between the lines of its ranks, and run folders of other names than muster-runs/ID.
# parts: jobs
. "$(dirname "$0")/lib.sh"
export HOME=$PWD/home XDG_STATE_HOME=$PWD/state XDG_CONFIG_HOME='' MUSTER_SITE_PATH=''
mkdir home empty muster-runs
logs() { env PATH="$PWD/empty" "$MUSTER" logs "$@"; } # no scheduler's command is found

# A script with two runs: what it prints itself stands where it was printed, and once. Its last line has no end.
cat >script.sh <<'SH'
echo 'loading modules'
nosuchmodule load cuda
"$1" run -q -n 2 --output-dir muster-runs/7 -- sh -c 'echo "first of $RANK"; echo "bad $RANK" >&2'
echo between
"$1" run -q -n 1 --output-dir muster-runs/7.2 -- sh -c 'echo second; exit 3'
printf 'code %d' $?
SH
bash script.sh "$MUSTER" >muster-runs/7.out 2>&1
expect_exit 0 logs 7
expect_equal "$(grep -v '^muster: ' "$OUT")" 'loading modules
script.sh: line 2: nosuchmodule: command not found
[0] first of 0
[0] bad 0
[1] first of 1
[1] bad 1
between
[0] second
code 3' 'lines of a script and its ranks'
expect_contains stdout 'muster: error: rank 0 on '
expect_empty stderr
expect_exit 0 logs 7 --rank 1
expect_equal "$(cat "$OUT")" '[1] first of 1
[1] bad 1' 'lines of one rank'
expect_true python3 - <<'PY'
import json, os
first, second = (json.load(open("muster-runs/%s/run.json" % n))["output"] for n in ("7", "7.2"))
assert len(first) == len(second) == 1 and first[0]["file"] == os.path.realpath("muster-runs/7.out"), (first, second)
text = open("muster-runs/7.out", "rb").read()
assert text[: first[0]["from_byte"]].endswith(b"not found\n"), first
assert text[first[0]["to_byte"] : second[0]["from_byte"]] == b"between\n", (first, second)
PY

# A run whose output goes through a pipe cannot say where it stands, so the script's lines are somewhere among the ranks'.
bash -c 'echo mine; "$0" run -q -n 1 --output-dir muster-runs/8 -- echo rank | cat' "$MUSTER" >muster-runs/8.out 2>&1
expect_exit 0 logs 8
expect_equal "$(cat "$OUT")" '[0] rank' 'lines of a run behind a pipe'
expect_contains stderr "note: what the job's script itself wrote stands in $PWD/muster-runs/8.out, among the lines of the ranks"

# A run that writes elsewhere: the job's own file is the script's alone, and nothing says between which of its lines the run was.
cat >script.sh <<'SH'
echo 'loading modules'
"$1" run -q -n 1 --output-dir muster-runs/9 -- echo rank >train.log 2>&1
echo 'after the run'
SH
bash script.sh "$MUSTER" >muster-runs/9.out 2>&1
expect_exit 0 logs 9
expect_equal "$(cat "$OUT")" '[0] rank
loading modules
after the run' 'lines of a script whose run writes elsewhere'
expect_empty stderr

# A launcher that is killed leaves no end of its part: it is where the next run begins, and the note tells that lines of the script may be in it.
cat >script.sh <<'SH'
echo 'before'
"$1" run -q -n 1 --output-dir muster-runs/10 -- sh -c 'echo first; exec sleep 100' &
until grep -qs first muster-runs/10/rank.00/stdout && grep -q first muster-runs/10.out; do sleep 0.01; done
kill -9 "$(ps -o pid= --ppid $! | head -n 1)"
wait $!
"$1" run -q -n 1 --output-dir muster-runs/10.2 -- echo second
echo 'after'
SH
bash script.sh "$MUSTER" >muster-runs/10.out 2>&1
expect_exit 0 logs 10
expect_equal "$(grep -v '^muster: ' "$OUT")" 'before
[0] first
[0] second
after' 'lines of a script of which a run was killed'
expect_equal "$(cat "$ERR")" "muster: note: a run was killed; what the job's script wrote after it, if anything, stands in $PWD/muster-runs/10.out, among the lines of the ranks" 'note of a killed run'

# The ranks' files are found by the number of the job in the record of the run, in a folder of this one or one below it, or where --output-dir leads.
in_job() { env SLURM_JOB_ID=31 SLURM_JOB_NODELIST="$(hostname)" SLURM_JOB_NUM_NODES=1 "SLURM_TASKS_PER_NODE=1" SLURM_NTASKS=1 "$MUSTER" run -q -n 1 "$@"; }
for folder in 'logs/run-%j' results 'far/far/away/%j'; do
    rm -rf logs results
    expect_exit 0 in_job --output-dir "$folder" -- echo "in $folder"
    case $folder in
        far*)
            expect_exit 125 logs 31 --rank 0
            expect_contains stderr "job 31: no output in $PWD/muster-runs/31 (yet), no run of it in another folder here or one below" 'or give the --output-dir of its muster run'
            expect_exit 125 logs 31 --output-dir nowhere/%j
            expect_contains stderr "job 31: no output in $PWD/nowhere/31 (yet), and the scheduler names no file of it that is there; go to the folder that it was submitted from"
            echo "the script's" >muster-runs/31.out # that folder is of the ranks alone
            expect_exit 0 logs 31 --output-dir "$folder"
            expect_equal "$(cat "$OUT")" "[0] in $folder
the script's" "both outputs of a job whose run is in $folder"
            expect_exit 0 logs 31 --rank 0 --output-dir "$folder"
            ;;
        *) expect_exit 0 logs 31 --rank 0 ;;
    esac
    expect_equal "$(cat "$OUT")" "[0] in $folder" "the log of a run in $folder"
done

# A run by its folder, of no job at all: what its ranks wrote, and what became of it, with its generations.
expect_exit 3 "$MUSTER" run -q -n 2 --output-dir alone --max-restarts 1 -- sh -c 'echo "rank $RANK of $MUSTER_LIFE"; [ $RANK = 0 ] || exit 3; sleep 60'
expect_exit 0 logs alone
expect_equal "$(sort "$OUT" | paste -sd';')" '[0] rank 0 of 0;[1] rank 1 of 0;[g1:0] rank 0 of 1;[g1:1] rank 1 of 1' 'lines of a run outside of a scheduler'
expect_exit 0 logs ./alone/ --rank 1 --grep 'of 1' --follow
expect_equal "$(cat "$OUT")" '[g1:1] rank 1 of 1' 'lines of one rank of one generation'
# Followed, a run that was killed has an end too, whoever has its process' number now.
"$MUSTER" run -q -n 1 --output-dir killed -- sh -c 'echo begun; exec sleep 1000' >/dev/null 2>&1 &
PID=$!
wait_until 20 grep -qs begun killed/rank.00/stdout
expect_true python3 -c 'import json, sys; assert json.load(open("killed/run.json"))["process"]["pid"] == int(sys.argv[1])' "$PID"
kill -9 $(cat "/proc/$PID/task/$PID/children") # the launcher, which then records no end; its guardian ends the rank
wait "$PID" 2>/dev/null
expect_exit 0 "$(command -v timeout)" 60 "$MUSTER" logs killed --follow
expect_equal "$(cat "$OUT")" '[0] begun' 'what is followed of a killed run'
expect_contains stderr "the run was killed: process $PID of $(hostname -s) is gone"
sed -i "s/\"pid\": $PID/\"pid\": $$/" killed/run.json
expect_exit 0 "$(command -v timeout)" 60 "$MUSTER" logs killed --follow
expect_contains stderr "process $$ of"
# A record that is damaged is told by file and field.
for damage in 's/"version": "[^"]*"/"version": 7/' 's/"options": \[/"options": 5, "rest": [/' 's/"allocation": {/"allocation": 3, "rest": {/' 's/"schema": "[^"]*"/"schema": ["x"]/' 's/^{/[{/'; do
    mkdir -p damaged && sed "$damage" alone/run.json >damaged/run.json && chmod 600 damaged/run.json
    expect_exit 2 "$MUSTER" rerun damaged
    expect_contains stderr damaged/run.json
    expect_not_contains stderr json.exception
    case $damage in *version* | *options* | *allocation* | *schema*) expect_contains stderr "the key '$(sed 's|s/"\([a-z]*\).*|\1|' <<<"$damage")'" ;; esac
done
expect_exit 0 env PATH="$PWD/empty" "$MUSTER" show alone
expect_matches stdout "^run +$PWD/alone$" '^exit code +3$' '^generation 0 +2 ranks: .*exited with code 3'
expect_exit 0 env PATH="$PWD/empty" "$MUSTER" show --json alone
expect_true python3 -c 'import json, sys; runs = json.load(open(sys.argv[1]))["runs"]; assert runs[0]["run"]["exit"]["code"] == 3, runs' "$OUT"
expect_exit 2 env PATH="$PWD/empty" "$MUSTER" cancel alone
expect_contains stderr "'alone' is the folder of a run" 'muster show alone and muster logs alone'
for word in status ps; do
    expect_exit 2 "$MUSTER" $word
    expect_contains stderr "no command '$word'; muster jobs lists your jobs"
done
expect_exit 2 "$MUSTER" sweep --lr 0.1,0.01
expect_contains stderr "no command 'sweep'; muster submit --each NAME=V,V… submits a job for each value"
