# Job files, dry runs, refusals and run folders without a scheduler; PBS by fakes of qsub, qstat and qdel.
# parts: jobs
. "$(dirname "$0")/lib.sh"
export HOME=$PWD/home XDG_STATE_HOME=$PWD/state XDG_CONFIG_HOME='' MUSTER_SITE_PATH=''
mkdir home bin job
fakes=$PWD/bin
cd job || exit 1

# A starter folder; nothing that is there is written over.
expect_exit 0 "$MUSTER" init .
expect_contains stdout 'wrote     muster.toml' 'wrote     train.py' 'wrote     resume.py' 'wrote     job.sh'
amount=$(sed -nE 's/^(gpus|ranks) = 2 .*/--\1/p' muster.toml) # as the machine has GPUs, or none
expect_exit 0 "$MUSTER" script --site "$(sed -n 's/^site = "\(.*\)" .*/\1/p' muster.toml)" "$amount" 2 --time 10min --job-name train --env OMP_NUM_THREADS=1 -- python3 train.py
expect_true cmp "$OUT" job.sh
expect_exit 0 "$MUSTER" config check muster.toml
printf 'mine\n' >train.py
expect_exit 0 "$MUSTER" init .
expect_contains stdout 'left      train.py'
expect_equal "$(cat train.py)" mine 'train.py'
expect_exit 0 "$MUSTER" init --site polaris elsewhere
expect_contains stderr 'note: job.sh is not written: ' 'polaris needs a queue'
expect_true [ -e elsewhere/train.py -a ! -e elsewhere/job.sh ]
rm -r muster.toml elsewhere
# Settings alone stay as they are, and the job stands in a file of its own.
mkdir settings && printf 'tag-output = true\n' >settings/muster.toml
expect_exit 0 "$MUSTER" init --site generic-slurm settings
expect_contains stdout 'wrote     settings/job.toml' 'muster submit --file job.toml --dry-run'
expect_equal "$(cat settings/muster.toml)" 'tag-output = true' muster.toml
expect_exit 0 "$MUSTER" submit --file settings/job.toml --dry-run --no-check
# No GPU, as the site's file or the scheduler says: ranks.
printf 'name = "cpus"\ndescription = "d"\nscheduler = "slurm"\n[source]\nfacts = "f"\ndate = 2026-01-01\n[node]\ngpus = 0\ncores = 8\ncpus = 8\n[header]\ngpus_by = "none"\n' >cpus.toml
expect_exit 0 "$MUSTER" init --site ./cpus.toml cpus
expect_contains cpus/muster.toml 'ranks = 2'
expect_not_contains cpus/muster.toml gpus
expect_contains cpus/job.sh '#SBATCH --ntasks-per-node=2'
expect_not_contains cpus/job.sh gres gpus
expect_exit 2 "$MUSTER" submit --site ./cpus.toml --gpus 4 --time 1h --dry-run -- true
expect_contains stderr 'a node of cpus has no GPU' 'give --ranks 4'
expect_exit 0 "$MUSTER" submit --site ./cpus.toml --sweep 1,2,8 --time 1h --dry-run -- true
expect_contains stdout '#SBATCH --ntasks-per-node=8'
# A sweep of the program's options: what does not go together is refused, with a caret under it.
sweep() { expect_exit "$1" "$MUSTER" submit --site ./cpus.toml --ranks 1 --time 1h --dry-run --no-check "${@:2}"; }
sweep 0 --each lr=0.1,0.01 --each wd=0,1 --array %2 --job-name 'a{lr}' --output-dir 'out/{lr}-%j' -- echo --lr '{lr}' '--wd={wd}' '${x}' '{{lr}}'
expect_contains stdout '#SBATCH --array=0-3%2' '#SBATCH --job-name=a@' 'values_of_lr=(0.1 0.1 0.01 0.01)' 'values_of_wd=(0 1 0 1)' "--lr \"\$value_of_lr\" --wd=\"\$value_of_wd\" '\${x}' '{lr}'" 'JobName=a"$value_of_lr"'
sweep 0 --array 0-3 -- echo '{index}' '{lr}'
expect_contains stdout "echo \"\$MUSTER_ARRAY_INDEX\" '{lr}'"
sweep 2 --each lr=0.1,0.01 -- echo 'x={lr}' '--x={ls}'
expect_contains stderr 'no --each gives {ls} values; known are {lr}, {index}' '--x={ls}' '    ^'
sweep 2 --each lr=0.1,0.01 --each wd=0,1 -- echo '{lr}'
expect_contains stderr 'no word of the program has {wd}' 'wd=0,1' '^'
sweep 2 --each lr=0.1,0.01 --job-name 'a{wd}' -- echo '{lr}'
expect_contains stderr '--job-name: no --each gives {wd} values'
sweep 2 --each lr=0.1,0.01 --job-name '{lr}:{index}' -- echo '{lr}'
expect_contains stderr '--job-name' 'only letters, digits'
sweep 2 --each lr=0.1 -- echo '{lr}'
expect_contains stderr 'one value makes no sweep'
sweep 2 --each lr=1,2 --each lr=3,4 -- echo '{lr}'
expect_contains stderr 'lr has values already'
sweep 2 --each lr=1,2 --sweep 1,1 -- echo '{lr}'
expect_contains stderr '--sweep and --each both make an array'
sweep 2 --each lr=1,2 --array 0-1 -- echo '{lr}'
expect_contains stderr '--array %2'
sweep 2 --each lr=1,2 --chain 2 -- echo '{lr}'
expect_contains stderr '--chain and an array do not go together'
sweep 2 --each lr=1,2 --each wd=0,1 --output-dir 'out/{lr}' -- echo '{lr}{wd}'
expect_contains stderr 'jobs 0 and 1 of the sweep would both write to'
expect_exit 2 "$MUSTER" alloc --site ./cpus.toml --ranks 1 --time 1h --dry-run --each lr=1,2
expect_contains stderr 'an allocation is one job'
expect_exit 0 "$MUSTER" submit --site ./cpus.toml --ranks 1 --time 1h --dry-run -- echo --lr '{lr}'
expect_contains stderr 'the program gets {lr} as it is: --each lr=V,V makes a job with each value'
expect_exit 0 "$MUSTER" submit --site ./cpus.toml --ranks 1 --time 1h --dry-run -- echo '${lr}' '{print}x'
expect_exit 2 "$MUSTER" submit --site generic-pbs --gpus 1 --gpus-per-node 1 --time 1h --dry-run --no-check --each lr=1,2 --job-name 'a{lr}' -- echo '{lr}'
expect_contains stderr 'the jobs of an array of pbs have one name'
expect_exit 0 "$MUSTER" plan --site ./cpus.toml --ranks 4
expect_exit 0 "$MUSTER" site show ./cpus.toml
expect_matches stdout '^  GPUs of a node +0$'
rm -r settings cpus cpus.toml

# A dry run prints every action and does none.
cat >job.toml <<'TOML'
[job]
site = "generic-pbs"
gpus = 8
gpus-per-node = 4
time = "1h"
job-name = "two words"
command = ["python3", "train.py", "a b"]
bind-to = "numa"
[job.env]
GREETING = "it's"
TOML
sed -i 's/"two words"/"first"/' job.toml
find . | sort >../before
expect_exit 0 "$MUSTER" submit --file job.toml --dry-run --gpus 4
find . | sort >../after
expect_true cmp ../before ../after
expect_contains stdout '#PBS -l select=1:' '#PBS -N first' "qsub -j oe -o $PWD/muster-runs/ $PWD/muster-runs/first-" '--bind-to numa' "python3 train.py 'a b'" "$PWD/muster-runs/%j"
expect_contains stderr 'job from job.toml: ' bind-to command
expect_exit 0 "$MUSTER" submit --file job.toml --dry-run --json
expect_true python3 - "$OUT" <<'PY'
import json, sys
actions = json.load(open(sys.argv[1]))["actions"]
assert [a["action"] for a in actions] == ["write", "run", "rename", "record"], actions
assert "select=2:" in actions[0]["text"]
PY

# Refusals, before anything is written.
expect_exit 2 "$MUSTER" submit --file none.toml
expect_contains stderr 'there is no such file'
printf '[job]\nsite = "generic-pbs"\ngpuz = 8\n' >wrong.toml
expect_exit 2 "$MUSTER" submit --file wrong.toml
expect_contains stderr "wrong.toml:3:1: job: unknown key 'gpuz'; did you mean 'gpus'?"
printf '[job]\nsite = "generic-pbs"\nfrobnicate = 8\n' >wrong.toml
expect_exit 2 "$MUSTER" submit --file wrong.toml
expect_equal "$(cat "$ERR")" "muster: error: wrong.toml:3:1: job: unknown key 'frobnicate'; muster run --help-all and muster script --help-all list all keys
  frobnicate = 8
  ^" 'what is said of a key that is near no other'
expect_exit 0 "$MUSTER" submit --file job.toml --dry-run --ranks 6
expect_contains stdout '#PBS -l select=1:ncpus=6:mpiprocs=6' '-n 6'
expect_contains stderr 'ranks (--ranks) are asked for, not gpus (job.toml:3)'
expect_exit 2 "$MUSTER" submit --file job.toml --dry-run -- python3 missing.py
expect_contains stderr 'missing.py: no such file for python3'
# The program is looked for where the ranks start.
mkdir other && printf 'print(1)\n' >other/only.py
for folder in "--wd $PWD/other" '--chdir other' '-D other'; do
    expect_exit 0 "$MUSTER" submit --file job.toml --dry-run $folder -- python3 only.py
    expect_contains stdout "--wd ${folder#* } "
done
expect_exit 0 "$MUSTER" script --site generic-pbs --ranks 2 --time 1h --wd other --tag-output -- python3 only.py
expect_contains stdout '--tag-output --wd other '
for line in "--chdir=$PWD/other" '-D other' "--chdir other"; do
    expect_exit 0 "$MUSTER" submit --site generic-slurm --ranks 2 --time 1h --dry-run --sbatch "$line" -- python3 only.py
done
expect_exit 2 "$MUSTER" submit --site generic-slurm --ranks 2 --time 1h --dry-run --sbatch '-D other' -- python3 none.py
expect_contains stderr "none.py: no such file for python3 in $PWD/other, where"
rm -r other
# Of several outputs Slurm takes the last; a folder of the nodes alone need not be here; what is appended to is not begun anew.
to() { expect_exit "$1" "$MUSTER" submit --site generic-slurm --ranks 1 --time 1h --dry-run "${@:2}" -- true; }
to 0 --sbatch=--output=lost/%j.out
expect_contains stderr "note: submit makes the folder $PWD/lost for the job's output lost/%j.out"
to 0 --sbatch=--output=lost/%j.out --sbatch='-o %j.out'
expect_not_contains stderr lost
to 0 --sbatch=--output="$PWD/lost/%j.out"
expect_contains stderr "note: submit makes the folder $PWD/lost"
to 0 --sbatch=--output=/nonexistent/me/%j.out
expect_contains stderr 'note: the job'"'"'s output is to go to /nonexistent/me/%j.out, and there is no folder /nonexistent/me here'
to 0 --sbatch=--output=out.log
expect_contains stderr 'note: each job that writes to out.log begins it anew; give each its own: out-%j.log'
to 0 --sbatch=--output=out.log --requeue --sbatch=--open-mode=truncate
expect_contains stderr 'begins it anew'
for append in --sbatch=--open-mode=append --requeue; do
    to 0 --sbatch=--output=out.log "$append"
    expect_not_contains stderr 'begins it anew'
done
# A run of another shape than the job would end at once.
printf '[job]\nsite = "generic-pbs"\nranks = 2\ntime = "1h"\nnnodes = 2\ncommand = "true"\n' >shape.toml
expect_exit 2 "$MUSTER" submit --file shape.toml --dry-run
expect_contains stderr 'shape.toml:5: nnodes = 2, but the job gets 1 node with 2 ranks on each' 'ranks and ranks-per-node'
expect_exit 0 "$MUSTER" submit --file shape.toml --dry-run --ranks-per-node 1
sed -i 's/nnodes = 2/slots-per-node = 1/' shape.toml
expect_exit 2 "$MUSTER" submit --file shape.toml --dry-run
expect_contains stderr 'shape.toml:5: slots-per-node = 1'
sed -i 's/slots-per-node = 1/slots-per-node = 2\nmax-restarts = 1\nspares = 1/' shape.toml
expect_exit 2 "$MUSTER" submit --file shape.toml --dry-run
expect_contains stderr 'shape.toml:5: slots-per-node = 2, but the job gets 1 node with 2 ranks and room for 1 more on each'
rm shape.toml
expect_exit 2 "$MUSTER" submit --file job.toml --dry-run -- no-such-program
expect_contains stderr no-such-program --no-check
expect_exit 2 "$MUSTER" submit --site generic-pbs --gpus 6 --gpus-per-node 4 --time 1h -- true
expect_contains stderr '6 GPUs do not fill whole nodes'
expect_exit 2 "$MUSTER" submit --site polaris --gpus 8 --time 2h --account A --queue debug -- true
expect_contains stderr "queue 'debug'"
expect_exit 125 "$MUSTER" submit --site workstation --gpus 1 -- true
expect_contains stderr 'no scheduler to submit to; start the program by muster run (a scaling study: without --submit)'
expect_exit 2 "$MUSTER" submit --site generic-pbs --gpus 1 --time 1h
expect_contains stderr 'the program is missing'
expect_exit 2 "$MUSTER" watch 'x;y'
expect_exit 2 "$MUSTER" cancel
expect_true test ! -e muster-runs

# Fakes of PBS' commands, which note how they were called.
write_fake() { { printf '#!/bin/bash\nprintf "%%q " "$0" "$@" | sed "s|^[^ ]*/||" >>"%s/calls"; echo >>"%s/calls"\n' "$fakes" "$fakes"; cat; } >"$fakes/$1"; chmod 755 "$fakes/$1"; }
write_fake qsub <<'SH'
echo 'the site says hello'
echo 12.fakeserver
SH
write_fake qdel </dev/null
# As OpenPBS 23.06 does: JSON holds the first of several jobs only; a server without a history says nothing for -x, not even of jobs that wait, and ends with 0.
write_fake qstat <<'SH'
here=$(dirname "$0")
case " $* " in *' json '*) echo '{"Jobs": {"12.fakeserver": {}}}'; exit 0 ;; esac
if [ -e "$here/no-history" ]; then
    case " $* " in *' -x '*) echo 'qstat: PBS is not configured to maintain job history 12.fakeserver' >&2; exit 0 ;; esac
    [ ! -e "$here/ended" ] || { echo 'qstat: Unknown Job Id 12.fakeserver' >&2; exit 153; }
fi
if [ -e "$here/ended" ]; then state='F|stime=Mon Nov 23 06:52:59 2026|Exit_status=271'; else state='Q|comment=Not Running: Insufficient amount of resource: ngpus'; fi
row() { echo "Job Id: $1|Job_Name=first|Job_Owner=$(id -un)@here|job_state=$2|Resource_List.nodect=2|Resource_List.walltime=01:00:00"; }
case " $* " in
    *'5[]'*)
        row '5[].fakeserver' 'F|stime=x|array=True|Exit_status=0'
        row '5[1].fakeserver' 'F|array_id=5[].fakeserver|stime=x|Exit_status=0'
        row '5[2].fakeserver' 'F|array_id=5[].fakeserver|stime=x|Exit_status=7'
        ;;
    *' 5 '* | *' 5.fakeserver '*)
        echo 'qstat: Unknown Job Id 5.fakeserver' >&2
        exit 153
        ;;
    *) row 12.fakeserver "$state" ;;
esac
SH
# Without Slurm's own commands on PATH.
for tool in bash sh sed cat id dirname printf env python3 cmp ls; do ln -sf "$(command -v $tool)" "$fakes/$tool"; done
pbs() { PATH=$fakes "$MUSTER" "$@"; }
expect_exit 0 pbs submit --file job.toml --hold
expect_equal "$(cat "$OUT")" 'job 12.fakeserver' 'what is printed'
expect_matches "$fakes/calls" "^qsub -j oe -o $PWD/muster-runs/ -h $PWD/muster-runs/first-[0-9-]*.sh $"
expect_true grep -q '^#PBS -l select=2:' muster-runs/12.fakeserver.sh
expect_true bash -n muster-runs/12.fakeserver.sh
expect_exit 0 pbs jobs
expect_matches stdout '^12.fakeserver +first +Q +2 +- +01:00:00 +Insufficient amount of resource: ngpus$'
expect_exit 0 pbs show 12.fakeserver
expect_matches stdout '^asked for +2 nodes, 4 ranks on each' '^site +generic-pbs$'
mkdir -p one-run && echo '{}' >one-run/run.json
expect_exit 2 pbs watch one-run
expect_contains stderr "'one-run' is the folder of a run, and watch takes the numbers of jobs; muster show one-run"
rm -r one-run
expect_exit 0 pbs submit --dry-run --site generic-pbs --ranks 2 --time 5min --no-check -- true
expect_contains stderr '1 node, 2 ranks on each, 00:05:00, no GPUs'
expect_exit 0 pbs cancel 12.fakeserver
expect_contains stdout 'job 12.fakeserver cancelled; it was Q'
# A server that keeps no history, as is PBS's default.
: >"$fakes/no-history"
expect_exit 0 pbs cancel 12.fakeserver
expect_contains stdout 'job 12.fakeserver cancelled; it was Q'
: >"$fakes/ended"
echo 'no such module' >muster-runs/12.fakeserver.OU # where PBS puts what the script has written
expect_exit 125 pbs watch 12.fakeserver
expect_contains stderr 'no run of it has left an exit code'
expect_contains stdout 'no such module'
echo 'job 2 of 2: the program has ended with 0 already; .muster-chain/first.done says so' >muster-runs/12.fakeserver.OU
expect_exit 0 pbs watch 12.fakeserver
expect_contains stderr 'it had nothing left to do'
# What ran this week, and how it ended: by what its run has left, or by the server.
expect_exit 0 pbs jobs
expect_not_contains stdout 12.fakeserver
expect_exit 0 pbs jobs --all
expect_matches stdout '^12.fakeserver +first +ended .* it had nothing left to do$'
rm "$fakes/no-history"
expect_exit 0 pbs jobs --all
expect_matches stdout '^12.fakeserver +first +F .* exit code [0-9]+'
# A server that does not answer: what is recorded here is shown, and that it is not all.
mv "$fakes/qstat" "$fakes/qstat.well"
printf 'echo "qstat: cannot connect to server pbs" >&2; exit 1\n' | write_fake qstat
expect_exit 1 pbs jobs --all
expect_matches stdout '^12.fakeserver +first +ended .* it had nothing left to do$'
expect_contains stderr 'qstat: cannot connect to server pbs; try again' "from muster's own records"
expect_exit 1 pbs jobs --all --json
expect_contains stdout '"id": "12.fakeserver"'
for option in '' --json; do
    expect_exit 125 pbs jobs $option
    expect_contains stderr 'qstat: cannot connect to server pbs'
done
mv "$fakes/qstat.well" "$fakes/qstat"
# No scheduler's command at all: the same, and without a record the commands that were looked for.
mkdir nowhere
alone() { env PATH="$PWD/nowhere" "$MUSTER" jobs "$@"; }
for option in '' --json; do
    expect_exit 1 alone --all $option
    expect_contains stdout 12.fakeserver
    expect_contains stderr 'neither squeue nor qstat nor flux is on PATH' "from muster's own records"
    expect_exit 125 alone $option
    expect_exit 125 env XDG_STATE_HOME="$PWD/nowhere" PATH="$PWD/nowhere" "$MUSTER" jobs --all $option
    expect_contains stderr 'neither squeue nor qstat nor flux is on PATH' 'do this on a login node'
    expect_not_contains stderr 'records'
done
expect_exit 143 pbs watch 12.fakeserver
expect_exit 7 pbs watch '5[]'
expect_matches stderr 'job 5\[2\].fakeserver: F, exit code 7'
expect_not_contains stderr '5[].fakeserver'
for number in 5 5.fakeserver; do # PBS does not know an array without its brackets
    expect_exit 7 pbs watch "$number"
    expect_matches stderr 'job 5\[2\].fakeserver: F, exit code 7'
    expect_exit 1 pbs cancel "$number"
    expect_matches stderr 'it has ended already \([0-9] F \(5\[1\].fakeserver, 5\[2\].fakeserver'
    expect_exit 0 pbs show "$number"
    expect_matches stdout '^state +5\[1\].fakeserver F$'
done
mkdir -p 'muster-runs/5[2].fakeserver/rank.00' && echo second >'muster-runs/5[2].fakeserver/rank.00/stdout'
expect_exit 0 pbs logs '5[].fakeserver'
expect_contains stdout 'second'
expect_exit 0 pbs logs 5
expect_contains stdout 'second'
: >"$fakes/calls"
expect_exit 143 pbs watch 12.fakeserver 12.fakeserver
expect_equal "$(grep -c '^qstat' "$fakes/calls")" 1 'questions about two jobs'
mkdir -p venv/bin && touch venv/bin/activate
expect_exit 0 "$MUSTER" submit --file job.toml --dry-run --chain 2 --venv venv
expect_contains stdout "qsub -j oe -o $PWD/muster-runs/ -W depend=afterany:ID1 -v MUSTER_CHAIN_START=2 $PWD/muster-runs/ID1.sh" '. venv/bin/activate'
# To sbatch a chain's number goes as a variable: --export with NAME=VALUE asks for a login environment.
expect_exit 0 "$MUSTER" submit --file job.toml --site generic-slurm --dry-run --chain 3
expect_contains stdout "env MUSTER_CHAIN_START=2 sbatch --parsable --output=$PWD/muster-runs/%j.out --dependency=afterany:ID1 --export=ALL $PWD/muster-runs/ID1.sh" \
    "env MUSTER_CHAIN_START=3 sbatch --parsable --output=$PWD/muster-runs/%j.out --dependency=afterany:ID2 --export=ALL $PWD/muster-runs/ID1.sh"
expect_not_contains stdout --export=ALL,
expect_exit 2 "$MUSTER" submit --file job.toml --dry-run --stage-in none.h5:/tmp/data
expect_contains stderr 'there is no none.h5 here'
expect_exit 0 pbs alloc --site generic-pbs --gpus 2 --time 1h --dry-run
expect_contains stdout 'qsub -I -N muster -l select=1:' "-v PATH=" ",MUSTER_OUTPUT_DIR=$PWD/muster-runs/%j,MUSTER_SITE=generic-pbs"
# Slurm's programs may lie on a cluster of PBS, where they have no configuration.
echo 'exit 1' | write_fake squeue
echo 'PBS_EXEC=/nowhere' >"$fakes/pbs.conf"
if [ ! -e /etc/slurm/slurm.conf ]; then
    expect_exit 125 pbs jobs --json # without pbs.conf it is Slurm
    expect_exit 0 env PBS_CONF_FILE="$fakes/pbs.conf" PATH="$fakes" "$MUSTER" jobs --json
    expect_contains stdout '"scheduler": "pbs"'
    write_fake sbatch </dev/null
    expect_exit 0 env PBS_CONF_FILE="$fakes/pbs.conf" PATH="$fakes" "$MUSTER" init on_pbs
    expect_true grep -q 'site = "generic-pbs"' on_pbs/muster.toml
    expect_exit 0 pbs init on_slurm
    expect_true grep -q 'site = "generic-slurm"' on_slurm/muster.toml
    rm "$fakes/sbatch"
fi
rm "$fakes/squeue"

# An imitation of flux that prints what flux-core 0.88.0 printed.
rm "$fakes/qsub" "$fakes/qstat" "$fakes/qdel"
write_fake flux <<SH
case "\$1 \$2" in
    'batch '*) printf '\xc6\x926tw1Mjm\n' ;;
    'jobs '*) sed 's/^[^\x1f]*\x1f\([^\n]*\x1fgood\)$/\xc6\x926tw1Mjm\x1f\1/' '$MUSTER_SOURCE_DIR/tests/fixtures/flux/jobs_0.88.0.txt' ;;
    'job eventlog') echo '1795580978.09 start' ;;
    'cancel '*) ;;
    *) exit 1 ;;
esac
SH
flux() { env -u FLUX_URI PATH="$fakes" "$MUSTER" "$@"; }
: >"$fakes/calls"
expect_exit 0 flux submit --file job.toml --site generic-flux --hold
expect_equal "$(cat "$OUT")" 'job f6tw1Mjm' 'what is printed'
expect_matches "$fakes/calls" "^flux batch --output=$PWD/muster-runs/.*id.f58plain.*.out --urgency=0 $PWD/muster-runs/first-[0-9-]*.sh $"
expect_true grep -q '^#FLUX: --nodes=2' muster-runs/f6tw1Mjm.sh
expect_true bash -n muster-runs/f6tw1Mjm.sh
echo 'written by the script' >muster-runs/f6tw1Mjm.out
for number in f6tw1Mjm $'\xc6\x926tw1Mjm'; do
    expect_exit 0 flux watch "$number"
    expect_contains stderr 'job f6tw1Mjm: COMPLETED after 0:00:01, exit code 0'
    expect_contains stdout 'written by the script'
    expect_exit 0 flux show --all "$number"
    expect_matches stdout '^site +generic-flux$' '^1795580978.09 start$'
done
expect_exit 1 flux cancel f6tw1Mjm
expect_contains stderr 'it has ended already (COMPLETED)'
expect_exit 0 flux jobs
expect_matches stdout ' held +SCHED .* it is held; release it by flux job urgency f[0-9A-Za-z]+ default'
expect_exit 0 flux submit --file job.toml --site generic-flux --dry-run --chain 2
expect_contains stdout "--dependency=afterany:ID1 --env=MUSTER_CHAIN_START=2 $PWD/muster-runs/ID1.sh"
expect_exit 0 flux alloc --site generic-flux --gpus 2 --time 1h --dry-run
expect_contains stdout 'flux alloc --job-name=muster --time-limit=60m --nodes=1 --nslots=2 --gpus-per-slot=1'
expect_exit 0 flux init on_flux
expect_true grep -q 'site = "generic-flux"' on_flux/muster.toml
cd ..

# A run folder for each run, with all that is needed to repeat it.
mkdir runs && cd runs || exit 1
export MY_TOKEN=hidden
mkfifo written # rank 1 fails once rank 0, which its end ends, has written
expect_exit 3 "$MUSTER" run -q -n 2 --output-dir 'logs/%j' -x SHOWN=1 -x OTHER_TOKEN=hidden -x GH_PAT=hidden -- \
    sh -c 'echo "$RANK $SHOWN"; if [ "$RANK" = 0 ]; then echo >written; else read -r _ <written; exit 3; fi'
expect_exit 0 "$MUSTER" run -q -n 1 --output-dir 'logs/%j' -- true
expect_equal "$(ls logs | wc -l)" 2 'run folders'
folder=$(dirname "$(grep -l SHOWN logs/*/run.json)")
expect_equal "$(grep -rl hidden logs)" '' 'files that hold a secret'
expect_equal "$(stat -c %a "$folder"/{environment,run.json} | tr '\n' ' ')" '600 600 ' 'modes of the records'
expect_true python3 - "$folder/run.json" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
assert run["exit"]["code"] == 3 and run["exit"]["rank"] == 1 and "exited with code 3" in run["exit"]["cause"], run["exit"]
assert {"name": "output-dir", "value": ["logs/%j"], "from": "command line", "where": "--output-dir"} in run["settings"], run["settings"]
assert "MY_TOKEN" in run["variables_left_out"] and len(run["places"]) == 2, run
PY
mv "$folder" kept
export OTHER_TOKEN=hidden GH_PAT=hidden
expect_exit 3 "$MUSTER" rerun kept
expect_equal "$(sort "$OUT")" "$(printf '0 1\n1 1')" 'what the second run prints'
expect_contains stderr '--output-dir' SHOWN=1
unset MY_TOKEN
sed -i 's/"version": "[^"]*"/"version": "0.0.1"/' kept/run.json
expect_exit 3 "$MUSTER" rerun kept
expect_contains stderr 'that run was of muster 0.0.1' 'leaves out as secrets' MY_TOKEN
expect_exit 2 "$MUSTER" rerun nothing
expect_exit 2 "$MUSTER" rerun kept --submit
expect_contains stderr 'no record of'

# Everybody's first try; and words for sbatch go through an option.
printf '#!/bin/bash\nmuster run -- true\n' >plain.sh
expect_exit 2 "$MUSTER" submit plain.sh
expect_contains stderr 'plain.sh is a job script: submit it by `' 'goes with --once'
chmod +x plain.sh
expect_exit 0 "$MUSTER" submit --site generic-slurm --once --ranks 2 --time 5min --dry-run -- ./plain.sh
expect_matches stdout '^ *exec ./plain.sh '
expect_exit 2 "$MUSTER" submit --exclude=node1 -- true
expect_contains stderr "write --sbatch '--exclude=node1'"
expect_exit 2 "$MUSTER" submit --exclude node1 -- true
expect_contains stderr "write --sbatch '--exclude=node1'"
