# The script for every shipped site, and for the cluster of muster's tests, word for word. UPDATE_GOLDEN=1 writes the files anew.
# parts: jobs
. "$(dirname "$0")/lib.sh"
unset XDG_CONFIG_HOME
fixtures=$MUSTER_SOURCE_DIR/tests/fixtures
export HOME=$PWD MUSTER_SITE_PATH=$fixtures/sites

# golden NAME OPTIONS...: `muster script OPTIONS` prints tests/fixtures/scripts/NAME.sh, and bash can read it; qsub takes its directives.
golden() {
    local file=$fixtures/scripts/$1.sh
    shift
    expect_exit 0 "$MUSTER" script --muster muster "$@" || return
    [ -z "${UPDATE_GOLDEN:-}" ] || cp "$OUT" "$file"
    diff -u "$file" "$OUT" || fail "the script is not $file"
    expect_true bash -n "$OUT"
    ! grep -q '^#PBS' "$file" || python3 "$MUSTER_SOURCE_DIR/tests/cli/pbs_directives.py" "$file" >"$ERR" || fail "qsub refuses $file: $(cat "$ERR")"
    [ -z "$(command -v shellcheck)" ] || shellcheck -e SC1090,SC1091,SC2016 "$OUT" >"$ERR" || fail "shellcheck finds faults in $file: $(cat "$ERR")"
}
command -v shellcheck >/dev/null || echo 'no shellcheck here: the scripts are not held against it'

golden polaris-2-nodes --site polaris --gpus 8 --time 1h --account proj --queue debug -- python train.py --epochs 3
golden perlmutter-4-nodes --site perlmutter --gpus 16 --time 1:30:00 --account m1234_g --queue regular -- python train.py
golden perlmutter-80gb --site perlmutter --gpus 2 --time 10min --account m1234_g --queue debug --constraint 'gpu&hbm80g' -- python 'my train.py' "it's" ''
golden deltaai-2-nodes --site deltaai --gpus 8 --time 1h --account proj -- python train.py
golden frontier-1-node --site frontier --gpus 8 --time 1h --account proj -- python train.py
golden lumi-g-1-node --site lumi-g --gpus 8 --time 1h --account proj -- python train.py
golden generic-slurm-1-node --site generic-slurm --gpus 2 --time 5min -- ./a.out
golden generic-slurm-2-nodes --site generic-slurm --gpus 8 --gpus-per-node 4 --cpus-per-gpu 6 --time 2-12:00:00 --account a --queue gpu -- ./a.out
golden generic-pbs-requeue --site generic-pbs --requeue --array '0-9%2' --gpus 2 --time 10min -- ./a.out
golden generic-pbs-2-nodes --site generic-pbs --gpus 8 --gpus-per-node 4 --cpus-per-gpu 8 --time 90min --account a --queue workq -- ./a.out '$(id)' '`id`' $'two\nlines'
golden generic-flux-2-nodes --site generic-flux --gpus 8 --gpus-per-node 4 --cpus-per-gpu 8 --time 90min --account a --queue pbatch --constraint gpu -- ./a.out '$(id)' '`id`' $'two\nlines'
golden tuolumne-2-nodes --site tuolumne --gpus 8 --time 1:30:30 --account bank --queue pbatch -- python train.py
golden el-capitan-1-node --site el-capitan --gpus 4 --time 1h -- python train.py
golden workstation --site workstation --gpus 2 -- python train.py
golden workstation-time --site workstation --gpus 2 --time 90s -- python train.py
golden thetagpu-2-nodes --site thetagpu --gpus 16 --time 12h --account proj -- python train.py
golden sophia-by-gpu --site sophia --gpus 4 --time 1h --account proj -- python train.py
golden sophia-by-node --site sophia --gpus 16 --time 1h --account proj --queue by-node -- python train.py
golden aurora-2-nodes --site aurora --gpus 24 --time 1h --account proj --queue debug -- python train.py
golden leonardo-2-nodes --site leonardo --gpus 8 --time 1h --account proj -- python train.py
golden delta-2-nodes --site delta --gpus 8 --time 1h --account proj-delta-gpu -- python train.py
golden juwels-booster-2-nodes --site juwels-booster --gpus 8 --time 1h --account proj -- python train.py
golden test-cluster-2-nodes --site test-cluster --gpus 8 --time 10min -- python train.py

# The same options for each scheduler: what is prepared, brought, kept, repeated.
everything=(--module cuda/12 --setup 'module use /opt/it' --venv "my venv" --conda base --env 'NAME=a b' --container image.sif --stage-in 'my data:/tmp/data' --artifacts 'out/%j'
    --after any:12,13 --job-name all --time 10min --gpus 8 -- python3 train.py)
golden test-cluster-everything --site test-cluster --chain 3 --requeue "${everything[@]}"
golden polaris-everything --site polaris --queue debug --account proj --chain 3 --requeue "${everything[@]}"
golden generic-flux-everything --site generic-flux --gpus-per-node 4 --chain 3 "${everything[@]}"
golden test-cluster-sweep --site test-cluster --sweep 1,2,4,8 --time 10min -- python train.py
golden polaris-sweep --site polaris --sweep 1,2,4,8 --time 10min --queue debug --account proj -- python train.py
golden test-cluster-array --site test-cluster --array '0-9%2' --gpus 2 --time 10min -- python train.py
golden test-cluster-each --site test-cluster --each lr=0.1,0.01 --each 'opt=adam,it'"'"'s' --job-name 'lr{lr}' --env 'OPT={opt}' --gpus 2 --time 10min -- python train.py --lr={lr} --out 'out {index}'
golden test-cluster-pyxis --site test-cluster --gpus 2 --time 10min --container nvcr.io/nvidia/pytorch:24.01-py3 --container-runtime pyxis -- python train.py
golden thetagpu-after --site thetagpu --gpus 8 --time 1:30:01 --account proj --after 12,13 -- python train.py
golden workstation-everything --site workstation --gpus 2 --module cuda --stage-in data:/tmp/data --artifacts out -- python train.py

# Polaris takes no plain comment among the directives.
for file in "$fixtures"/scripts/polaris-*.sh; do
    ! sed -n '2,/^$/p' "$file" | grep -v '^#PBS -' | grep -q . || fail "a line that is no directive stands among those of $file"
done

for site in "$MUSTER_SOURCE_DIR"/site-configs/*.toml; do
    name=$(basename "$site" .toml)
    ls "$fixtures/scripts/$name"*.sh >"$OUT" 2>&1 || fail "no golden script for $name"
done
