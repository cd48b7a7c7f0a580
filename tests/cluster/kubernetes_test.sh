# timeout: 300
# A launcher pod starts ranks over ssh in worker pods that it learns of from kubectl: pods pending, deleted, and back under their names. kubectl and sshd are
# real; the API server is a stand-in, and a pod is a namespace.
. "$(dirname "$0")/cluster_lib.sh"
kubectl=$(command -v kubectl) || skip 'no kubectl'
sshd=$(PATH=$PATH:/usr/sbin command -v sshd) || skip 'no sshd'
start_cluster 3 1
install_muster
here=$MUSTER_SOURCE_DIR/tests/cluster

# The pods' ssh server, key and client.
ssh-keygen -q -t ed25519 -N '' -f "$work/key" && cp "$work/key.pub" "$work/authorized"
cat >"$work/sshd_config" <<EOF
Port 2222
HostKey $work/key
AuthorizedKeysFile $work/authorized
PidFile none
UsePAM no
StrictModes no
EOF
chown 7777 "$work/key" # the cluster's user
export MUSTER_REMOTE_SHELL="ssh -p 2222 -i $work/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -x -T -o BatchMode=yes"
spared='process [0-9]+: .*(sshd|kubernetes_api_stand_in)'
as_pod() { (cd "$work" && exec setsid "$cluster" on "$@" </dev/null >/dev/null 2>&1) & disown; }
reaches() { as_user $MUSTER_REMOTE_SHELL "$1" true 2>/dev/null; }
start_pod() {
    as_pod "$1" "$sshd" -De -f "$work/sshd_config"
    wait_until 30 reaches "$1" || exit 1
}
# end_pod NODE: all of it, as when a pod is deleted, and with it its memory.
end_pod() { as_pod "$1" bash -c 'kill -9 -1; rm -rf /dev/shm/muster-*'; }
pods() { printf '%s\n' "$@" >"$work/pods.new" && mv "$work/pods.new" "$work/pods"; }
address() { sed -n "s/[[:space:]].*$1\$//p" "$CLUSTER_DIR/nodes.etc/hosts" | head -n 1; }
for pod in node1 node2 node3; do start_pod $pod; done

# The API server, and the script of the document.
pods "node1 $(address node1) Running" "node2 $(address node2) Running" "node3 $(address node3) Pending"
cp "$here/kubernetes_api_stand_in.py" "$work/"
as_pod head /usr/bin/python3 ./kubernetes_api_stand_in.py port pods
wait_until 30 test -e "$work/port" || exit 1
cat >"$work/kubeconfig" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:$(cat "$work/port")"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
EOF
sed -n '/^<!-- file: discover.sh -->/,/^```$/p' "$MUSTER_SOURCE_DIR/docs/kubernetes.md" | sed '1,2d;$d' >"$work/discover.sh"
chmod 755 "$work/discover.sh"
export KUBECONFIG=$work/kubeconfig
expect_exit 0 as_user ./discover.sh
expect_equal "$(lines "$OUT")" "$(address node1):1; $(address node2):1" 'running pods'

# The mpi-operator's files.
printf 'node1 slots=1\nnode2 slots=2\n' >"$work/hostfile"
expect_exit 0 as_user prefix/bin/muster run --hostfile hostfile -- sh -c 'echo "$MUSTER_RANK $(hostname)"'
expect_equal "$(lines "$OUT")" '0 node1; 1 node2; 2 node2' 'ranks of the host file'
printf '#!/bin/sh\necho node1\necho node2\n' >"$work/discover_hosts.sh" && chmod 755 "$work/discover_hosts.sh"
expect_exit 0 as_user prefix/bin/muster run -n 2 --host-discovery-script ./discover_hosts.sh -- sh -c 'echo "$MUSTER_RANK $(hostname)"'
expect_equal "$(lines "$OUT")" '0 node1; 1 node2' 'ranks of the script without slots'

# Ranks that save when they are asked to, until there is a file `done`.
write_program train <<'EOF'
trap 'exit 75' USR1
echo "generation $MUSTER_GENERATION: rank $MUSTER_RANK of $MUSTER_WORLD_SIZE on $(hostname)"
until [ -e done ]; do sleep 0.05; done
EOF
begins() { [ "$(grep -c "^generation $1: rank . of $2 on " "$OUT")" = "$2" ]; }
start as_user prefix/bin/muster run -np 2 --min-np 1 --max-np 3 --host-discovery-script ./discover.sh --blacklist-cooldown-range 1,2 --heartbeat 2s -- ./train
longest_s=200
wait_until 30 begins 0 2 || exit 1
# A pod is deleted: its ranks are lost, and the next generation has the others.
pods "node1 $(address node1) Running" "node2 $(address node2) Running Terminating" "node3 $(address node3) Pending"
end_pod node2
wait_until 60 begins 1 1 || exit 1
expect_contains stdout 'generation 1: rank 0 of 1 on node1'
# It is back under its name, and the pending one runs.
start_pod node2
pods "node1 $(address node1) Running" "node2 $(address node2) Running" "node3 $(address node3) Running"
grown() { [ "$(grep -c '^generation [0-9]*: rank . of 3 on ' "$OUT")" -ge 3 ]; }
wait_until 90 grown || exit 1
for node in node1 node2 node3; do expect_matches stdout "^generation [0-9]+: rank . of 3 on $node\$"; done
touch "$work/done"
expect_end 0
expect_nothing_left

# A program with elastic.run follows the pods in place: one runs that was pending, one is about to end, and is back under its name.
in_place() {
    local address1 address2 address3
    address1=$(address node1) address2=$(address node2) address3=$(address node3)
    for part in libraries python; do cmake --install "$MUSTER_BIN/.." --prefix "$work/prefix" --component $part >/dev/null || exit 1; done
    cp "$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_hosts.py" "$work/" && chmod -R a+rX "$work/prefix" "$work/elastic_hosts.py"
    goes_on() { wait_until 60 grep -q "^member $1, pid [0-9]*: rank $2 of $3 in generation $4\$" "$OUT" || exit 1; }
    pods "node1 $address1 Running" "node2 $address2 Running" "node3 $address3 Pending"
    start as_user prefix/bin/muster run --as-horovod -np 2 --min-np 1 --max-np 3 --host-discovery-script ./discover.sh --heartbeat 2s -- /usr/bin/python3 elastic_hosts.py
    goes_on 1 1 2 0
    pods "node1 $address1 Running" "node2 $address2 Running" "node3 $address3 Running"
    goes_on 2 2 3 1
    pods "node1 $address1 Running Terminating" "node2 $address2 Running" "node3 $address3 Running"
    goes_on 1 0 2 2
    end_pod node1
    ended() { ! reaches node1; }
    wait_until 30 ended || exit 1
    start_pod node1
    pods "node1 $address1 Running" "node2 $address2 Running" "node3 $address3 Running"
    goes_on 3 2 3 3
    touch "$work/end"
    expect_end 0
    expect_equal "$(sed -n 's/^member 1, pid \([0-9]*\):.*/\1/p' "$OUT" | sort -u | wc -l)" 1 'processes of member 1'
    expect_not_contains stderr 'error: '
    expect_nothing_left
}
if /usr/bin/python3 -c 'import numpy' 2>/dev/null && [ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ]; then in_place; fi

# kubectl fails at the start.
: >"$work/kubeconfig"
expect_exit 2 as_user prefix/bin/muster run -np 2 --min-np 1 --host-discovery-script ./discover.sh -- true
expect_contains stderr '--host-discovery-script'
