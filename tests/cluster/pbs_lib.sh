# What the tests of PBS share: pbs_stand_in.py stands in for PBS on node1 to node3 of the cluster, of which the first two have full names in node files, as at most sites.
. "$(dirname "$0")/cluster_lib.sh"

# start_pbs: after start_cluster, once muster is in $work.
start_pbs() {
    cp "$MUSTER_SOURCE_DIR/tests/cluster/pbs_stand_in.py" "$work/pbs_stand_in.py"
    chmod 755 "$work/pbs_stand_in.py"
    mkdir "$work/pbs" && chmod 777 "$work/pbs"
    sed 's/^\([^ ]*\) \(node[12]\)$/\1 \2.lab.example \2/' "$CLUSTER_DIR/etc/hosts" >"$lib_dir/hosts" && cat "$lib_dir/hosts" >"$CLUSTER_DIR/etc/hosts"
    local node
    for node in node1 node2 node3; do
        (cd "$work" && exec setsid "$cluster" on "$node" ./pbs_stand_in.py serve "$work/pbs" </dev/null >>"$CLUSTER_DIR/log/pbs.$node.log" 2>&1) &
        disown
    done
    all_serve() { [ -S "$work/pbs/node1" ] && [ -S "$work/pbs/node2" ] && [ -S "$work/pbs/node3" ]; }
    wait_until 30 all_serve || exit 1
}

# job CHUNKS SCRIPT: a job of PBS; what it printed, on both ways, becomes $OUT, its exit code $code.
job() {
    COMMAND="job of $1: $2"
    as_user ./pbs_stand_in.py job "$work/pbs" "$1" /bin/bash -c "export PATH=$PATH; $2" >"$OUT" 2>"$ERR"
    code=$?
}
