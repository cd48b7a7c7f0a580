# timeout: 180
# Messages and allreduces over two nodes: a latency and a rate for each level, and a study's waiting held against them.
. "$(dirname "$0")/cluster_lib.sh"
[ -x "$MUSTER_BIN/muster-bench" ] || skip 'muster-bench was not built (no MPI or no HDF5)'
start_cluster 2 0
install_muster
cp "$MUSTER_BIN/muster-bench" "$work/prefix/bin/" && chmod 755 "$work/prefix/bin/muster-bench" || exit 1
allocate -N2 --ntasks-per-node=2
bench=$work/prefix/bin/muster-bench

expect_mpi_exit 0 inside prefix/bin/muster run -n 4 --timeout 50s -- "$bench" collectives-here -b 64 -e 64KiB -f 32 --repeats 1 --json here.json
expect_contains stdout 'between nodes' 'in node'
expect_true python3 - "$work/here.json" <<'PY'
import json, sys
here = json.load(open(sys.argv[1]))
assert sorted(set(here["hosts"])) == ["node1", "node2"] and len(here["hosts"]) == 4, here["hosts"]
fits = {pair["level"]: pair["fitted"] for pair in here["pairs"]}
assert sorted(fits) == ["between nodes", "in node"], fits
for level, fit in fits.items():  # none where times do not grow with the size, as on a busy machine
    assert fit is None or fit["alpha_us"] >= 0 and fit["gbs"] > 0, (level, fit)
# So that what follows is certain: 100 us and 2 ns a byte.
for table in here["tables"]:
    for size in table["sizes"]:
        for place in ("in_place_us", "out_of_place_us"):
            for sample in size[place]:
                sample.update(dict.fromkeys(("min", "avg", "max"), 100 + 2e-3 * size["bytes"]))
json.dump(here, open(sys.argv[1], "w"))
PY

# The built-in training on as many ranks, over both nodes. Its communication is so large there that it is a cause.
expect_mpi_exit 0 inside "$bench" scale --ranks 1,4 --repeats 1 --warmup 0 --images 1280,64 --timeout 40s --no-html -o study
expect_exit 0 as_user "$bench" report study --collectives here.json --no-html
expect_matches stdout '^why it stops \(communication\): .* by the allreduces of here.json \([a-z]+, 4 ranks between nodes: 100(\.0)? us \+ 2\.00 ns/B\)'
release
expect_nothing_left
