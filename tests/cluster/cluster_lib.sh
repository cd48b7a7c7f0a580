# Sourced by every tests/cluster/*_test.sh: tests/cli/lib.sh, a Slurm cluster of the test's own, and jobs on it.
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
cluster=$MUSTER_SOURCE_DIR/tests/cluster/slurm_cluster.sh

# start_cluster NODES GPUS: ends the test as skipped, with the reason, where there can be none. The cluster is gone when the test ends, in whatever way.
start_cluster() {
    local lacking
    lacking=$("$cluster" missing) || skip "this test starts a Slurm cluster of its own; lacking here: $lacking"
    # Names of its own, so that the tests of a second build tree do not meet it.
    export CLUSTER_DIR=/tmp/muster-cluster.$$ CLUSTER_PREFIX=ms$$ CLUSTER_NODES=$1 CLUSTER_GPUS=$2
    work=$CLUSTER_DIR/work
    # Should this test be killed, someone else must end the cluster; in a session of its own, so that it outlives what kills the test.
    setsid -f bash -c 'tail --pid="$1" -f /dev/null; [ ! -e "$CLUSTER_DIR" ] || { "$2" down && rm -rf "$CLUSTER_DIR" "$3"; }' watch $$ "$cluster" "$lib_dir" \
        </dev/null >/dev/null 2>&1
    expect_exit 0 "$cluster" up || exit 1
}

at_end() {
    [ -n "${CLUSTER_DIR:-}" ] || return 0
    [ ! -s "$lib_dir/failures" ] || tail -n 20 "$CLUSTER_DIR"/log/slurm*.log
    "$cluster" down || fail 'the cluster did not end'
    [ -z "$(ip netns list | grep "^$CLUSTER_PREFIX-")" ] || fail 'namespaces are left'
    [ -z "$(grep -lzs "^SLURM_CONF=$CLUSTER_DIR/" /proc/[0-9]*/environ)" ] || fail 'processes are left'
    rm -rf "$CLUSTER_DIR"
}

# install_muster: the program and its site files where the cluster's user may read them; a build tree may be closed to others.
install_muster() {
    mkdir -p "$work/prefix/bin" "$work/prefix/share/muster"
    cp "$MUSTER" "$work/prefix/bin/muster" || exit 1
    cp -r "$MUSTER_SOURCE_DIR/site-configs" "$work/prefix/share/muster/" || exit 1
    chmod -R a+rX "$work/prefix"
}

# as_user COMMAND...: on the login node, in $work.
as_user() { (cd "$work" && exec timeout 60 "$cluster" run "$@"); }

job_field() { as_user scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
has_ended() { case $(job_field "$1" JobState) in PENDING | RUNNING | CONFIGURING | COMPLETING | '') false ;; esac; }

# submit_script FILE: its number is then in $job. Without one the test cannot go on.
submit_script() {
    job=$(as_user sbatch --parsable "$1") || {
        fail "sbatch refused $1: $(cat "$work/$1")"
        exit 1
    }
}

# finish_job: waits for $job; what it printed becomes $OUT, its exit code and signal ("3:0") $code.
finish_job() {
    COMMAND="job $job"
    wait_until 90 has_ended "$job" || exit 1
    cp "$work/slurm-$job.out" "$OUT" 2>/dev/null || : >"$OUT"
    code=$(job_field "$job" ExitCode)
}
