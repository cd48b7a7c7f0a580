# Commands about jobs where something is missing, fails once, fails half-way or is valid and unusual. PBS by fakes of its commands.
# parts: jobs
. "$(dirname "$0")/lib.sh"
export HOME=$PWD/home XDG_STATE_HOME=$PWD/state XDG_CONFIG_HOME='' MUSTER_SITE_PATH=''
mkdir home bin job
fakes=$PWD/bin
records=$PWD/state/muster/jobs
for tool in bash sh sed cat id dirname mkdir rm touch true env python3; do ln -sf "$(type -P $tool)" "$fakes/$tool"; done
write_fake() { { printf '#!/bin/bash\nhere=%q\n' "$fakes"; cat; } >"$fakes/$1" && chmod 755 "$fakes/$1"; }
pbs() { PATH=$fakes "$MUSTER" "$@"; }
cd job || exit 1
options=(--site generic-pbs --gpus 1 --time 1h)

# What is valid is not refused, what is certainly missing is.
write_fake julia </dev/null
printf 'true\n' >"$fakes/on-path.sh"
valid() { expect_exit 0 env PATH="$fakes:$PATH" "$MUSTER" submit "${options[@]}" --dry-run "$@"; }
valid -- bash -lc 'echo none.sh'
valid -- julia -t 4 none.jl
valid -- python3 -uc 'print(1)'
valid -- python3 -m none
valid -- bash -o pipefail none.sh
valid -- bash on-path.sh
valid --stage-in "$MUSTER_SOURCE_DIR/README.md:/tmp/data" -- python3 /tmp/data/train.py
valid --setup 'git clone somewhere' -- python3 none.py
touch image.sif
valid --container image.sif --container-runtime apptainer -- python3 none.py
valid --container docker://none/none -- python3 none.py
valid --container nvcr.io/nvidia/pytorch:24.01-py3 -- python3 none.py
valid --container /tmp/data/image.sif --stage-in image.sif:/tmp/data -- python3 none.py
for image in none.sif ./none /tmp/none.sqsh; do
    expect_exit 2 "$MUSTER" submit "${options[@]}" --dry-run --container "$image" -- python3 none.py
    expect_contains stderr "--container $image: there is no such image in $PWD, where the job would start"
done
expect_exit 2 "$MUSTER" submit "${options[@]}" --dry-run --venv none -- true
expect_contains stderr "--venv none: there is no none/bin/activate in $PWD, where the job would start; check the name, or give --no-check"
valid --venv none --no-check -- true
valid --venv none --setup 'python3 -m venv none' -- true
mkdir -p env/bin && touch env/bin/activate
valid --venv env -- true
for command in 'python3 none.py' 'python3 -u -W ignore none.py' 'bash -e none.sh' 'sh ./on-path.sh'; do
    # shellcheck disable=SC2086
    expect_exit 2 env PATH="$fakes:$PATH" "$MUSTER" submit "${options[@]}" --dry-run -- $command
    expect_contains stderr ': no such file for ' " in $PWD, where the job would start"
done

# A script is looked for in the folder that the ranks will be in.
mkdir sub
touch sub/there.py here.py
printf '[job]\nwd = "sub"\n' >wd.toml
valid --file wd.toml -- python3 there.py
expect_exit 2 "$MUSTER" submit "${options[@]}" --dry-run --file wd.toml -- python3 here.py
expect_contains stderr "here.py: no such file for python3 in $PWD/sub"

# Without the scheduler's programs that is said, and nothing is written.
expect_exit 125 pbs alloc --site generic-slurm --gpus 1 --time 1h
expect_contains stderr 'salloc is not on PATH'
for check in --check --no-check; do
    expect_exit 125 pbs submit --site generic-slurm --gpus 1 --time 1h $check -- true
    expect_contains stderr 'sbatch is not on PATH' 'login node'
done
expect_true test ! -e muster-runs

# The program of the command line is that of the shell, whatever a job file says.
printf '[job]\nsite = "generic-slurm"\ngpus = 1\ntime = "1h"\ncommand = ["python3", "here.py"]\n' >muster.toml
expect_exit 0 "$MUSTER" alloc --dry-run -- my-program 'a b'
expect_matches stdout "^salloc .* my-program 'a b'$"
expect_exit 0 "$MUSTER" alloc --dry-run
expect_not_contains stdout here.py
rm muster.toml

# Script and record may hold secrets.
write_fake qsub <<'SH'
n=$(($(cat "$here/submitted" 2>/dev/null) + 1))
echo $n >"$here/submitted"
if [ $n = 3 ]; then echo 'qsub: would exceed queue limit' >&2; exit 1; fi
echo $n.fakeserver
SH
expect_exit 0 pbs submit "${options[@]}" --env TOKEN=hidden -- true
expect_equal "$(stat -c %a muster-runs/1.fakeserver.sh "$records/pbs-1.fakeserver.json" | tr '\n' ' ')" '700 600 ' 'modes'

write_fake qstat <<'SH'
[ ! -e "$here/queued" ] || echo "Job Id: $(cat "$here/queued")|Job_Name=any|Job_Owner=$(id -un)@here|job_state=Q"
SH
# Of a chain that is refused half-way the jobs that are queued are recorded.
expect_exit 2 pbs submit "${options[@]}" --chain 3 -- true
expect_contains stderr 'job 2 of the 3 of the chain: qsub refuses the job: qsub: would exceed queue limit' 'muster cancel 2.fakeserver' \
    "or submit what is missing by qsub -j oe -o $PWD/muster-runs/ -W depend=afterany:2.fakeserver -v MUSTER_CHAIN_START=2 $PWD/muster-runs/2.fakeserver.sh"
expect_true test -e "$records/pbs-2.fakeserver.json" -a -e muster-runs/2.fakeserver.sh

# While a chain waits or runs no other one begins by its name in its folder: they would end each other.
echo 2.fakeserver >"$fakes/queued"
expect_exit 2 pbs submit "${options[@]}" --chain 2 -- true
expect_contains stderr "the chain 'muster' of this folder, whose first job is 2.fakeserver, still has jobs that wait or run (2.fakeserver)" \
    --job-name 'muster cancel 2.fakeserver'
expect_equal "$(cat "$fakes/submitted")" 3 'jobs that qsub was asked for'
expect_exit 0 pbs submit "${options[@]}" --chain 2 --job-name another -- true
expect_exit 0 pbs submit "${options[@]}" -- true
mkdir beside && cd beside || exit 1
expect_exit 0 pbs submit "${options[@]}" --chain 2 -- true
cd ..
rm "$fakes/queued"
# The commands in the JSON are of all jobs: an end of the first alone would let the others start.
expect_exit 0 pbs submit "${options[@]}" --chain 2 --json -- true
expect_true python3 - "$OUT" <<'PY'
import json, sys
job = json.load(open(sys.argv[1]))
assert len(job["ids"]) == 2, job
assert job["watch"] == ["muster", "watch", *job["ids"]], job
assert job["cancel"] == ["muster", "cancel", *job["ids"]], job
PY

# A question that fails once ends nothing, and is told once.
write_fake qstat <<'SH'
case $(cat "$here/next") in
    fails) echo ended >"$here/next"; echo 'qstat: cannot connect to server' >&2; exit 1 ;;
    ended) echo 'Job Id: 1.fakeserver|Job_Name=muster|job_state=F|stime=x|Exit_status=4' ;;
    # A job with two runs in it, between which it is asked for.
    first) echo second >"$here/next"; state=R
        mkdir -p muster-runs/1.fakeserver/rank.00
        echo one >muster-runs/1.fakeserver/rank.00/stdout
        echo '{"exit": {"code": 0}}' >muster-runs/1.fakeserver/run.json ;;
    second) echo ended >"$here/next"; state=R
        mkdir -p muster-runs/1.fakeserver.2/rank.00
        echo two >muster-runs/1.fakeserver.2/rank.00/stdout ;;
esac
[ -z "${state:-}" ] || echo "Job Id: 1.fakeserver|Job_Name=muster|job_state=$state"
SH
echo fails >"$fakes/next"
expect_exit 4 pbs watch 1
expect_equal "$(grep -c 'does not answer' "$ERR")" 1 'notes of a scheduler that does not answer'
expect_contains stderr 'qstat: cannot connect to server'

# logs --follow goes on while the job does, and ends with it, also if no run has told how it ended. PBS' server may be left out.
echo first >"$fakes/next"
expect_exit 0 pbs logs --follow 1
expect_equal "$(cat "$OUT")" '[0] one
[0] two' 'what is followed'
expect_exit 0 pbs logs 1
expect_equal "$(wc -l <"$OUT")" 2 'lines of the log'
expect_exit 125 pbs logs --follow 77
expect_contains stderr 'job 77: the scheduler does not know it'
# Nor is a run waited for that was killed, and so has no end in its record: in a job that the scheduler has forgotten, or without any scheduler.
mkdir -p muster-runs/4194305/rank.00 empty
echo last >muster-runs/4194305/rank.00/stdout
echo "{\"schema\": \"muster.run/1\", \"host\": \"$(hostname -s)\", \"process\": {\"pid\": 4194305, \"start_ticks\": 1}}" >muster-runs/4194305/run.json
cp -r muster-runs/4194305 muster-runs/78
for folder in "$fakes" "$PWD/empty"; do
    number=78 && [ "$folder" = "$fakes" ] || number=4194305
    expect_exit 0 env PATH="$folder:/nowhere" "$(command -v timeout)" 20 "$MUSTER" logs --follow $number
    expect_equal "$(cat "$OUT")" '[0] last' 'what is followed'
done
mkfifo muster-runs/78/run.json.pipe && mv muster-runs/78/run.json.pipe muster-runs/78/run.json
expect_exit 0 pbs logs --follow 78 # a pipe for a record is not waited for

# The number of runs counts up beside the folder, also where its name ends in a slash; a run that found no place is recorded.
mkdir runs && cd runs || exit 1
for _ in 1 2; do expect_exit 0 env SLURM_JOB_ID=7 SLURM_JOB_NODELIST="$(hostname -s)" SLURM_TASKS_PER_NODE=1 "$MUSTER" run -q --output-dir 'logs/%j/' -- true; done
expect_equal "$(ls logs | tr '\n' ' ')" '7 7.2 ' 'run folders'
expect_exit 125 "$MUSTER" run -q -n 1 --cpus-per-rank 100000 --output-dir nowhere -- true
expect_true python3 -c 'import json; run = json.load(open("nowhere/run.json")); assert run["exit"]["code"] == 125 and run["exit"]["cause"], run'

# Again, with paths that are meant from where it was launched, and with the variables that it had.
mkdir deep
printf 'import os\nprint(os.environ["NAME"], os.getcwd())\n' >deep/show.py
export NAME=one MY_TOKEN=hidden
expect_exit 0 "$MUSTER" run -q -n 1 --wd deep --output-dir 'out/%j' -x NAME -x MY_TOKEN -- python3 show.py
mv out/* first
NAME=two
cd deep || exit 1
expect_exit 0 "$MUSTER" rerun ../first
expect_equal "$(cat "$OUT")" "one $PWD" 'what the second run prints'
expect_true test -e ../out -a ! -e out
unset MY_TOKEN
expect_exit 2 "$MUSTER" rerun ../first
expect_contains stderr 'given MY_TOKEN by --env' 'set it again'
MY_TOKEN=hidden expect_exit 0 env MY_TOKEN=hidden "$MUSTER" rerun ../first
mv show.py gone.py
expect_exit 2 env MY_TOKEN=hidden "$MUSTER" rerun ../first
expect_contains stderr --no-check
expect_exit 2 env MY_TOKEN=hidden "$MUSTER" rerun --no-check ../first
expect_contains stderr "can't open file"
expect_equal "$(stat -c %a ../first/environment)" 600 'mode of the environment'

# What a job's script told its program is told again; the folder of results, which the script had made, must be there.
expect_exit 0 env MUSTER_ARRAY_INDEX=3 MUSTER_SYNC_DIR="$PWD/its results" "$MUSTER" run -q -n 1 --output-dir task -- bash -c 'echo "task $MUSTER_ARRAY_INDEX to $MUSTER_SYNC_DIR"'
expect_exit 2 "$MUSTER" rerun task
expect_contains stderr "its results', which its job's script had made" 'mkdir -p' --submit
mkdir 'its results'
expect_exit 0 "$MUSTER" rerun task
expect_equal "$(cat "$OUT")" "task 3 to $PWD/its results" 'what the second run is told'
expect_contains stderr "the script of that run's job had it: MUSTER_ARRAY_INDEX=3"
expect_exit 0 env MUSTER_ARRAY_INDEX=4 "$MUSTER" rerun task
expect_contains stdout 'task 4 to'
