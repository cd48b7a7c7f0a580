# Blanks, quotes, line ends, $(…), bytes above 127 in every option of muster script: all arrive byte for byte, on every scheduler, and nothing of them is run.
# parts: jobs
. "$(dirname "$0")/lib.sh"
unset MUSTER_SITE_PATH XDG_CONFIG_HOME
export HOME=$PWD PBS_O_WORKDIR=$PWD SLURM_JOB_ID=7 PBS_JOBID=7.server COBALT_JOBID=7 SLURM_ARRAY_TASK_ID=1 PBS_ARRAY_INDEX=1
hostile=$'a b\'"$(touch pwned)`touch pwned`\n#SBATCH --uid=0\r\t\\ *?~&;|<>!#\xff\xc3\xbc'

# In muster's place: notes its words and the variables, and succeeds.
mkdir "bin $hostile" "venv $hostile" "venv $hostile/bin"
cat >"bin $hostile/muster" <<'PROGRAM'
#!/bin/bash
{ printf '%s\0' "$@" END; } >>words
printf '%s\0' "$OWN" "$MUSTER_SYNC_DIR" "$MUSTER_ARTIFACTS_DIR" "$VENV" >variables
PROGRAM
printf '#!/bin/bash\n:\n' >conda
chmod +x "bin $hostile/muster" conda
echo 'export VENV=active' >"venv $hostile/bin/activate"

for site in generic-slurm generic-pbs thetagpu workstation; do
    rm -rf words out* variables
    extra=(--time 1h)
    [ $site != workstation ] || extra=()
    [ $site = generic-slurm ] || [ $site = generic-pbs ] || extra+=(--account a)
    expect_exit 0 "$MUSTER" script --site $site --gpus 2 "${extra[@]}" --muster "$PWD/bin $hostile/muster" --venv "venv $hostile" --env "OWN=$hostile" \
        --stage-in "from $hostile:to $hostile" --artifacts "out $hostile %j" --container "image $hostile" --container-args "--bind 'x y'" -- "program $hostile" "$hostile" ''
    cp "$OUT" job.sh
    expect_exit 0 bash job.sh
    expect_true test ! -e pwned
    # The word behind `run -n 2` is the site's options; what muster runs is compared from the first -- on.
    python3 - "$hostile" "$site" <<'PY' >"$OUT" 2>"$ERR" || fail "not as they were, for $site"
import os, re, sys
hostile, site = os.fsencode(sys.argv[1]), sys.argv[2]
runs = [run.split(b"\0")[:-1] for run in open("words", "rb").read().split(b"END\0")[:-1]]
sync, artifacts = open("variables", "rb").read().split(b"\0")[1:3]
own, venv = open("variables", "rb").read().split(b"\0")[0:4:3]
program = os.fsencode(os.getcwd()) + b"/bin " + hostile + b"/muster"
behind = [run[run.index(b"--") + 1:] for run in runs]
assert own == hostile and venv == b"active", (own, venv)
assert re.fullmatch(rb"out " + re.escape(hostile) + rb" \d+", artifacts), artifacts
assert site == "workstation" or artifacts.endswith(b" 7")
assert behind[0] == [b"mkdir", b"-p", b"--", sync], behind[0]
assert behind[1] == [program, b"stage", b"copy", b"from " + hostile, b"to " + hostile], behind[1]
assert behind[2] == [program, b"stage", b"out", b"--every", b"600s", sync, artifacts, b"--", b"apptainer", b"exec", b"--bind", b"x y", b"image " + hostile,
                     b"program " + hostile, hostile, b""], behind[2]
assert len(runs) == 3 and runs[2][:3] == [b"run", b"-n", b"2"], runs[2]
PY
    expect_true test -d "$(printf '%s' "out $hostile ")"*[0-9]
done
