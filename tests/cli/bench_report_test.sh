# timeout: 600
# Reports: a study of known times gives these numbers and causes, a browser shows it whole, and plots.py draws it.
# parts: bench
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
programs=$MUSTER_SOURCE_DIR/tests/cli/programs
[ -x "$bench" ] || skip "muster-bench was not built (launcher only)"

# without COMMAND..: as if there were no Matplotlib.
mkdir -p hidden
echo 'raise ImportError("hidden")' >hidden/matplotlib.py
without() { PYTHONPATH=$PWD/hidden "$@"; }

# A real study of nothing is the frame; its runs are made anew: T(n) = 20 s + 80 s / n, six times, 1% apart, on 8 cores.
without expect_exit 0 "$bench" scale --muster "$MUSTER" --ranks 1 --repeats 1 --warmup 0 -o frame -- true
cat >make.py <<'PY'
import copy, json, sys

frame = json.load(open("frame/results.json"))

def study(path, seconds, name="known", ranks=(1, 2, 4, 8), told=lambda n: {}, failed=()):
    out = copy.deepcopy(frame)
    out["name"], out["plan"]["series"], out["plan"]["ranks"], out["plan"]["repeats"] = name, "strong", list(ranks), 6
    out["context"]["cores"] = 8
    out["load"].update(others_before=0, busiest=[], cpus=8)
    run, point = out["runs"][0], out["points"][0]
    out["runs"], out["points"] = [], []
    for n in ranks:
        places = [{"rank": r, "host": "node-1", "cpus": str(r), "gpu": ""} for r in range(n)]
        out["points"].append({**point, "ranks": n, "places": places, "oversubscribed": n > 8})
    for repetition in range(6):
        for n in ranks:
            one = copy.deepcopy(run)
            one.update(ranks=n, repetition=repetition, order=len(out["runs"]), wall_s=seconds(n) * (0.975 + 0.01 * repetition), oversubscribed=n > 8)
            one["load"].update(others_before=0, others_during=0, busiest=[], cpus=8)
            one["metrics"] = [{"name": metric, "unit": "s", "rank": rank, "values": [value]}
                              for metric, values in told(n).items() for rank, value in enumerate(values)]
            if (n, repetition) in failed:
                one.update(status="failed", exit_code=3, reason="exit code 3")
            out["runs"].append(one)
    json.dump(out, open(path, "w"))

amdahl = lambda n: 20 + 80 / n
study("known.json", amdahl)
study("slower.json", lambda n: 1.5 * amdahl(n), name="slower")
parts = lambda n: {"compute_s": [5.0 if r != 3 else 8.0 for r in range(n)], "loader_wait_s": [12.0], "allreduce_wait_s": [4.5]}
study("causes.json", amdahl, name="causes <2>", ranks=(1, 2, 4, 8, 16), told=parts, failed=[(2, 1)])
cells = [{"by": by, "bytes": 2**k, "out_of_place_us": [us * (1 + 2**k / 4096) * s for s in (1, 1.05, 1.1)], "in_place_us": []}
         for by, us in (("shm", 1.0), ("openmpi", 2.0)) for k in range(3, 28)]
json.dump([{"schema": "muster.collectives/1", "created": "2026-01-31T12:00:00Z", "command": "muster-bench collectives", "context": {"host": "node-1"},
            "collective": "allreduce", "type": "f32", "redop": "sum", "ranks": 2, "simulated": False, "bus_factor": 1.0,
            "jobs": [{"name": "shm", "simulated": False}, {"name": "openmpi", "simulated": False}], "cells": cells}], open("collectives.json", "w"))
PY
expect_true python3 make.py

# Exactly these numbers.
expect_exit 0 "$bench" report known.json --format json
cp "$OUT" known.report
expect_true python3 - <<'PY'
import json
study, = json.load(open("known.report"))["studies"]
rows = study["rows"]
assert [r["ranks"] for r in rows] == [1, 2, 4, 8] and all(r["runs"] == 6 for r in rows)
for r in rows:
    n, wall, speedup = r["ranks"], r["metrics"]["wall_s"], r["speedup"]
    t = 20 + 80 / n
    close = lambda a, b: abs(a - b) < 1e-9 * b
    assert close(wall["median"], t) and close(wall["low"], 0.975 * t) and close(wall["high"], 1.025 * t) and wall["confidence"] == 0.96875, wall
    assert close(speedup["value"], 100 / t) and close(speedup["efficiency"], 100 / t / n), speedup
    if n > 1: assert close(speedup["low"], 97.5 / (1.025 * t)) and close(speedup["high"], 102.5 / (0.975 * t)), speedup
finding, = study["findings"]
assert finding["cause"] == "serial part" and abs(finding["figure"] - 0.2) < 1e-9 and abs(finding["values"]["limit"] - 5) < 1e-7, finding
answers = {rule["number"]: rule["answer"] for rule in study["checklist"]}
assert len(answers) == 12 and answers[1] == answers[5] == answers[7] == answers[11] == "yes", answers
kinds = [tile["kind"] for tile in study["tiles"]]
assert kinds == ["best", "cause"] and study["headline"].startswith("known is 3.33 times as fast on 8 ranks as on 1 (3.17 to 3.50)"), kinds
PY

# Known causes, the worst first; 16 ranks on 8 cores are not the headline.
expect_exit 0 "$bench" report causes.json --format json
expect_true python3 - "$OUT" <<'PY'
import json, sys
study, = json.load(open(sys.argv[1]))["studies"]
assert [(f["cause"], f["ranks"]) for f in study["findings"]] == [
    ("oversubscribed", 16), ("imbalance", 8), ("input", 8), ("communication", 8), ("serial part", 8)], study["findings"]
slow, late, talk = study["findings"][1:4]
assert slow["values"]["rank"] == 3 and abs(slow["figure"] - (8 / 5.375 - 1)) < 1e-9 and "node-1" in slow["text"], slow
assert abs(late["figure"] - 0.4) < 1e-9 and abs(talk["figure"] - 0.15) < 1e-9
assert [t["kind"] for t in study["tiles"]] == ["best", "failed", "cause"] and study["tiles"][0]["ranks"] == 8
assert study["by_rank"]["metric"] == "compute_s" and study["by_rank"]["ranks"] == 8 and study["by_rank"]["runs"][5]["values"][3] == 8
PY

# The page: one, and all side by side; a browser shows it whole at both widths and on paper.
page() {
    local name=page-$1
    shift
    expect_exit 0 "$bench" report "$@" --format html -o "$name.html"
    expect_not_contains "$name.html" '<script' 'http:' 'https:'
    expect_not_contains "$name.html" 'ublished'
    [ -n "$no_browser" ] && return
    expect_exit 0 python3 -B "$programs/browser.py" "$name.html" 1280 400 paper
    cat "$OUT"
}
no_browser=
python3 -B "$programs/browser.py" /dev/null 400 >"$OUT" 2>"$ERR"
[ $? = 77 ] && no_browser=yes && echo 'not looked at in a browser: chromium is not installed'
page known known.json
expect_contains page-known.html '<td class="judged">30.0</td><td class="spread">29.2 to 30.7 (97% CI)</td><td class="speedup">3.33</td><td class="efficiency">42%</td>'
page causes causes.json collectives.json
page three known.json slower.json causes.json
expect_contains page-three.html 'What differs' 'slower' "A reviewer's checklist"
without page same known.json slower.json
expect_equal "$(grep -c 'What the numbers mean' page-same.html)" 1 'how often a page says what is the same of both studies'

# Against a baseline: judged on the page, and by the exit code.
without expect_exit 1 "$bench" report slower.json --baseline known.json --format html -o judged.html
expect_contains stderr 'worse: wall_s at 8 ranks: 45.0 against 30.0 (+50.0%, 5.0% allowed)'
expect_contains judged.html '<li class="broken">worse: wall_s at 8 ranks: 45.0 against 30.0'

# Several studies in the terminal: what differs stands below their tables.
without expect_exit 0 "$bench" report known.json slower.json -o told
expect_matches stdout '^what differs +known +slower$' '^name +known +slower$'

# Markdown and CSV.
expect_exit 0 "$bench" report known.json slower.json --format md
expect_contains stdout '| 8 | 6 | 30.0 | 29.2 to 30.7 (97% CI) | 3.33 | 42% |  |' '| name | known | slower |' "### A reviewer's checklist"
expect_exit 0 "$bench" report known.json slower.json --format csv
expect_true python3 -c 'import csv, sys; rows = list(csv.DictReader(open(sys.argv[1]))); assert len(rows) == 8 and abs(float(rows[3]["speedup"]) - 10 / 3) < 1e-9 and rows[7]["study"] == "slower"' "$OUT"
expect_exit 0 "$bench" report collectives.json --format csv
expect_contains stdout 'allreduce,f32,sum,2,openmpi,0,'

# Without Matplotlib: the page has its tables and says how to draw; plots.py lies beside it.
without expect_exit 0 "$bench" report known.json -o bare
expect_contains stderr 'no figures: neither /usr/bin/python3 nor the python3 along PATH has Matplotlib' 'wrote bare/plots.py' 'wrote bare/report.html'
expect_contains bare/report.html 'python3 plots.py' 'Debian: python3-matplotlib' '>3.33<'
expect_not_contains bare/report.html '<img'
expect_true test -s bare/summary.json -a ! -e bare/figures
expect_exit 125 "$bench" report known.json -o known.json
expect_contains stderr "'known.json'" 'give another with -o'

# With it: each figure is there three times, its text and its points are those of the study, and the page holds it.
drawing() { "$1" -c 'import matplotlib' 2>/dev/null && drawer=$1; }
drawer=
drawing /usr/bin/python3 || drawing python3 || echo 'no figures drawn: Matplotlib is not installed'
if [ -n "$drawer" ]; then
    expect_exit 0 "$bench" report known.json slower.json causes.json collectives.json -o all
    expect_contains stderr 'wrote 6 figures into all/figures, as SVG, PDF and PNG'
    names='allreduce-f32-on-2-ranks compute_s-of-each-rank-in-each-run-causes-2 efficiency speed-up wall_s where-the-time-of-a-run-goes-causes-2'
    expect_equal "$(ls all/figures | paste -sd' ')" "$(for name in $names; do echo $name.pdf $name.png $name.svg; done | paste -sd' ')" 'figures'
    expect_true python3 - all <<'PY'
import base64, glob, re, sys, xml.etree.ElementTree as xml
SVG = "{http://www.w3.org/2000/svg}"
files = {open(name, "rb").read() for name in glob.glob(sys.argv[1] + "/figures/*.svg")}
assert all(xml.fromstring(text).tag == SVG + "svg" for text in files)
page = open(sys.argv[1] + "/report.html").read()
assert {base64.b64decode(url) for url in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)} == files
assert all(open(name, "rb").read(5) == b"%PDF-" for name in glob.glob(sys.argv[1] + "/figures/*.pdf"))
speedup = open(sys.argv[1] + "/figures/speed-up.svg").read()
assert all(f"<!-- {word} -->" in speedup for word in ("slower", "causes &lt;2&gt;", "ideal", "times the base (log scale)")), "legend and axis"
PY
    expect_exit 0 "$bench" report known.json -o drawn
    expect_true grep -q -e '<!-- 3.33 -->' drawn/figures/speed-up.svg
    expect_exit 0 "$bench" report known.json --format html -o one.html
    expect_equal "$(grep -c '<img ' one.html)" 3 'figures of a page alone'

    # A user's plots.py is kept, and draws; by hand as well. What it does wrong is told, and the page has its tables.
    (cd drawn && sed -i 's/"Speed-up" + of/"My own figure" + of/' plots.py && rm -r figures && "$drawer" -B plots.py >printed)
    expect_true test -s drawn/figures/my-own-figure.pdf
    expect_exit 0 "$bench" report known.json -o drawn
    expect_contains stderr 'kept drawn/plots.py, which is not as this version writes it'
    expect_contains drawn/report.html 'alt="my-own-figure.svg"'
    echo 'raise SystemExit("out of ink")' >drawn/plots.py
    expect_exit 0 "$bench" report known.json -o drawn
    expect_contains stderr 'no figures: plots.py ended with exit code 1: out of ink'
    expect_contains drawn/report.html 'out of ink' '>3.33<'

    # Hostile names, a weak series by nodes, and values that nobody has measured.
    python3 - <<'PY'
import json
study = json.load(open("known.json"))
study["name"], study["plan"]["series"] = "_$\\frac{<&\x1b\n", "weak"
for run in study["runs"]:
    run["nodes"] = max(1, run["ranks"] // 2)
    run["wall_s"] *= 1e-200 if run["ranks"] == 4 else 1
json.dump(study, open("hostile.json", "w"))
PY
    expect_exit 0 "$bench" report hostile.json -o hostile
    expect_contains stderr 'wrote 3 figures into hostile/figures'
    expect_true "$drawer" -c 'import glob, xml.etree.ElementTree as e; assert all(e.parse(f) for f in glob.glob("hostile/figures/*.svg"))'
    expect_contains hostile/figures/speed-up.svg '<!-- 4 nodes -->'
fi

# Whoever writes the page writes the summary of the same facts, and names both: here of a study that goes on.
grows() { without expect_exit 0 "$bench" scale --muster "$MUSTER" --ranks 1 --repeats "$1" --warmup 0 -o grown "${@:2}" -- true; }
summary_is_of() {
    expect_contains stderr 'wrote grown/summary.json'
    expect_equal "$(python3 -c 'import json; print(json.load(open("grown/summary.json"))["studies"][0]["rows"][0]["runs"])')" "$1" 'runs of the summary'
}
grows 1
summary_is_of 1
grows 2
expect_contains stderr 'wrote grown/results.json' 'wrote grown/report.html'
summary_is_of 2
expect_true test -s grown/plots.py
grows 3 --only 1  # as a job of a study does
summary_is_of 3
expect_not_contains stderr 'report.html'
without expect_exit 1 "$bench" report grown --expect 'wall_s<=0'
summary_is_of 3
expect_contains grown/summary.json '"broken"'

# Wrong words.
expect_exit 2 "$bench" report
expect_contains stderr 'no results; give the results.json'
expect_exit 2 "$bench" report known.json --format pdf
expect_contains stderr "'pdf' is unknown; give html, md, csv or json"

# Real causes, injected: 10 ms a step on rank 1, a loader that is throttled, and one core for two ranks.
cat >train.py <<'PY'
import os, queue, sys, threading, time
rank, mode = int(os.environ["RANK"]), sys.argv[1]
batches = queue.Queue(1)
def load():
    for _ in range(10):
        time.sleep(0.02 if mode == "loader" else 0)
        batches.put(1)
threading.Thread(target=load, daemon=True).start()
compute = wait = 0
begin = time.perf_counter()
for step in range(10):
    a = time.perf_counter()
    batches.get()
    b = time.perf_counter()
    time.sleep(0.01 + (0.01 if mode == "delay" and rank == 1 else 0))
    compute, wait = compute + time.perf_counter() - b, wait + b - a
for name, value in ("epoch_s", time.perf_counter() - begin), ("compute_s", compute), ("loader_wait_s", wait):
    print(f"muster-metric: {name} {value} s", flush=True)
PY
real() { without expect_exit 0 "$bench" scale --muster "$MUSTER" --ranks 2 --repeats 1 --warmup 0 --time-metric epoch_s -o "$@"; }
real delay -- python3 train.py delay
expect_matches stdout '^what limits it \(imbalance\): at 2 ranks, rank 1 \(.*\) computes [0-9]+% longer than the mean'
real loader -- python3 train.py loader
expect_matches stdout '^what limits it \(input\): at 2 ranks, [0-9]+% of epoch_s is waiting for the next batch'
real core --run-options '--cpu-map 0:0' -- python3 train.py core
expect_matches stdout '^what limits it \(shared core\): of 2 ranks, ranks 0 and 1 on .* share core 0; bind each rank'
for each in delay:imbalance loader:input core:'shared core'; do
    expect_exit 0 "$bench" report "${each%%:*}" --format md
    expect_contains stdout "- **${each#*:}**: "
done
