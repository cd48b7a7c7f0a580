# muster site: list, show, check, init; on a machine without a scheduler, and with stand-ins for one.
# parts: jobs
. "$(dirname "$0")/lib.sh"
unset MUSTER_SITE_PATH XDG_CONFIG_HOME
export HOME=$PWD/home
mkdir home

expect_exit 0 "$MUSTER" site list
expect_matches stdout '^polaris +pbs +560 +4 +2026-' '^thetagpu +cobalt +24 +8 +2026-.*decommissioned' '^generic-slurm +slurm +\? +\?'
expect_equal "$(tail -n +2 "$OUT" | wc -l)" "$(ls "$MUSTER_SOURCE_DIR"/site-configs/*.toml | wc -l)" 'sites in the list'
expect_exit 0 "$MUSTER" site list --json
expect_true python3 -c 'import json,sys; s={x["name"]: x for x in json.load(open(sys.argv[1]))["sites"]}; assert s["aurora"]["gpus"] == 12 and s["leonardo"]["nodes"] is None' "$OUT"

# Each shipped file: nothing is told without source and date, and what is not known is named.
for file in "$MUSTER_SOURCE_DIR"/site-configs/*.toml; do
    expect_exit 0 "$MUSTER" site check "$file"
    expect_exit 0 "$MUSTER" site show "$(basename "$file" .toml)"
    expect_matches stdout '^  facts from +.*, 20[0-9-]+$' '^Nodes \(.*, 20[0-9-]+\)$' '^Not known$'
done
expect_exit 0 "$MUSTER" site show polaris
expect_contains stdout 'Queues (docs.alcf.anl.gov/polaris/running-jobs, as changed on 2026-02-17, 2026-11-22)' '/local/scratch'
expect_matches stdout '^    small +10 to 24 +- +03:00:00' '^  NCCL_NET +AWS Libfabric$'
expect_exit 0 "$MUSTER" site show perlmutter
expect_matches stdout '^  debug +1 to \? +- +not known'
expect_true test "$(grep -c '^  NCCL_NET ' "$OUT")" = 0
printf 'name = "own"\ndescription = "d"\nscheduler = "slurm"\n[source]\nfacts = "f"\ndate = 2026-01-01\n[[queue]]\nname = "q"\ngpus = 1\ncores = 8\ncpus = 16\nmax_gpu_nodes = 1\naccounts = ["phys"]\n' >own.toml
expect_exit 0 "$MUSTER" site show ./own.toml
expect_contains stdout 'account phys; 1 GPU a node; 8 cores a node; 16 hardware threads a node; 1 node with GPUs'
expect_exit 0 "$MUSTER" site show --json ./own.toml
expect_true python3 -c 'import json,sys; q=json.load(open(sys.argv[1]))["queues"][0]; assert [q[k] for k in ("gpus", "cores", "cpus", "max_gpu_nodes", "accounts")] == [1, 8, 16, 1, ["phys"]], q' "$OUT"
rm own.toml
expect_exit 2 "$MUSTER" site show polarsi
expect_contains stderr "did you mean 'polaris'?"

# All faults in one go.
printf 'name = "x"\nscheduler = "slurm"\n[source]\nfacts = "f"\n[node]\ngpu = 4\ncores = "8"\n' >x.toml
expect_exit 2 "$MUSTER" site check x.toml
expect_contains stderr "x.toml:1:1: 'description' is missing" "x.toml:3:1: source: 'date' is missing" "x.toml:6:1: node: unknown key 'gpu'; did you mean 'gpus'?" \
    "x.toml:7:9: node: 'cores' must be a whole number" 'muster: 4 faults'
expect_exit 2 "$MUSTER" site check none.toml
expect_contains stderr 'there is no site file none.toml'
expect_exit 0 "$MUSTER" site check polaris
expect_exit 2 "$MUSTER" site check polaros
expect_contains stderr "did you mean 'polaris'?"
sed 's/name = "polaris"/name = "other"/' "$MUSTER_SOURCE_DIR/site-configs/polaris.toml" >polaris.toml
expect_exit 2 "$MUSTER" site check polaris.toml
expect_contains stderr 'the file must be other.toml'

# Only what is a settings file is said to be one; a word that is no command is named.
printf '[job]\nsite = "polaris"\n' >job.toml
expect_exit 2 "$MUSTER" site check job.toml
expect_contains stderr 'job.toml is no site file but a settings file'
printf 'name = "y"\ngpus = 4\n' >y.toml
expect_exit 2 "$MUSTER" site check y.toml
expect_contains stderr "unknown key 'gpus'" "'description' is missing"
expect_exit 2 "$MUSTER" site chek y.toml
expect_contains stderr "muster site has no command 'chek', did you mean check?"
expect_exit 2 "$MUSTER" config verify
expect_contains stderr "muster config has no command 'verify'"
expect_exit 2 "$MUSTER" site init --output 'my site.toml'
expect_contains stderr "'my site' can be no name of one: character 3" 'such as my-site.toml'
expect_true test ! -e 'my site.toml'

# All that a file says is shown.
expect_exit 0 "$MUSTER" site show frontier
expect_matches stdout '^  words for containers +--rocm$' '^In jobs of several nodes, without --no-network-env' '^  module +rccl-net-plugin$'
expect_exit 0 "$MUSTER" site show aurora
expect_matches stdout '^  words for containers +none$' '^  nodes are given +whole$' '^  shell +a login shell$'
expect_exit 0 "$MUSTER" site show perlmutter
expect_matches stdout '^  --queue means +a quality of service'

# A laptop: the file is found by its name afterwards, and is never overwritten.
expect_exit 0 env PATH=/nowhere "$MUSTER" site init laptop
expect_equal "$(cat "$OUT")" "$HOME/.config/muster/sites/laptop.toml" 'the file'
expect_exit 0 "$MUSTER" site check "$HOME/.config/muster/sites/laptop.toml"
cp "$HOME/.config/muster/sites/laptop.toml" before
expect_exit 2 env PATH=/nowhere "$MUSTER" site init laptop
expect_contains stderr 'is not overwritten'
expect_true cmp before "$HOME/.config/muster/sites/laptop.toml"
amount=$(grep -q '^gpus = 0' before && echo --ranks || echo --gpus)
expect_exit 0 "$MUSTER" script --site laptop "$amount" 1 -- true
expect_exit 2 env PATH=/nowhere "$MUSTER" site init myhpc -o x.toml
expect_contains stderr 'the name myhpc and --output x.toml do not go together' 'give --output myhpc.toml'
expect_exit 0 env PATH=/nowhere "$MUSTER" site init myhpc -o myhpc.toml
expect_exit 0 "$MUSTER" site check myhpc.toml --json
# The template next to a site file is read, too.
printf '#!/bin/bash\n{{#command}}{{.}}\n' >myhpc.mustache
expect_exit 2 "$MUSTER" site check myhpc.toml
expect_contains stderr 'myhpc.mustache' '1 fault'
printf '#!/bin/bash\n{{> body}}\n' >myhpc.mustache
expect_exit 0 "$MUSTER" site check myhpc.toml
expect_contains stdout 'myhpc.toml: the site myhpc and its template myhpc.mustache, no error'
expect_exit 0 env PATH=/nowhere "$MUSTER" site init other --output -
expect_contains stdout 'name = "other"'
expect_exit 0 env PATH=/nowhere "$MUSTER" site init --output -
expect_contains stdout 'scheduler = "local"' 'cores = '
expect_exit 0 env PATH=/nowhere "$MUSTER" site init --output not/there/yet.toml
expect_true test -e not/there/yet.toml
expect_exit 125 env PATH=/nowhere "$MUSTER" site init --output before/x.toml
expect_contains stderr 'cannot make the folder before: '

# A Slurm cluster and a PBS one, by what their programs print.
mkdir slurm pbs
printf '#!/bin/sh\necho "gpu*|2-00:00:00|1-infinite|12|64|2|32|1|gpu:a100:4|n[01-12]"; echo "old|1:00:00|1-infinite|12|64|2|32|1|gpu:a100:4|n[07-18]"\n' >slurm/sinfo
printf '#!/bin/sh\necho "ClusterName = Our Own"\n' >slurm/scontrol
printf '#!/bin/sh\ncat "%s"\n' "$MUSTER_SOURCE_DIR/tests/fixtures/site_init/pbsnodes-a.json" >pbs/pbsnodes
printf '#!/bin/sh\ncat "%s"\n' "$MUSTER_SOURCE_DIR/tests/fixtures/site_init/qmgr-print-server.txt" >pbs/qmgr
chmod +x slurm/* pbs/*
expect_exit 0 env PATH="$PWD/slurm:/bin" "$MUSTER" site init
expect_contains stderr 'muster script --site our-own --gpus 4 --time 1h -- python3 train.py'
expect_contains "$HOME/.config/muster/sites/our-own.toml" 'count = 18'
expect_exit 0 "$MUSTER" script --site our-own --gpus 8 --time 1h -- python3 train.py
expect_contains stdout '#SBATCH --partition=gpu' '#SBATCH --nodes=2' '#SBATCH --gres=gpu:4' '#SBATCH --cpus-per-task=16'
expect_exit 0 env PATH="$PWD/slurm:/bin" "$MUSTER" init --site our-own with
expect_contains with/muster.toml 'gpus = 2'
# GRES is (null): there is no GPU to be asked for.
mkdir cpus && cp slurm/scontrol cpus/ && sed 's/gpu:a100:4/(null)/g' slurm/sinfo >cpus/sinfo && chmod +x cpus/sinfo
expect_exit 0 env PATH="$PWD/cpus:/bin" "$MUSTER" site init --output cpu-only.toml
expect_contains stderr 'muster script --site ./cpu-only.toml --ranks 64 --time 1h -- python3 train.py'
expect_contains cpu-only.toml 'gpus = 0' 'gpus_by = "none"'
expect_not_contains cpu-only.toml '# gpu'
expect_exit 0 "$MUSTER" script --site ./cpu-only.toml --ranks 128 --time 1h -- true
expect_contains stdout '#SBATCH --nodes=2' '#SBATCH --ntasks-per-node=64'
expect_exit 0 env PATH="$PWD/cpus:/bin" "$MUSTER" init --site generic-slurm without
expect_contains without/muster.toml 'ranks = 2'
expect_exit 2 "$MUSTER" script --site our-own --gpus 8 --time 3-0 -- python3 train.py
expect_contains stderr 'takes at most 48:00:00'
expect_exit 0 env PATH="$PWD/pbs:/bin" "$MUSTER" site init --output ours.toml
expect_exit 0 "$MUSTER" script --site ./ours.toml --gpus 8 --time 1h -- python3 train.py
expect_contains stdout '#PBS -q workq' 'select=2:ncpus=8:ngpus=4:mpiprocs=4'
expect_contains stderr 'the most nodes of queue workq are not known here'

# What is not known is not said to fit.
expect_exit 2 "$MUSTER" script --site perlmutter --gpus 8 --time 1h --account a -- x
expect_contains stderr 'limits of regular, debug, interactive are not known here'
expect_not_contains stderr 'would fit' # nobody knows
expect_exit 0 "$MUSTER" script --site perlmutter --gpus 8 --time 1h --account a --queue debug -- x
expect_contains stderr 'limits of queue debug are not known here'

# POLARIS is planned from anywhere: 8 GPUs are 8 ranks on 2 nodes.
expect_exit 0 "$MUSTER" plan --site polaris --gpus 8
expect_equal "$(grep -c '^[0-7] .*polaris[12] .*A100\|^[0-7] .*polaris[12]' "$OUT")" 8 'ranks'
expect_contains stderr 'nodes like those of polaris are shown'
expect_exit 0 "$MUSTER" plan --site polaris --gpus 6
expect_contains stderr '6 GPUs do not fill whole nodes of polaris (4 GPUs each)' 'use --gpus 4 or --gpus 8'
expect_exit 0 "$MUSTER" plan --site juwels-booster --gpus 4
expect_contains stderr 'not known of juwels-booster' 'which GPU is next to which cores: what is shown is assumed'
expect_exit 0 "$MUSTER" plan --site polaris --gpus 2 --json
expect_true python3 -c 'import json,sys; p=json.load(open(sys.argv[1])); assert p["world_size"] == 2 and len(p["nodes"]) == 1 and p["nodes"][0]["gpus"] == 4, p' "$OUT"

# Templates of one's own: by file, by name in a folder of sites, or called like the site beside its file, which is said.
printf '#!/bin/sh\n# mine\nsrun {{#command}} {{.}}{{/command}}\n' >mine.mustache
mkdir own
cp "$MUSTER_SOURCE_DIR/site-configs/workstation.toml" own/
cp mine.mustache own/short.mustache
expect_exit 0 env MUSTER_SITE_PATH="$PWD/own" "$MUSTER" script --site workstation --gpus 1 --template short -- x
expect_contains stdout '# mine'
expect_exit 2 "$MUSTER" script --site workstation --gpus 1 --template short -- x
expect_contains stderr 'no template short.mustache'
printf '#!/bin/sh\nsrun {{commands}}\n' >wrong.mustache
expect_exit 2 "$MUSTER" script --site workstation --gpus 1 --template ./wrong.mustache -- x
expect_contains stderr "wrong.mustache:2:8: there is no name 'commands' for templates, did you mean 'command'?" '       ^'
cp mine.mustache own/workstation.mustache
expect_exit 0 env MUSTER_SITE_PATH="$PWD/own" "$MUSTER" script --site workstation --gpus 1 -- x
expect_contains stdout '# mine'
expect_contains stderr 'own/workstation.mustache takes the place of the built-in one'

# Completion: sites, queues of the site on the line, jobs of the user.
expect_exit 0 "$MUSTER" completion queues polaris
expect_contains stdout debug-scaling
printf '#!/bin/sh\nprintf "12\\n13_[0-4]\\n"\n' >slurm/squeue
chmod +x slurm/squeue
expect_exit 0 env USER=me PATH="$PWD/slurm:/bin" "$MUSTER" completion jobs
expect_equal "$(tr '\n' ' ' <"$OUT")" '12 13_[0-4] ' 'jobs'
printf '#!/bin/sh\nprintf "Job id Name\\n---- ----\\n7.pbshead STDIN me\\n"\n' >pbs/qstat
chmod +x pbs/qstat
expect_exit 0 env USER=me PATH="$PWD/pbs:/bin" "$MUSTER" completion jobs
expect_equal "$(cat "$OUT")" 7.pbshead jobs

# doctor: 80 columns, the worst first.
"$MUSTER" doctor >doctor.txt 2>&1
expect_true test "$(wc -L <doctor.txt)" -le 80
expect_equal "$(grep -oE '^(MISSING|note|ok)' doctor.txt | sed 's/MISSING/0/; s/note/1/; s/ok/2/' | tr -d '\n')" \
    "$(grep -oE '^(MISSING|note|ok)' doctor.txt | sed 's/MISSING/0/; s/note/1/; s/ok/2/' | sort | tr -d '\n')" 'the order of doctor'
