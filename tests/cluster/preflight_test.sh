# muster run --preflight, --exclude-bad-nodes and muster doctor --allocation on nodes that are well, and on some that are not.
# timeout: 120
# parts: preflight
. "$(dirname "$0")/cluster_lib.sh"
export CLUSTER_GPU_VARIABLES=1 # the only way that made-up GPUs can be counted
start_cluster 4 4
install_muster

# in_job MUSTER-ARGUMENTS...: in an allocation of all nodes; $OUT, $ERR and $code.
in_job() {
    COMMAND="muster $*"
    as_user salloc --quiet -N4 --ntasks-per-node=4 --gres=gpu:4 -t2 prefix/bin/muster "$@" >"$OUT" 2>"$ERR" </dev/null
    code=$?
}
# as_root NODE COMMAND...: in the node's own file systems.
as_root() {
    local pid
    read -r pid <"$CLUSTER_DIR/run/$1.init"
    shift
    nsenter -t "$pid" -m -- "$@"
}
say='echo "rank $RANK of $WORLD_SIZE on $(hostname)"'
hosts_of_ranks() { sed 's/.* on //' "$OUT" | sort | uniq -c | tr -s ' \n' ' '; }

# All is well: nothing is said, and nothing is left out.
in_job run --preflight -- bash -c "$say"
expect_equal "$code" 0 'exit code'
expect_empty stderr
expect_equal "$(hosts_of_ranks)" ' 4 node1 4 node2 4 node3 4 node4 ' 'ranks on the nodes'
in_job doctor --allocation -- bash
expect_equal "$code" 0 'exit code of doctor'
expect_contains stdout '4 of 4 nodes are fit for ranks' 'engine srun'
expect_matches stdout '^node3 +ok +[0-9.]+13 +eth0 +[0-9]+ +4 '
in_job doctor --allocation --json
expect_equal "$code" 0 'exit code of doctor --json'
expect_true python3 - "$OUT" <<'PY'
import json, sys
nodes = json.load(open(sys.argv[1]))["nodes"]
assert [n["node"] for n in nodes] == ["node1", "node2", "node3", "node4"], nodes
assert all(n["state"] == "ok" and n["host"] == n["node"] and len(n["gpus"]) == 4 and not n["findings"] for n in nodes), nodes
assert [n.get("connects_to") for n in nodes] == [None, "node1", "node1", "node1"], nodes
PY
expect_true test -z "$(as_user squeue -h)" # no job is left behind

# A program that one node does not have.
for node in node1 node2 node4; do (cd / && "$cluster" on "$node" cp /bin/echo /tmp/program); done
in_job run --preflight -- /tmp/program hello
expect_equal "$code" 125 'exit code'
expect_contains stderr 'node3: no program /tmp/program' '1 of 4 nodes did not pass preflight: node3'
expect_empty stdout
in_job run --preflight -n 8 -- /tmp/program hello # which are on the first two nodes
expect_equal "$code" 0 'exit code without the bad node'
expect_equal "$(grep -c hello "$OUT")" 8 'ranks'
in_job run --exclude-bad-nodes -n 12 -- /tmp/program hello
expect_equal "$code" 0 "exit code with the bad node left out"
expect_contains stderr 'going on without node3 (1 of 4 nodes)'
expect_equal "$(grep -c hello "$OUT")" 12 'ranks'
in_job run --exclude-bad-nodes -n 13 -- /tmp/program hello
expect_equal "$code" 125 'exit code where too few are left'
expect_contains stderr 'without node3 (1 of 4 nodes)' '12 GPUs on 3 nodes'
in_job run --exclude-bad-nodes --nnodes 4 -- /tmp/program hello
expect_equal "$code" 125 'exit code where too few nodes are left'
expect_contains stderr '--nnodes 4 are asked for and 3 are left'

# No room in the shared memory of one.
as_root node2 mount -o remount,size=64k /dev/shm
in_job run --preflight -- bash -c "$say"
expect_equal "$code" 125 'exit code'
expect_matches stderr '^muster: node2: /dev/shm has only [0-9.]+ (B|KiB) free'
in_job doctor --allocation
expect_equal "$code" 1 'exit code of doctor'
expect_matches stdout '^node2 +BAD ' '^node1 +ok '
expect_contains stdout '3 of 4 nodes are fit for ranks'
as_root node2 mount -o remount,size=512m /dev/shm

# A name that nobody knows.
cp "$CLUSTER_DIR/nodes.etc/hosts" "$lib_dir/hosts"
grep -v 'node4$' "$lib_dir/hosts" >"$CLUSTER_DIR/nodes.etc/hosts" # the same file on every node
in_job run --preflight -- bash -c "$say"
expect_equal "$code" 125 'exit code'
expect_contains stderr 'node4: its name does not resolve on node1, node2, node3'
cat "$lib_dir/hosts" >"$CLUSTER_DIR/nodes.etc/hosts"

# A node that is gone: the others go on.
cat >"$work/lost.sh" <<SH
: >"$work/allocated"
until [ -e "$work/crashed" ]; do sleep 0.05; done
prefix/bin/muster run --exclude-bad-nodes --nnodes 3 -- bash -c '$say'
SH
COMMAND='muster run --exclude-bad-nodes --nnodes 3, with node3 gone'
as_user salloc --quiet --no-kill -N4 --ntasks-per-node=4 --gres=gpu:4 -t2 bash lost.sh >"$OUT" 2>"$ERR" &
salloc=$!
wait_until 30 test -e "$work/allocated" || exit 1
"$cluster" crash node3
: >"$work/crashed"
wait "$salloc"
expect_equal "$?" 0 'exit code with a node gone'
expect_matches stderr '^muster: node3: it did not answer'
expect_contains stderr 'going on without node3 (1 of 4 nodes)'
expect_equal "$(hosts_of_ranks)" ' 4 node1 4 node2 4 node4 ' 'ranks on the nodes left'
