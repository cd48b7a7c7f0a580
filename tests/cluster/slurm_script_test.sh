# The script of `muster script --site generic-slurm`, submitted to a real Slurm by an ordinary user, runs `muster run` on the node it got.
# timeout: 240
. "$(dirname "$0")/../cli/lib.sh"
cluster=$MUSTER_SOURCE_DIR/tests/cluster/slurm_cluster.sh
lacking=$("$cluster" missing) || skip "this test starts a Slurm cluster of its own; lacking here: $lacking"

# Names of its own, so that the tests of a second build tree do not meet it.
export CLUSTER_DIR=/tmp/muster-cluster.$$ CLUSTER_PREFIX=ms$$ CLUSTER_NODES=2 CLUSTER_GPUS=4
work=$CLUSTER_DIR/work

at_end() {
    [ ! -s "$lib_dir/failures" ] || tail -n 20 "$CLUSTER_DIR"/log/slurm*.log
    "$cluster" down || fail 'the cluster did not end'
    [ -z "$(ip netns list | grep "^$CLUSTER_PREFIX-")" ] || fail 'namespaces are left'
    [ -z "$(grep -lzs "^SLURM_CONF=$CLUSTER_DIR/" /proc/[0-9]*/environ)" ] || fail 'processes are left'
    rm -rf "$CLUSTER_DIR"
}

as_user() { (cd "$work" && exec timeout 60 "$cluster" run "$@"); }
job_field() { as_user scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
ended() { case $(job_field "$1" JobState) in PENDING | RUNNING | CONFIGURING | COMPLETING | '') false ;; esac; }
# submit OPTIONS...: a job of `muster script OPTIONS`; its number in $job, its output in slurm-$job.out.
submit() {
    as_user prefix/bin/muster script --site generic-slurm --time 5min "$@" >"$work/job.sh" 2>"$work/notes" || fail "muster script: $(cat "$work/notes")"
    job=$(as_user sbatch --parsable job.sh) || fail 'sbatch refused the script'
}
# finish: waits for $job; its output becomes $OUT, its exit code and signal ("3:0") $code.
finish() {
    COMMAND="job $job: $(cat "$work/job.sh")"
    wait_until 90 ended "$job"
    cp "$work/slurm-$job.out" "$OUT" 2>/dev/null || : >"$OUT"
    code=$(job_field "$job" ExitCode)
}

expect_exit 0 "$cluster" up
[ ! -s "$lib_dir/failures" ] || exit 1

# As installed, where the user may read it: the build tree may be closed to others.
mkdir -p "$work/prefix/bin" "$work/prefix/share/muster"
cp "$MUSTER" "$work/prefix/bin/muster"
cp -r "$MUSTER_SOURCE_DIR/site-configs" "$work/prefix/share/muster/"
chmod -R a+rX "$work/prefix"

# World and place of each rank.
submit --gpus 2 --job-name world -- bash -c 'echo "rank $RANK of $WORLD_SIZE local $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(hostname) by $(id -un)"'
finish
expect_equal "$code" 0:0 'exit code of the job'
expect_equal "$(sort "$OUT" | grep '^rank')" "rank 0 of 2 local 0 of 2 on $(job_field "$job" BatchHost) by tester
rank 1 of 2 local 1 of 2 on $(job_field "$job" BatchHost) by tester" 'what the ranks say'
expect_equal "$(job_field "$job" NumNodes) $(job_field "$job" NumTasks) $(job_field "$job" TresPerNode) $(job_field "$job" JobName)" '1 2 gres:gpu:2 world' 'what Slurm was asked for'

# The world that MPI sees.
if [ -n "${MUSTER_WORLD_SIZE:-}" ]; then
    cp "$MUSTER_WORLD_SIZE" "$work/world_size"
    chmod 755 "$work/world_size"
    submit --gpus 4 -- ./world_size
    finish
    expect_equal "$code" 0:0 'exit code of the MPI job'
    expect_equal "$(grep -c "^rank [0-3] of 4 on node" "$OUT")" 4 'ranks in a world of 4'
fi

# Arguments arrive byte for byte through sbatch too, and the program's exit code is the job's.
hostile=('a b' '' "it's" '$(touch pwned)' '`touch pwned`' $'two\nlines' $'x\n#SBATCH --account=evil' $'\r\n' $'\xff' '*' '\')
submit --gpus 1 -- bash -c 'printf "%s\0" "$@" >argv; exit 3' program "${hostile[@]}"
finish
expect_equal "$code" 3:0 'exit code of the job'
expect_equal "$(job_field "$job" JobState)" FAILED 'state'
printf '%s\0' "${hostile[@]}" | cmp - "$work/argv" || fail 'the arguments did not arrive as they were'
expect_true test ! -e "$work/pwned"

# scancel: the ranks get SIGTERM and the time to end by themselves, and nothing is left on the node.
submit --gpus 2 -- bash -c 'trap "sleep 1; echo clean >clean.$RANK; exit 0" TERM; : >ready.$RANK; while :; do sleep 0.05; done'
wait_until 60 test -e "$work/ready.0" -a -e "$work/ready.1"
as_user scancel "$job"
finish
expect_equal "$(job_field "$job" JobState)" CANCELLED 'state'
node=$(job_field "$job" BatchHost)
wait_until 30 eval '! (cd / && "$cluster" on "$node" pgrep -x muster >/dev/null)'
expect_true test -e "$work/clean.0" -a -e "$work/clean.1"

# Several nodes: this version says so, in the note and in the job, and does not run all ranks on one of them.
submit --gpus 8 --gpus-per-node 4 -- hostname
expect_contains "$work/notes" 'one node only'
finish
expect_equal "$(job_field "$job" NumNodes) $(job_field "$job" NumTasks)" '2 8' 'what Slurm was asked for'
[ "$code" != 0:0 ] || fail 'a job of two nodes ended well on one'
! grep -q '^node[12]$' "$OUT" || fail 'ranks ran all the same'
