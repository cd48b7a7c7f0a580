# Each sbatch script that muster writes is taken by a real Slurm, as an ordinary user: every golden script is given to sbatch --test-only on a cluster whose
# partitions, features, cores and GPUs have the sites' names and numbers.
# timeout: 120
# parts: jobs
. "$(dirname "$0")/cluster_lib.sh"
partitions=''
for name in batch standard-g boost_usr_prod gpuA100x4 booster gpu; do partitions+="PartitionName=$name Nodes=ALL MaxTime=INFINITE State=UP"$'\n'; done
export CLUSTER_CPUS=288 CLUSTER_MEMORY=500000 CLUSTER_FEATURES=gpu,hbm80g CLUSTER_CONF=$partitions
start_cluster 4 8
taken=0
for script in "$MUSTER_SOURCE_DIR"/tests/fixtures/scripts/*.sh; do
    grep -q '^#SBATCH' "$script" || continue
    cp "$script" "$work/job.sh"
    options=()
    # A job cannot wait for jobs that are not there.
    ! grep -q '^#SBATCH --dependency' "$script" || options=(--dependency=)
    expect_exit 0 as_user sbatch --test-only "${options[@]}" job.sh || continue
    expect_matches stderr 'to start at .* using [0-9]+ processors'
    taken=$((taken + 1))
done
expect_true test "$taken" -ge 14
echo "$taken scripts taken"

# What is wrong is refused, so that --test-only says something.
sed 's/--partition=main/--partition=none/' "$MUSTER_SOURCE_DIR/tests/fixtures/scripts/test-cluster-2-nodes.sh" >"$work/job.sh"
expect_exit 1 as_user sbatch --test-only job.sh

# A user without a site file: site init writes one from what this Slurm tells, and the script that it gives is taken.
install_muster
expect_exit 0 as_user prefix/bin/muster site init
site=$(basename "$(cat "$OUT")" .toml)
expect_contains stderr "muster script --site $site --gpus 8 --time 1h"
expect_exit 0 as_user prefix/bin/muster script --site "$site" --gpus 16 --time 1h -- hostname
cp "$OUT" "$work/job.sh"
expect_contains stdout '#SBATCH --nodes=2' '#SBATCH --gres=gpu:8' '#SBATCH --partition=main' '#SBATCH --cpus-per-task=36'
expect_exit 0 as_user sbatch --test-only job.sh
submit_script job.sh
finish_job
expect_equal "$code" 0:0 'exit code of the job'
expect_equal "$(sort "$OUT" | uniq -c | awk '{print $1 $2}' | paste -sd' ')" '8node1 8node2' 'hosts of the ranks'
expect_exit 2 as_user prefix/bin/muster script --site "$site" --gpus 40 --time 1h -- hostname
expect_contains stderr 'takes at most 4 nodes'

# qsub scripts through Slurm's own qsub (Debian's slurm-wlm-torque, or $MUSTER_TORQUE_QSUB), as far as that understands them: its select takes ncpus and mpiprocs.
qsub=${MUSTER_TORQUE_QSUB:-$(command -v qsub)}
if [ -n "$qsub" ] && grep -q Slurm "$qsub"; then
    expect_exit 0 as_user prefix/bin/muster script --site generic-pbs --gpus 4 --gpus-per-node 2 --time 5min --queue main --after any:1 --job-name named -- \
        bash -c 'echo "rank $RANK on $(hostname)"'
    # Slurm's qsub knows no ngpus, no place, and no job of PBS to wait for.
    sed '/^#PBS -W/d; /place=/d; s/:ngpus=2//' "$OUT" >"$work/job.sh"
    job=$(as_user env ${PERL5LIB:+PERL5LIB="$PERL5LIB"} "$qsub" job.sh) || fail "qsub refused: $(cat "$work/job.sh")"
    COMMAND="job $job"
    wait_until 60 has_ended "$job"
    expect_equal "$(job_field "$job" ExitCode) $(job_field "$job" JobName) $(job_field "$job" NumNodes) $(job_field "$job" TimeLimit)" '0:0 named 2 00:05:00' 'what qsub made of the script'
    expect_equal "$(sort "$work"/job.sh.o"$job" | awk '{print $1 $2}' | paste -sd' ')" 'rank0 rank1 rank2 rank3' 'ranks of the job'
else
    echo "qsub of slurm-wlm-torque is not here: no qsub script was submitted"
fi
