# What the tests of PBS share: pbs_stand_in.py stands in for PBS on node1 to node3 of the cluster, of which the first two have full names in node files, as at most sites.
. "$(dirname "$0")/cluster_lib.sh"

# start_pbs: after start_cluster, once muster is in $work.
start_pbs() {
    sed 's/^\([^ ]*\) \(node[12]\)$/\1 \2.lab.example \2/' "$CLUSTER_DIR/nodes.etc/hosts" >"$lib_dir/hosts" && cat "$lib_dir/hosts" >"$CLUSTER_DIR/nodes.etc/hosts"
    serve_stand_in pbs_stand_in.py "$work/pbs" node1 node2 node3
}

# job CHUNKS SCRIPT: a job of PBS; what it printed, on both ways, becomes $OUT, its exit code $code.
job() {
    COMMAND="job of $1: $2"
    as_user ./pbs_stand_in.py job "$work/pbs" "$1" /bin/bash -c "export PATH=$PATH; $2" >"$OUT" 2>"$ERR"
    code=$?
}
