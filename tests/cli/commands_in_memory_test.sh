# Every command that starts no rank, run once: a build under sanitizers (preset dev) sees what it does to memory. Exit codes and texts have tests of their own.
# timeout: 300
# parts: jobs
. "$(dirname "$0")/lib.sh"
export HOME=$PWD/home
mkdir home bin

# expect_sound CODE COMMAND...: with that exit code, no report of a sanitizer, and only text.
expect_sound() {
    expect_exit "$@"
    expect_not_contains stderr 'AddressSanitizer' 'LeakSanitizer' 'runtime error:'
    local name
    for name in stdout stderr; do
        expect_true test "$(LC_ALL=C tr -d '\t\n\r -~\200-\377' <"$(lib_file $name)" | wc -c)" = 0
    done
}

# A muster-stage and a python3 that do not start: what they print is told, and its control characters are not.
cp "$MUSTER" bin/muster
printf '#!/bin/sh\necho "%s: error while loading shared libraries: \033[1mlibhdf5.so: cannot open shared object file" >&2\nexit 127\n' muster-stage >bin/muster-stage
sed s/muster-stage/python3/ bin/muster-stage >bin/python3
chmod +x bin/*
PATH=$PWD/bin:$PATH expect_sound 1 bin/muster doctor
tr -s ' \n' ' ' <"$OUT" >joined  # its lines are as wide as a terminal
expect_contains joined "$PWD/bin/muster-stage does not start (code 127): muster-stage: error while loading shared libraries: \x1b[1mlibhdf5.so" \
    'does not work (code 127): python3: error while loading shared libraries'
expect_sound 0 "$MUSTER" doctor --help

for command in run plan hosts script submit alloc jobs watch logs show cancel rerun init site doctor config completion; do
    expect_sound 0 "$MUSTER" "$command" --help
done
expect_sound 0 "$MUSTER" run --help-all
expect_sound 0 "$MUSTER" plan -n 3
expect_sound 0 "$MUSTER" plan -n 2 --json
expect_sound 0 "$MUSTER" hosts
expect_sound 0 "$MUSTER" config show --all
for shell in bash zsh fish; do
    expect_sound 0 "$MUSTER" completion "$shell"
done

expect_sound 0 "$MUSTER" site list --json
for site in polaris perlmutter aurora generic-slurm; do
    expect_sound 0 "$MUSTER" site show "$site"
    expect_sound 0 "$MUSTER" site check "$MUSTER_SOURCE_DIR/site-configs/$site.toml"
done
expect_sound 2 "$MUSTER" site show polarsi
printf 'name = "x"\nscheduler = "slurm"\n[source]\nfacts = "f"\n[node]\ngpu = 4\ncores = "8"\n' >x.toml
expect_sound 2 "$MUSTER" site check x.toml

expect_sound 0 "$MUSTER" script --site generic-slurm --ranks 4 --ranks-per-node 2 --time 10min -- python3 train.py 'a b'
expect_sound 0 "$MUSTER" script --site polaris --gpus 8 --time 10min --account a --queue debug -- python3 train.py
expect_sound 2 "$MUSTER" script --site polaris --nodes 2 -- python3 train.py
expect_sound 2 "$MUSTER" script --site perlmutter --gpus 4 --queue none --time 99h -- python3 train.py

# A scheduler's answers, by stand-ins.
printf '#!/bin/sh\necho 4242\n' >bin/sbatch
printf '#!/bin/sh\necho "sbatch: error: no such account\nsbatch: error: Batch job submission failed" >&2\nexit 1\n' >bin/qsub
printf '#!/bin/sh\nexit 0\n' >bin/squeue
chmod +x bin/*
export PATH=$PWD/bin:$PATH
rm bin/python3
expect_sound 0 "$MUSTER" submit --site generic-slurm --ranks 2 --ranks-per-node 2 --time 10min --check-only -- true
expect_sound 0 "$MUSTER" submit --site generic-slurm --ranks 2 --ranks-per-node 2 --time 10min -- true
expect_sound 0 "$MUSTER" jobs
expect_sound 2 "$MUSTER" submit --ranks 2 --nodes 2 -- true

# A run's folder, as one of an array's task.
expect_sound 0 "$MUSTER" run -n 2 --output-dir out -- true
echo 'SLURM_ARRAY_JOB_ID=4242' >>out/environment
expect_sound 0 "$MUSTER" rerun out
