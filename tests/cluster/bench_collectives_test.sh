# timeout: 180
# Messages and allreduces over two nodes: a latency and a rate for each level. Steps of timed compute over both.
# parts: bench
. "$(dirname "$0")/cluster_lib.sh"
[ -x "$MUSTER_BIN/muster-bench" ] || skip 'muster-bench was not built (launcher only)'
start_cluster 2 0
install_muster
cp "$MUSTER_BIN/muster-bench" "$work/prefix/bin/" && chmod 755 "$work/prefix/bin/muster-bench" || exit 1
allocate -N2 --ntasks-per-node=2
bench=$work/prefix/bin/muster-bench

expect_mpi_exit 0 inside prefix/bin/muster run -n 4 --timeout 50s -- "$bench" collectives -b 64 -e 64KiB -f 32 --repeats 1 --json here.json
expect_contains stdout 'between nodes' 'in node'
expect_true python3 - "$work/here.json" <<'PY'
import json, sys
here = json.load(open(sys.argv[1]))
assert [each["schema"] for each in here] == ["muster.collectives/1", "muster.messages/1", "muster.messages/1"], here
for each in here:
    assert sorted(set(each["hosts"])) == ["node1", "node2"] and len(each["hosts"]) == 4, each["hosts"]
fits = {messages["level"]: messages["fitted"] for messages in here[1:]}
assert sorted(fits) == ["between nodes", "in node"], fits
for level, fit in fits.items():  # none where times do not grow with the size, as on a busy machine
    assert fit is None or fit["alpha_us"] >= 0 and fit["gbs"] > 0, (level, fit)
PY

# A study of timed compute on as many ranks: it has no time to hide its gradients behind, so that communication is a cause.
expect_mpi_exit 0 inside "$bench" scale --ranks 1,4 --repeats 1 --warmup 0 --time-metric train_s --timeout 60s -o study -- "$bench" steps --steps 3 --compute-ms 1
expect_matches stdout '^what limits it \(communication\): at 4 ranks'
release
expect_nothing_left
