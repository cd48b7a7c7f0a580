. "$(dirname "$0")/lib.sh"
expect_exit 0 "$MUSTER" plan
expect_contains stdout rank host GPU cores NUMA NIC why
expect_exit 0 "$MUSTER" plan --topology "$MUSTER_SOURCE_DIR/tests/fixtures/topology/two-packages.xml" -n 4 --json
expect_true python3 - "$OUT" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1]))
assert plan["schema"] == "muster.plan/1" and plan["world_size"] == 4
assert [r["cpus"] for r in plan["ranks"]] == ["0-3", "4-7", "8-11", "12-15"], plan
assert [r["numa"] for r in plan["ranks"]] == [0, 0, 1, 1]
PY
expect_exit 125 "$MUSTER" plan --topology none.xml
expect_contains stderr "no topology file none.xml"
expect_exit 125 "$MUSTER" plan --topology "$MUSTER_SOURCE_DIR/README.md"
expect_exit 125 "$MUSTER" plan -n 9 --slots-per-node 8
expect_contains stderr "use -n 8, or --slots-per-node 9"

# A job of several nodes is not quietly run on one.
export SLURM_JOB_NUM_NODES=2 SLURM_JOB_ID=17 SLURM_JOB_NODELIST='n[1-2]'
expect_exit 125 "$MUSTER" run -- true
expect_contains stderr "Slurm job 17 has 2 nodes (n[1-2])" "--scheduler local"
expect_exit 0 "$MUSTER" run --scheduler local -q -n 1 -- true

expect_exit 0 "$MUSTER" doctor --json
expect_true python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["findings"]) > 5' "$OUT"
expect_exit 2 "$MUSTER" doctor all
expect_exit 0 "$MUSTER" --version
expect_exit 2 "$MUSTER"
