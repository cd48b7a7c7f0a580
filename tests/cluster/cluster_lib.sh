# Sourced by every tests/cluster/*_test.sh: tests/cli/lib.sh, a Slurm cluster of the test's own, and jobs on it.
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
cluster=$MUSTER_SOURCE_DIR/tests/cluster/slurm_cluster.sh
# Another Slurm than the one on PATH.
[ -z "${MUSTER_TEST_SLURM:-}" ] || export PATH=$MUSTER_TEST_SLURM/bin:$MUSTER_TEST_SLURM/sbin:$PATH

# start_cluster NODES GPUS: in /tmp, or in $CLUSTER_PARENT; ends the test as skipped, with the reason, where there can be none. The cluster is gone when the test ends, in whatever way.
start_cluster() {
    local lacking
    lacking=$("$cluster" missing) || skip "this test starts a Slurm cluster of its own; lacking here: $lacking"
    # Names of its own, so that the tests of a second build tree do not meet it.
    export CLUSTER_DIR=${CLUSTER_PARENT:-/tmp}/muster-cluster.$$ CLUSTER_PREFIX=ms$$ CLUSTER_NODES=$1 CLUSTER_GPUS=$2
    work=$CLUSTER_DIR/work
    # Should this test be killed, someone else must end the cluster; in a session of its own, so that it outlives what kills the test.
    setsid -f bash -c 'tail --pid="$1" -f /dev/null; [ ! -e "$CLUSTER_DIR" ] || { "$2" down && rm -rf "$CLUSTER_DIR" "$3"; }' watch $$ "$cluster" "$lib_dir" \
        </dev/null >/dev/null 2>&1
    expect_exit 0 "$cluster" up || exit 1
}

at_end() {
    [ -n "${CLUSTER_DIR:-}" ] || return 0
    [ ! -s "$lib_dir/failures" ] || tail -n 20 "$CLUSTER_DIR"/log/slurm*.log 2>/dev/null
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
    cp "$MUSTER_SOURCE_DIR/tests/fixtures/sites/test-cluster.toml" "$work/prefix/share/muster/site-configs/" || exit 1
    chmod -R a+rX "$work/prefix"
}

# as_user COMMAND...: on the login node, in $work, without what ctest tells the tests, for at most $longest_s.
longest_s=60
as_user() { (cd "$work" && unset MUSTER MUSTER_BIN MUSTER_SOURCE_DIR MUSTER_WORLD_SIZE && exec timeout "$longest_s" "$cluster" run "$@"); }

job_field() { as_user scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
has_ended() { case $(job_field "$1" JobState) in PENDING | RUNNING | CONFIGURING | COMPLETING | '') false ;; esac; }

# submit_script FILE [OPTIONS-OF-SBATCH...]: its number is then in $job. Without one the test cannot go on.
submit_script() {
    job=$(as_user sbatch --parsable "${@:2}" "$1") || {
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

# install_programs NAME...: programs of the build tree into $work; fails if one was not built.
install_programs() {
    local name
    for name; do cp "$MUSTER_BIN/$name" "$work/$name" && chmod 755 "$work/$name" || return 1; done
}

# expect_mpi_exit CODE[|CODE] COMMAND...: expect_exit for programs of MPI over several nodes; the code is in $got. On a busy machine Open MPI 4.1.4 and 5.0.7 now and then fall over or hang in
# MPI_Init, whoever started them: a peer's connection reaches the TCP transport before that is ready (a call of a null pointer in mca_btl_tcp, an address near null in
# mca_pml_ob1_recv_frag_callback_match), and UCX within MPICH 4.0.2 gives up an endpoint whose peer waits for a core ("Endpoint timeout"). Such runs are told and repeated.
expect_mpi_exit() {
    local want=$1 again
    shift
    printf -v COMMAND '%q ' "$@"
    for again in 1 2 3 4 5; do
        "$@" >"$OUT" 2>"$ERR"
        got=$?
        [ "$got" = 124 ] || grep -q -e 'Signal: Segmentation fault' -e 'Caught signal 11 (Segmentation fault' -e 'Endpoint timeout' "$ERR" || break
        echo "MPI itself failed (exit code $got), try $again"
    done
    [[ $got =~ ^($want)$ ]] || fail "exit code $got, expected $want"
}

# allocate OPTIONS...: an allocation by salloc; its shell waits on the login node, and `inside COMMAND...` runs a command there as that shell would, with
# its environment. $job is its number. `release` gives it back.
allocate() {
    rm -f "$work/salloc.env"
    (cd "$work" && exec "$cluster" run salloc -Q -K "$@" bash -c 'env -0 >salloc.tmp && mv salloc.tmp salloc.env && exec sleep infinity') \
        </dev/null >"$work/salloc.out" 2>&1 &
    salloc_pid=$!
    wait_until 60 test -e "$work/salloc.env" || {
        cat "$work/salloc.out"
        exit 1
    }
    mapfile -d '' -t salloc_env <"$work/salloc.env"
    job=$(tr '\0' '\n' <"$work/salloc.env" | sed -n 's/^SLURM_JOB_ID=//p')
}
inside() { as_user env "${salloc_env[@]}" "$@"; }
release() {
    as_user scancel "$job" 2>/dev/null
    wait_until 60 has_ended "$job"
    wait "$salloc_pid" 2>/dev/null || :
}

# start COMMAND...: one of the above in the background, its pid in $PID, output as expect_exit does. expect_end CODE: waits for it; $TOOK_MS is how long it
# ran on since `mark`.
start() {
    printf -v COMMAND '%q ' "$@"
    : >"$OUT"
    : >"$ERR"
    "$@" >"$OUT" 2>"$ERR" &
    PID=$!
    mark
}
mark() { marked_at=$(date +%s%N); }
expect_end() {
    local got
    wait "$PID"
    got=$?
    TOOK_MS=$((($(date +%s%N) - marked_at) / 1000000))
    [ "$got" = "$1" ] || fail "exit code $got, expected $1"
}

# expect_took MOST_MS WHAT: how long it took is printed; more than MOST_MS is a failure. The bounds are those that users are promised, not measurements.
expect_took() {
    echo "$2: $TOOK_MS ms"
    [ "$TOOK_MS" -le "$1" ] || fail "$2 took $TOOK_MS ms, more than $1"
}

# expect_nothing_left [SECONDS]: no process of the user's on any node (the waiting salloc shell aside), no file in /dev/shm or /tmp, but what matches $spared.
spared='^$'
leftovers() { "$cluster" left | grep -vE -e ': process [0-9]+: (salloc |sleep infinity )' -e "$spared"; }
nothing_left() { ! leftovers >/dev/null; }
expect_nothing_left() {
    wait_until "${1:-10}" nothing_left || leftovers
}

# lines FILE: sorted, joined by "; ".
lines() { sort -V "$1" | paste -sd';' | sed 's/;/; /g'; }

# write_program NAME <<…: a bash script in $work that is executable. It may use $work.
write_program() { { printf '#!/bin/bash\n'; cat; } >"$work/$1" && chmod 755 "$work/$1"; }

# batch SBATCH_OPTION... <<…: submits the script on standard input.
batch() {
    write_program batch.sh
    submit_script batch.sh "$@"
}

# start_elastic_cluster NODES CPUS: with muster, its Python package and steps.py (elastic_steps.py) in $work; skips where a part is missing.
start_elastic_cluster() {
    /usr/bin/python3 -c 'import numpy' 2>/dev/null || skip 'no NumPy for /usr/bin/python3'
    [ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip 'the Python package is not built'
    start_cluster "$@"
    for part in launcher libraries python; do cmake --install "$MUSTER_BIN/.." --prefix "$work/prefix" --component $part >/dev/null || exit 1; done
    cp "$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_steps.py" "$work/steps.py"
    chmod -R a+rX "$work/prefix" "$work"/*.py
}

# serve_stand_in PROGRAM FOLDER NODE...: starts this program of tests/cluster on these nodes, each with its socket in the folder, and waits for them.
serve_stand_in() {
    local program=$1 folder=$2 node
    shift 2
    local -a nodes=("$@")
    cp "$MUSTER_SOURCE_DIR/tests/cluster/$program" "$work/" && chmod 755 "$work/$program"
    mkdir -p "$folder" && chmod 777 "$folder"
    for node in "${nodes[@]}"; do
        (cd "$work" && exec setsid "$cluster" on "$node" "./$program" serve "$folder" </dev/null >>"$CLUSTER_DIR/log/$program.$node.log" 2>&1) &
        disown
    done
    all_serve() { for node in "${nodes[@]}"; do [ -S "$folder/$node" ] || return 1; done; }
    wait_until 30 all_serve || exit 1
}

# serve_remote_shell NODE...: from now on muster reaches these nodes by that stand-in.
serve_remote_shell() {
    serve_stand_in node_rsh.py "$work/node_rsh" "$@"
    spared='process [0-9]+: .*node_rsh.py serve'
    export NODE_RSH_FOLDER=$work/node_rsh MUSTER_REMOTE_SHELL=$work/node_rsh.py
}
