# The script of `muster script --site generic-slurm`, submitted to a real Slurm by an ordinary user, runs `muster run` on the node it got.
# timeout: 240
# parts: jobs
. "$(dirname "$0")/cluster_lib.sh"
start_cluster 2 4
install_muster

# submit OPTIONS...: the script of `muster script` with these options.
submit() {
    as_user prefix/bin/muster script --site generic-slurm --time 5min "$@" >"$work/job.sh" 2>"$work/notes" || {
        fail "muster script: $(cat "$work/notes")"
        exit 1
    }
    submit_script job.sh
}

# World and place of each rank.
submit --gpus 2 --job-name world -- bash -c 'echo "rank $RANK of $WORLD_SIZE local $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(hostname) by $(id -un)"'
finish_job
expect_equal "$code" 0:0 'exit code of the job'
node=$(job_field "$job" BatchHost)
expect_equal "$(grep '^rank' "$OUT" | sort)" "rank 0 of 2 local 0 of 2 on $node by tester
rank 1 of 2 local 1 of 2 on $node by tester" 'what the ranks say'
# "gres:gpu:2", from 23.11 on "gres/gpu:2", later "gres/gpu=2".
expect_equal "$(job_field "$job" NumNodes) $(job_field "$job" NumTasks) $(job_field "$job" TresPerNode | tr /= ::) $(job_field "$job" JobName)" \
    '1 2 gres:gpu:2 world' 'what Slurm was asked for'

# The world that MPI sees.
if [ -n "${MUSTER_WORLD_SIZE:-}" ]; then
    cp "$MUSTER_WORLD_SIZE" "$work/world_size"
    chmod 755 "$work/world_size"
    submit --gpus 4 -- ./world_size
    finish_job
    expect_equal "$code" 0:0 'exit code of the MPI job'
    expect_equal "$(grep -c '^rank [0-3] of 4 on node' "$OUT")" 4 'ranks in a world of 4'
fi

# Arguments arrive byte for byte through sbatch too, and the program's exit code is the job's.
hostile=('a b' '' "it's" '$(touch pwned)' '`touch pwned`' $'two\nlines' $'x\n#SBATCH --account=evil' $'\r\n' $'\xff' '*' '\')
submit --gpus 1 -- bash -c 'printf "%s\0" "$@" >argv; exit 3' program "${hostile[@]}"
finish_job
expect_equal "$code" 3:0 'exit code of the job'
expect_equal "$(job_field "$job" JobState)" FAILED 'state of the job'
printf '%s\0' "${hostile[@]}" | cmp - "$work/argv" || fail 'the arguments did not arrive as they were'
expect_true test ! -e "$work/pwned"

# scancel: the ranks get SIGTERM and the time to end by themselves, and nothing is left on the node.
submit --gpus 2 -- bash -c 'trap "sleep 1; echo clean >clean.$RANK; exit 0" TERM; : >ready.$RANK; while :; do sleep 0.05; done'
wait_until 60 test -e "$work/ready.0" -a -e "$work/ready.1" || exit 1
as_user scancel "$job"
finish_job
expect_equal "$(job_field "$job" JobState)" CANCELLED 'state of the job'
node=$(job_field "$job" BatchHost)
muster_is_gone() { ! (cd / && "$cluster" on "$node" pgrep -x muster >/dev/null); }
wait_until 30 muster_is_gone
expect_true test -e "$work/clean.0" -a -e "$work/clean.1"

# Several nodes: the ranks are on both.
submit --gpus 8 --gpus-per-node 4 -- bash -c 'echo "rank $RANK of $WORLD_SIZE on $(hostname) GPU $MUSTER_GPU_INDEX"'
finish_job
expect_equal "$code" 0:0 'exit code of the job of two nodes'
expect_equal "$(job_field "$job" NumNodes) $(job_field "$job" NumTasks)" '2 8' 'what Slurm was asked for'
expect_equal "$(grep '^rank' "$OUT" | sort)" "$(for rank in 0 1 2 3 4 5 6 7; do
    echo "rank $rank of 8 on node$((rank / 4 + 1)) GPU $((rank % 4))"
done)" 'what the ranks say'
