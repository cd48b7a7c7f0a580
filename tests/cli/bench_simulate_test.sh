# timeout: 300
# Simulated allreduces and steps: known answers, the word on everything, what is refused.
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (no MPI or no HDF5)"
if [ ! -x "$MUSTER_BIN/muster-simulate" ]; then
    expect_exit 125 "$bench" simulate --platform polaris
    expect_contains stderr "install libsimgrid-dev"
    skip "the simulator was not built (no libsimgrid-dev, or sanitizers)"
fi

# Two ranks over one link of known latency and rate: whole tensors go both ways at once, one latency and S/rate; large ones in
# halves, twice. 17 ranks are more than muster reduces directly: MPI's ring, 2 * 16 rounds of a 17th. Of 60, one
# simulated round stands for four.
expect_exit 0 "$bench" simulate --latency-us 10 --link-gbs 10 --ranks 2,17,60 --gradient-bytes 4,2000,64MiB --json -
expect_true python3 - "$OUT" <<'PY'
import json, sys
study = json.load(open(sys.argv[1]))
assert study["simulated"] is True and study["schema"] == "muster.simulation/1"
two, many, more = study["results"]
alpha, beta = 10e-6, 1 / 10e9
S = 64 << 20
assert two["simulated"] is True and two["backend"] == "mpi"
known = {4: alpha + 4 * beta, 2000: alpha + 2000 * beta, S: S * beta}
for each in two["allreduces"]:
    expected = known[each["bytes"]]
    assert abs(each["seconds"] / expected - 1) < 0.03, (each, expected)
ring = 32 * (alpha + S / 17 * beta)
assert abs(many["allreduces"][2]["seconds"] / ring - 1) < 0.03, (many["allreduces"][2], ring)
ring = 118 * (alpha + S / 60 * beta)
assert abs(more["allreduces"][2]["seconds"] / ring - 1) < 0.03, (more["allreduces"][2], ring)
doubling = 6 * (alpha + 4 * beta)  # 17 is one more than 16: in, four rounds, out
assert abs(many["allreduces"][0]["seconds"] / doubling - 1) < 0.03, (many["allreduces"][0], doubling)
PY

expect_exit 0 "$bench" simulate --platform dgx-a100 --ranks 1,2,4,8 --network resnet50 --compute-ms 100 --json steps.json
expect_contains stdout "SIMULATED on dgx-a100" "simulated step ms" "Not a measurement"
expect_true python3 - <<'PY'
import json
study = json.load(open("steps.json"))
steps = [r["step_s"] for r in study["results"]]
assert len(steps) == 4 and all(r["simulated"] for r in study["results"])
assert abs(steps[0] - 0.1) < 1e-3, steps
assert all(0.1 <= s < 0.11 for s in steps), steps
PY
# Nothing is hidden behind a backward pass that takes no time.
expect_exit 0 "$bench" simulate --platform dgx-a100 --ranks 8 --network resnet50 --compute-ms 0 --json -
expect_true python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))["results"][0]
assert r["step_s"] > 0.0005 and abs(r["exposed_s"] - r["step_s"]) < 0.2 * r["step_s"], r' "$OUT"

expect_exit 0 "$bench" simulate --platform dgx-a100 --ranks 1,2,4,8,16,32 --network cifar10 --protocol published --json table.json
expect_contains stdout "FITTED to the six published points" "Leave one out" "KNOWN before the fit" "PREDICTED, nothing fitted"
expect_exit 0 "$bench" simulate --platform dgx-a100 --ranks 1,2,4,8,16,32 --network cifar10 --json ours.json
expect_true python3 - <<'PY'
import json
def seconds(name):
    return {r["ranks"]: r["predicted"]["seconds_of_run"] for r in json.load(open(name))["results"]}
t, ours = seconds("table.json"), seconds("ours.json")
assert 7.1 <= t[1] / t[8] <= 8.5, t
assert all(0.9 <= t[n] / t[8] <= 1.15 for n in (16, 32)), t
assert ours[1] / ours[32] > 0.85 * 32, ours
PY

python3 - <<'PY'
import json
epoch = {"steps": 100, "train_s": 1.0, "allreduce_wait_s": 0.1, "loader_wait_s": 0.1}
json.dump({"runs": [{"ranks": 1, "simulated": False, "train": {"epochs_done": [epoch]}}]}, open("results.json", "w"))
PY
expect_exit 0 "$bench" predict results.json --platform perlmutter --gpus 8 --json p.json
expect_contains stdout "SIMULATED on 8 ranks" "8.000 ms compute" "What limits it: compute"
expect_true python3 -c '
import json
p = json.load(open("p.json"))
assert p["simulated"] and p["predicted_best"]["step_s"] <= p["predicted"]["step_s"] <= p["predicted_worst"]["step_s"], p
assert 0.009 <= p["predicted"]["step_s"] < 0.0105, p'

# A program of the user's: its steps are said, its gradients too.
cat >program <<'PROGRAM'
#!/bin/sh
echo "muster-metric: train_s 2 s"
PROGRAM
chmod +x program
expect_exit 0 "$bench" scale --muster "$MUSTER" --ranks 1 --repeats 1 --warmup 0 --time-metric train_s --no-html -o own -- ./program
expect_exit 0 "$bench" predict own/results.json --steps 100 --gradient-bytes 100MiB --platform perlmutter --gpus 8 --json p.json
expect_contains stdout "SIMULATED on 8 ranks" "20.000 ms compute"
expect_exit 125 "$bench" predict own/results.json --platform perlmutter --gpus 8
expect_contains stderr "--steps"

# 1,024 ranks of training steps.
expect_exit 0 "$bench" simulate --platform dgx-a100 --ranks 1024 --network mnist --compute-ms 5 --json many.json
expect_true python3 -c '
import json
r, = json.load(open("many.json"))["results"]
assert r["simulated"] and r["ranks"] == 1024 and 0.005 < r["step_s"] < 0.02, r'

expect_exit 2 "$bench" simulate --platform frontier
expect_contains stderr "there is no such platform"
expect_exit 2 "$bench" simulate --platform polaris --network resnet50
expect_contains stderr "give --compute-ms"
expect_exit 2 "$bench" simulate --ranks 2
expect_contains stderr "give --platform NAME"
