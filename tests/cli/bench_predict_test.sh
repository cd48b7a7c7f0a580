# timeout: 480
# Predictions from measured studies: known answers, the word on everything, the known error, what is refused.
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (no MPI or no HDF5)"

# A program of 100 steps of 20 ms on one rank, of which it waits 1 ms for input; on two ranks a step computes a tenth longer.
cat >program <<'PROGRAM'
#!/bin/sh
[ "$RANK" = 0 ] || exit 0
[ "$WORLD_SIZE" = 1 ] && echo "muster-metric: train_s 2.1 s" || echo "muster-metric: train_s 2.4 s"
echo "muster-metric: loader_wait_s 0.1 s"
[ "$WORLD_SIZE" = 1 ] || echo "muster-metric: allreduce_wait_s 0.1 s"
PROGRAM
chmod +x program
expect_exit 0 "$bench" scale --muster "$MUSTER" --ranks 1,2 --repeats 1 --warmup 0 --time-metric train_s --no-html -o own -- ./program
if [ ! -x "$MUSTER_BIN/muster-simulate" ]; then
    expect_exit 125 "$bench" predict own --steps 100 --gradient-bytes 1MiB --platform polaris
    expect_contains stderr "install libsimgrid-dev"
    skip "the simulator was not built (no libsimgrid-dev, or sanitizers)"
fi

# Without the ends of lines, which a terminal's 80 columns put anywhere.
in_lines() { tr '\n' ' ' <"$OUT" >flat; }

# Two ranks over one link of known latency and rate, and nothing to hide a gradient behind: whole tensors go both ways at once in halves,
# twice. 17 ranks are more than muster reduces directly: MPI's ring, 2 * 16 rounds of a 17th. Of 60, one simulated round stands for four.
expect_exit 0 "$bench" predict own --steps 100 --gradient-bytes 64MiB --bucket-bytes 64MiB --compute-ms 0.001 --latency-us 10 --link-gbs 10 --ranks 2,17,60 --json -
expect_true python3 - "$OUT" <<'PY'
import json, sys
out = json.load(open(sys.argv[1]))
assert out["simulated"] is True and out["schema"] == "muster.prediction/2"
alpha, beta, S, first = 10e-6, 1 / 10e9, 64 << 20, 4 << 20  # of 16 tensors the first alone is the first bucket
def ring(n, bytes): return 2 * (n - 1) * (alpha + bytes / n * beta)
expected = {2: S * beta, 17: ring(17, first) + ring(17, S - first), 60: ring(60, first) + ring(60, S - first)}
for row in out["rows"]:
    assert row["simulated"] is True and row["limit"] == "communication"
    assert abs(row["exposed_s"] / expected[row["ranks"]] - 1) < (0.1 if row["ranks"] == 60 else 0.05), (row, expected)
PY

expect_exit 0 "$bench" predict own/results.json --steps 100 --gradient-bytes 100MiB --platform perlmutter --ranks 4,8 --json p.json
in_lines
expect_contains flat "SIMULATED on NERSC Perlmutter" "Not a measurement" "computes 20.000 ms and waits 1.000 ms for input" "1 rank: 21.000 ms a step: compute 20.000, input 1.000" "a step is train_s / 100" \
    "20.000 to 22.000 ms, as it was measured" "weak scaling: a fixed batch per rank, as a step computes 20.000 ms on 1 rank and 22.000 ms on 2 ranks; --strong takes the other way"
expect_matches stdout '^ranks +step ms +known error +speed-up +known error' '^ *8 +[0-9.]+ +[-+][0-9]+% to \+[0-9]+% +[0-9.]+ +-[0-9]+% to [-+][0-9]+% .* compute$'
expect_true python3 - <<'PY'
import json
for row in json.load(open("p.json"))["rows"]:
    assert row["best_step_s"] <= row["step_s"] <= row["worst_step_s"], row
    assert row["worst_step_s"] > 1.08 * row["step_s"], "what two ranks cost each other was measured"
    assert 0.021 <= row["step_s"] < 0.026, row
PY

# A strong series: of 200 ms, each of N ranks computes an Nth, and two measured that this is a tenth too little. Rates of samples give a step
# by the batch. Failed, missing and busy runs are named.
cat >strong.sh <<'PROGRAM'
[ "$WORLD_SIZE" != 4 ] || { echo 'the dog ate it' >&2; exit 3; }
echo "batch $1"
[ "$RANK" != 0 ] || echo "muster-metric: images_per_s $([ "$WORLD_SIZE" = 1 ] && echo 20 || echo 36.3636) images/s"
PROGRAM
expect_exit 1 "$bench" scale --muster "$MUSTER" --ranks 1,2,4 --repeats 1 --warmup 0 --strong --batch 4 --no-html -o strong -- sh strong.sh {batch}
expect_exit 0 "$bench" predict strong --gradient-bytes 1KiB --platform dgx-a100 --ranks 4,8 --json strong.json
in_lines
expect_contains flat "strong scaling: a fixed batch over all ranks" "a step is batch 4 / images_per_s" "200.000 to 220.0" "does not print allreduce_wait_s: waiting for gradients counts as compute" "4 ranks: failed: exit code 3"
expect_exit 0 "$bench" predict strong --gradient-bytes 1KiB --platform dgx-a100 --compute-ms 80 --ranks 8
expect_matches stdout '^ *8 +10\.[0-9]+ ' '8 ranks have no whole sample each of the batch of 4'
expect_true python3 - <<'PY'
import json
p = json.load(open("strong.json"))
assert p["series"] == "strong" and p["step_from"] == "batch 4 / images_per_s" and any("4 ranks: failed" in n for n in p["notes"]), p
for row in p["rows"]:
    n = row["ranks"]
    assert 0 <= row["step_s"] - 0.2 / n < 0.002 and 0 <= row["worst_step_s"] - 0.22 / n < 0.002, row
    assert n * 0.95 < row["speedup"] <= n, row
study = json.load(open("strong/results.json"))
study["plan"]["repeats"] = 3
for run in study["runs"]: run["load"].update(others_before=1.5, cpus=2)
study["load"].update(others_before=1.5, cpus=2)
json.dump(study, open("cut.json", "w"))
PY
expect_exit 0 "$bench" predict cut.json --gradient-bytes 1KiB --platform dgx-a100 --ranks 4
in_lines
expect_contains flat "unfinished: 3 of 9 runs were made" "busy: other programs used 1.5 of 2 CPUs" "these figures mean little"

# The known error has the least and the most of all runs, each against its own share; one run, or a busy machine, has no spread. Steps that are
# not used are named, and waiting that is not told is no 0.
expect_true python3 - <<'PY'
import copy, json
study = json.load(open("strong/results.json"))
study["runs"] = [run for run in study["runs"] if run["ranks"] < 4]
study["points"], study["plan"]["ranks"] = study["points"][:2], [1, 2]
for one in (study, *study["runs"]):
    for key in ("others_before", "others_during"): one["load"][key] = 0
for run in study["runs"]: run["oversubscribed"] = False
json.dump(study, open("single.json", "w"))
study["plan"]["repeats"] = 3
one, two = study["runs"]
study["runs"] = []
for repetition, rates in enumerate(((20, 40), (25, 36), (18, 32))):
    for run, rate in zip((one, two), rates):
        run = copy.deepcopy(run)
        run["repetition"], run["order"] = repetition, len(study["runs"])
        run["metrics"][0]["values"] = [rate]
        study["runs"].append(run)
json.dump(study, open("spread.json", "w"))
study["runs"] = [run for run in study["runs"] if run["ranks"] == 2]
study["points"], study["plan"]["ranks"] = study["points"][1:], [2]
json.dump(study, open("two.json", "w"))
PY
spread() { expect_exit 0 "$bench" predict "$@" --gradient-bytes 1KiB --platform dgx-a100 --ranks 4 && in_lines; }
spread spread.json --steps 7 --json spread-out.json # 160 to 222.2 ms of 1 rank, 200 to 250 of 2
expect_contains flat "compute 160.000 to 250.0" "note: --steps 7 is not used: a step is batch 4 / images_per_s" "input not told, waiting for gradients not told" \
    "does not print loader_wait_s: waiting for input counts as compute (1 rank, 2 ranks)" "waiting for gradients counts as compute (2 ranks)"
expect_matches stdout '^ *4 +50\.[0-9]+ +-20% to \+25% '
expect_not_contains flat "holds no spread"
expect_true python3 -c 'import json; m = json.load(open("spread-out.json"))["measured"]; assert [r["runs"] for r in m] == [3, 3] and m[0]["least_compute_s"] == 0.16, m'
spread two.json
expect_contains flat "the prediction has it twice: print it, or measure 1 rank too"
spread single.json
expect_contains flat "the known error holds no spread between runs (1 rank, 2 ranks: one run); give more --repeats"
expect_not_contains flat "-0% to +0%"
expect_true python3 -c 'import json; s = json.load(open("spread.json")); s["runs"][0]["load"].update(others_before=1.5, cpus=2); json.dump(s, open("busy.json", "w"))'
spread busy.json
expect_contains flat "the known error holds no spread of a quiet machine"
spread single.json --compute-ms 5
expect_not_contains flat "holds no spread" "counts as compute"

# A program that divides the work of a step itself: its steps tell, and the rate has the name that it has in the study. Where the steps were
# given and not printed, its ranks may as well make fewer; one number of ranks tells nothing.
cat >divides.sh <<'PROGRAM'
[ "$RANK" = 0 ] || exit 0
[ "$1" = quiet ] || echo "muster-metric: steps 10"
echo "muster-metric: train_s $((6 / WORLD_SIZE)) s"
echo "muster-metric: throughput $((100 * WORLD_SIZE)) images/s"
PROGRAM
divides() { expect_exit 0 "$bench" scale --muster "$MUSTER" --repeats 1 --warmup 0 --rate-metric throughput --no-html "$@"; }
divides --ranks 1,2,3 -o divides -- sh divides.sh
divides --ranks 1,2 -o quiet -- sh divides.sh quiet
divides --ranks 1 -o alone -- sh divides.sh
expect_true python3 - <<'PY'
import json
for name in ("divides", "quiet", "alone"): # whatever this machine has
    study = json.load(open(f"{name}/results.json"))
    for run in study["runs"]: run["oversubscribed"] = False
    json.dump(study, open(f"{name}.json", "w"))
    for run in study["runs"]: # badly divided, or one batch a rank that gets faster
        for metric in run["metrics"]:
            if metric["name"] == "train_s" and run["ranks"] > 1: metric["values"] = [4.5]
    json.dump(study, open(f"{name}-unclear.json", "w"))
PY
to_four() { expect_exit 0 "$bench" predict "$@" --gradient-bytes 1KiB --platform dgx-a100 --ranks 4 && in_lines; }
to_four divides.json
expect_contains flat "strong scaling: a fixed batch over all ranks, as a step computes 600.000 ms on 1 rank and 200.000 ms on 3 ranks; --weak takes the other way"
expect_matches stdout '^ranks +throughput +step ms .* waiting ms +limit' '^ *4 +(400|399) +150\.[0-9]+ '
to_four divides.json --weak
expect_matches stdout '^ *4 +(400|399) +600\.[0-9]+ '
expect_exit 2 "$bench" predict quiet.json --steps 10 --gradient-bytes 1KiB --platform dgx-a100
expect_contains stderr "with --steps on every number of ranks a step computes 600.000 ms on 1 rank and 300.000 ms on 2 ranks" "give --strong" "print the metric 'steps'"
to_four quiet.json --steps 10 --strong
expect_matches stdout '^ *4 +(400|399) +150\.[0-9]+ '
expect_exit 2 "$bench" predict divides-unclear.json --gradient-bytes 1KiB --platform dgx-a100
expect_contains stderr "600.000 ms on 1 rank and 450.000 ms on 3 ranks, which is neither one batch a rank nor the work of a step divided; give --strong"
to_four alone.json
expect_contains flat "weak scaling: a fixed batch per rank: assumed" "give --strong if the program divides the work of a step over its ranks"
expect_exit 2 "$bench" predict strong --weak --gradient-bytes 1KiB --platform dgx-a100
expect_contains stderr "predict: --weak: strong was made with --strong; leave it out"

# A rate of samples is known by its unit too; of another, the message has the units that would be.
sed 's/^.*train_s.*$//' divides.sh >rate.sh
expect_exit 0 "$bench" scale --muster "$MUSTER" --ranks 1 --repeats 1 --warmup 0 --strong --batch 6 --rate-metric throughput --no-html -o rate -- sh rate.sh quiet {batch}
to_four rate --strong
expect_contains flat "a step is batch 6 / throughput"
sed -i 's,images/s,MB/s,' rate.sh
expect_exit 0 "$bench" scale --muster "$MUSTER" --ranks 1 --repeats 1 --warmup 0 --strong --batch 6 --rate-metric throughput --no-html -o other -- sh rate.sh quiet {batch}
expect_exit 125 "$bench" predict other --gradient-bytes 1KiB --platform dgx-a100
expect_contains stderr "throughput does not say that it counts what --batch counts (print it with the unit images/s"

# The time of the whole command is no time of steps.
expect_exit 0 "$bench" scale --muster "$MUSTER" --ranks 1 --repeats 1 --warmup 0 --no-html -o whole -- true
expect_exit 125 "$bench" predict whole --steps 100 --gradient-bytes 1MiB --platform polaris
expect_contains stderr "tells no time of its steps: wall_s holds launching and start-up too" "train_s" "--compute-ms"
expect_exit 0 "$bench" predict whole --compute-ms 5 --gradient-bytes 1MiB --platform polaris --ranks 4
in_lines
expect_contains flat "measured: no time of a step" "computes 5.000 ms (its waiting for input is not told)"

# The network of the study is known, and its steps are told. 256 ranks of them.
expect_exit 0 "$bench" scale --muster "$MUSTER" --ranks 1 --repeats 1 --warmup 0 --net resnet50 --steps 3 --compute-ms 20 --compute-by wait --no-html -o timed
expect_exit 0 "$bench" predict timed --platform dgx-a100 --ranks 8
expect_matches stdout '^ *8 +[0-9]+\.[0-9]+ '
expect_exit 0 "$bench" predict timed --platform dgx-a100 --net mnist --compute-ms 5 --ranks 256 --json many.json
expect_true python3 -c '
import json
r, = json.load(open("many.json"))["rows"]
assert r["ranks"] == 256 and 0.005 < r["step_s"] < 0.02, r'

# The platforms beside what was published of them.
expect_exit 0 "$bench" predict --validate --platform dgx-h100
expect_matches stdout '^dgx-h100 +8 +36[0-9]\.[0-9] +367 '

expect_exit 125 "$bench" predict own --gradient-bytes 1MiB --platform polaris
expect_contains stderr "print the metric 'steps', or give --steps"
expect_exit 2 "$bench" predict own --steps 100 --platform polaris
expect_contains stderr "give --gradient-bytes, or --net"
expect_exit 2 "$bench" predict timed --platform frontier
expect_contains stderr "there is no such platform"
expect_exit 2 "$bench" predict timed
expect_contains stderr "give --platform NAME"
expect_exit 2 "$bench" predict
expect_contains stderr "give one RESULTS.json"
expect_exit 2 "$bench" predict timed --platform polaris --link-gbs 5
expect_contains stderr "--link-gbs is of --latency-us"
