# What muster script says when something is not right: exit code 2, nothing on standard output.
# parts: jobs
. "$(dirname "$0")/lib.sh"
unset MUSTER_SITE_PATH XDG_CONFIG_HOME
export HOME=$PWD

refused() {
    local text=$1
    shift
    expect_exit 2 "$MUSTER" script "$@"
    expect_empty stdout
    expect_contains stderr "$text"
}

refused "did you mean 'polaris'?" --site polars --gpus 4 --time 1h -- x
refused 'site-configs' --site polars --gpus 4 --time 1h -- x
refused '90min, 90h or HH:MM:SS' --site generic-slurm --gpus 2 --time 90 -- x
refused 'did you mean --time?' --site generic-slurm --gpus 2 --tim 1h -- x
refused 'the program is missing' --site generic-slurm --gpus 2 --time 1h
refused 'the directives of schedulers have no quoting' --site generic-slurm --gpus 2 --time 1h --account $'a\n#SBATCH --uid=0' -- x
refused 'the directives of schedulers have no quoting' --site generic-slurm --gpus 2 --time 1h --job-name 'a b' -- x
refused 'must begin with a letter' --site generic-slurm --gpus 2 --time 1h --queue=--wrap -- x
refused 'PBS takes one range, such as 1-8 or 1-8:2' --site generic-pbs --gpus 2 --time 1h --array 1-4,7 -- x
refused 'cobalt has no arrays of jobs' --site thetagpu --account a --sweep 1,2 --time 1h -- x
refused 'flux has no arrays of jobs' --site generic-flux --gpus 2 --time 1h --array 0-3 -- x
refused 'give --chain N for jobs that follow one another' --site generic-flux --gpus 2 --time 1h --requeue -- x
refused '--filesystems is for PBS' --site generic-flux --gpus 2 --time 1h --filesystems home -- x
refused "'a' is no number of ranks" --site generic-slurm --time 1h --sweep a,2 -- x
refused 'holds a line break' --site generic-slurm --gpus 1 --time 1h --setup $'a\nb' -- x
refused 'a name holds letters, digits and _' --site generic-slurm --gpus 1 --time 1h --env 'A B=1' -- x
refused "a job's variable needs its value" --site generic-slurm --gpus 1 --time 1h --env A -- x
refused 'has no SRC and DST' --site generic-slurm --gpus 1 --time 1h --stage-in nowhere -- x
refused '--sweep needs two numbers' --site generic-slurm --sweep 4 --time 1h -- x
refused 'without a scheduler' --site workstation --gpus 1 --after 7 -- x
refused 'Cobalt does not start a job again' --site thetagpu --account a --gpus 1 --time 1h --requeue -- x
refused 'pyxis is a plugin' --site generic-pbs --gpus 1 --time 1h --container x --container-runtime pyxis -- x
refused '--chain and an array do not go together' --site generic-slurm --gpus 1 --time 1h --chain 2 --array 0-1 -- x
for option in --after --array; do
    for value in '1;id' '1 2' $'1\n#SBATCH --uid=0'; do
        refused 'are allowed' --site generic-slurm --gpus 1 --time 1h $option "$value" -- x
    done
    refused 'must begin with a letter' --site generic-slurm --gpus 1 --time 1h $option '$(id)' -- x
done

# A site file of one's own: found by path and by MUSTER_SITE_PATH; a fault is shown with file, line and caret.
mkdir sites
cat >sites/mine.toml <<'SITE'
name = "mine"
description = "my cluster"
scheduler = "slurm"
[source]
facts = "I"
date = 2026-11-21
[node]
gpu = 4
SITE
refused "sites/mine.toml:8:1: node: unknown key 'gpu'; did you mean 'gpus'?" --site sites/mine.toml --gpus 8 --time 1h -- x
expect_matches stderr '^  \^$'
sed -i 's/^gpu =/gpus =/' sites/mine.toml
expect_exit 0 "$MUSTER" script --site ./sites/mine.toml --gpus 8 --time 1h -- x
expect_contains stdout '#SBATCH --nodes=2' '#SBATCH --ntasks-per-node=4'
refused 'no site' --site mine --gpus 8 --time 1h -- x
MUSTER_SITE_PATH=$PWD/none:$PWD/sites expect_exit 0 "$MUSTER" script --site mine --gpus 8 --time 1h -- x
mkdir -p .config/muster && mv sites .config/muster/
expect_exit 0 "$MUSTER" script --site mine --gpus 8 --time 1h -- x

# The program's own path by default, and help of one screen.
expect_contains stdout "exec $MUSTER run -n 8 --site mine -- x"
expect_exit 0 env COLUMNS=130 "$MUSTER" script --help
expect_contains stdout 'muster script --site'
expect_true test "$(wc -l <"$OUT")" -le 40
expect_true test "$(wc -L <"$OUT")" -le 130

# Standard output that cannot be written is an error.
"$MUSTER" script --site generic-slurm --gpus 2 --time 1h -- x >/dev/full 2>"$ERR"
expect_equal $? 125 'exit code with a full disk'

# A template of one's own.
printf '#!/bin/sh\nsrun -n {{{ranks}}}{{#command}} {{.}}{{/command}}\n' >own.mustache
expect_exit 0 "$MUSTER" script --site generic-slurm --gpus 2 --time 1h --template own.mustache -- 'a b'
expect_equal "$(cat "$OUT")" "#!/bin/sh
srun -n 2 'a b'" script

# Ranks without GPUs: as many on a node as it has cores for, and no more.
mkdir -p sites
printf 'name = "cpu"\ndescription = "no GPUs"\nscheduler = "slurm"\n[source]\nfacts = "I"\ndate = 2026-11-21\n[node]\ncores = 8\ncpus = 16\n[header]\ngpus_by = "none"\n' >sites/cpu.toml
cpu() { "$MUSTER" script --site ./sites/cpu.toml --time 1h "$@" -- ./a.out; }
expect_exit 0 cpu --ranks 16
expect_contains stdout '--nodes=2' '--ntasks-per-node=8' '--cpus-per-task=2' 'run -n 16 '
expect_not_contains stdout gpu
expect_exit 0 cpu -n 12 --cpus-per-rank 2
expect_contains stdout '--nodes=3' '--ntasks-per-node=4' '--cpus-per-task=4' '--cpus-per-rank 2'
expect_exit 0 cpu --ranks 4 --ranks-per-node 2
expect_contains stdout '--nodes=2' '--ntasks-per-node=2'
refused '16 ranks do not fit; give --ranks 16' --site ./sites/cpu.toml --time 1h --gpus 16 -- x
refused '13 ranks do not divide evenly over 2 nodes of cpu (8 ranks each at most); use --ranks 12, or --ranks 14' --site ./sites/cpu.toml --time 1h --ranks 13 -- x
refused 'a node of cpu has 8 cores' --site ./sites/cpu.toml --time 1h --ranks 2 --cpus-per-rank 9 -- x
refused '--ranks-per-node 9' --site ./sites/cpu.toml --time 1h --ranks 9 --ranks-per-node 9 -- x
refused '--gpus 1 means 1 rank, one for each GPU' --site ./sites/cpu.toml --time 1h --ranks 1 --gpus 1 -- x
refused 'leave out one of them' --site ./sites/cpu.toml --time 1h --ranks 2 --gpus 4 --once -- x
refused 'with --ranks give --ranks-per-node and --cpus-per-rank' --site ./sites/cpu.toml --time 1h --ranks 2 --cpus-per-gpu 2 -- x
refused "queue 'by-gpu' of sophia counts GPUs" --site sophia --queue by-gpu --account a --time 1h --ranks 2 -- x
expect_exit 0 "$MUSTER" script --site polaris --ranks 64 --time 1h --account a --queue debug-scaling -- x
expect_contains stdout 'select=2:' 'export CUDA_VISIBLE_DEVICES=-1' '--slots-per-node 32'
expect_exit 0 "$MUSTER" script --site generic-pbs --ranks 4 --time 1h -- x
expect_contains stdout 'select=1:ncpus=4:mpiprocs=4'
expect_exit 0 env MUSTER_RANKS=3 "$MUSTER" script --site generic-slurm --gpus 2 --time 1h -- x
expect_contains stdout 'run -n 2 '
