# timeout: 400
# From IDX files to the report: the networks of the published table by PyTorch, on a few hundred images.
# parts: bench data
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (launcher only)"
[ -x "$MUSTER_BIN/muster-stage" ] || skip "muster-stage was not built"

# No figures, which take seconds: as if there were no Matplotlib.
mkdir hidden
echo 'raise ImportError("hidden")' >hidden/matplotlib.py
export PYTHONPATH=$PWD/hidden

# Gradients beside timed compute need no PyTorch; they are marked as such.
expect_exit 0 "$MUSTER" run -q -n 2 -- "$bench" steps --net resnet50 --steps 2 --compute-ms 4 --compute-by wait
expect_contains stdout "resnet50 with 25557032 parameters on 2 ranks by shm: 4 ms a step by waiting, nothing is trained" "muster-metric: images_per_s"
expect_equal "$(grep -c 'muster-metric: compute_s' "$OUT")" 2 'ranks that told compute_s'
expect_exit 0 "$bench" scale --ranks 1,2 --repeats 1 --warmup 0 --time-metric train_s -o timed -- "$bench" steps --net gpt2-small --steps 2 --compute-ms 4
expect_matches stdout '^ *ranks +train_s'
expect_exit 0 "$bench" scale --ranks 2 --repeats 1 --warmup 0 --net resnet50 -o defaults
expect_matches stdout '^ *ranks +train_s' 'note: timed compute, no training'
expect_contains defaults/runs/0001-2-ranks.txt ': 100 ms a step by processor time'

for python in python3 /usr/bin/python3 none; do "$python" -c 'import torch' 2>/dev/null && break; done
[ "$python" != none ] || skip "no PyTorch: the timed networks passed"

python3 - <<'PY'
import random, struct
random.seed(1)
for split, count in (("train", 500), ("test", 123)):
    labels = bytes(random.randrange(10) for _ in range(count))
    pixels = bytearray()
    for label in labels:
        for i in range(784):
            pixels.append(220 if i // 28 // 2 == label else random.randrange(40))
    open(f"{split}-images", "wb").write(struct.pack(">IIII", 0x803, count, 28, 28) + pixels)
    open(f"{split}-labels", "wb").write(struct.pack(">II", 0x801, count) + labels)
PY
expect_exit 0 "$MUSTER_BIN/muster-stage" convert train=train-images,train-labels test=test-images,test-labels -o data.h5

expect_exit 0 "$bench" scale --ranks 1,3 --repeats 2 --warmup 0 --net mnist --data data.h5 -o out
expect_matches stdout '^ *ranks +train_s' '^ *1 ' '^ *3 ' '^medians of 2 runs each; ' '^speed-up against 1 rank'
expect_true python3 - <<'PY'
import json
study = json.load(open("out/results.json"))
assert study["schema"] == "muster.results/3" and study["plan"]["net"] == "mnist"
assert [(r["ranks"], r["repetition"]) for r in study["runs"]] == [(1, 0), (3, 0), (1, 1), (3, 1)], "interleaved, none averaged away"
cores = study["context"]["cores"]
for run in study["runs"]:
    assert run["oversubscribed"] == (run["ranks"] > cores)
    told = {m["name"]: m["values"][-1] for m in run["metrics"] if m["rank"] == 0}
    mine = -(-500 // run["ranks"])  # images a rank, padded
    assert told["steps"] == -(-mine // 64), told
    assert {m["rank"] for m in run["metrics"] if m["name"] == "compute_s"} == set(range(run["ranks"])), "every rank tells its own"
    assert told["train_s"] >= told["first_step_s"] > 0 and told["startup_s"] > 0 and 0 <= told["accuracy"] <= 1
    parts = told["compute_s"] + told["allreduce_wait_s"] + told["loader_wait_s"]
    assert abs(parts - told["train_s"]) < 1e-6 * told["train_s"], (parts, told)
assert study["software"]["torch"]
PY
expect_contains out/report.html "What the numbers mean" "Hits over all images of the test split"
expect_not_contains out/report.html "not like for like"
expect_true python3 - <<'PY'
import re
from html.parser import HTMLParser

page = open("out/report.html").read()
assert not re.search(r'(src|href)="(?!#|data:)', page) and "<script" not in page, "the page must stand alone"

class Checker(HTMLParser):
    stack = []
    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "img"): self.stack.append(tag)
    def handle_startendtag(self, tag, attrs): pass
    def handle_endtag(self, tag):
        assert self.stack and self.stack[-1] == tag, (self.getpos(), self.stack[-3:], tag)
        self.stack.pop()
checker = Checker()
checker.feed(page)
assert not checker.stack, checker.stack
PY
expect_exit 0 "$bench" report out -o other
expect_true test -s other/report.html
expect_true test -s other/summary.json
expect_exit 0 "$bench" report out/results.json --format json
expect_true python3 -c 'import json, sys; assert [r["ranks"] for r in json.load(open(sys.argv[1]))["studies"][0]["rows"]] == [1, 3]' "$OUT"

# The same command by DistributedDataParallel over gloo. Protocols: each is judged by its own metric and says where it was shortened.
protocol() { expect_exit "$1" "$bench" scale --ranks "$3" --repeats 1 --warmup 0 -o "p-$2" --protocol "$2" "${@:4}"; }
protocol 0 published 1,2 --data data.h5 --epochs 2 --api ddp --backend gloo
expect_matches stdout '^ *ranks +published_s' 'note: shortened: 2 of the protocol.s 32 epochs'
expect_contains p-published/runs/0002-2-ranks.txt "on 2 ranks by ddp over gloo"
expect_contains p-published/report.html "not like for like"
protocol 0 strong 1,2 --images 300,20 --batch 32
expect_matches stdout 'note: generated images, no data set'
protocol 125 accuracy 2 --data data.h5 --target-accuracy 100% --epochs 1
expect_contains stderr "the accuracy 100.00% was not reached in 1 epochs"
expect_true python3 - <<'PY'
import json
def runs(name):
    study = json.load(open(f"p-{name}/results.json"))
    assert study["plan"]["protocol"] == name
    assert all(r["load"]["stolen"] >= 0 and "clock_after_mhz" in r["load"] for r in study["runs"])
    return {r["ranks"]: {m["name"]: m["values"][-1] for m in r["metrics"] if m["rank"] == 0} for r in study["runs"]}
for told in runs("published").values():
    assert abs(told["published_with_startup_s"] - told["published_s"] - told["startup_s"]) < 1e-6
strong = runs("strong")
assert strong[1]["steps"] == strong[2]["steps"] == 10, "a fixed batch of all ranks"
PY

# Damaged results are told with file and place.
head -c 1000 out/results.json >cut.json
expect_exit 125 "$bench" report cut.json
expect_matches stderr 'cut\.json:[0-9]+:[0-9]+: '
expect_exit 125 "$bench" report none.json
expect_contains stderr none.json

# A launcher that fails: its messages are shown. A file that is no dataset too.
printf '#!/bin/sh\necho the dog ate it >&2\nexit 9\n' >bad-muster
chmod +x bad-muster
expect_exit 125 "$bench" scale --data data.h5 --muster ./bad-muster -o bad
expect_contains stderr "exit code 9" "the dog ate it"
echo "not HDF5" >text.h5
expect_exit 125 "$bench" scale --data text.h5 --ranks 1 --warmup 0 --repeats 1 -o text
expect_contains stderr "no run ended well" "text.h5"
