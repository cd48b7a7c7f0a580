# timeout: 300
# From IDX files to the report, on a few hundred images.
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (no MPI or no HDF5)"
[ -x "$MUSTER_BIN/muster-stage" ] || skip "muster-stage was not built"

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
expect_exit 0 "$MUSTER_BIN/muster-stage" convert --images train-images --labels train-labels --test-images test-images --test-labels test-labels \
    -o data.h5

expect_exit 0 "$bench" train --data data.h5 --epochs 2 --profile
expect_contains stdout "epoch 2/2: 500 images in 8 steps" "1 rank on backend self" "all layers" "peak of this core"
expect_exit 0 "$bench" train --data data.h5 --json -
expect_true python3 - "$OUT" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
assert run["schema"] == "muster.train/1" and run["world_size"] == 1
assert run["epochs_done"][0]["images"] == 500 and run["epochs_done"][0]["test_images"] == 123
PY

# The same bits again, alone and with others, and different ones from another seed.
weights() { sed -n 's/.*weights \([0-9a-f]*\) on all ranks/\1/p' "$OUT"; }
expect_exit 0 "$bench" train --data data.h5
one=$(weights)
expect_exit 0 "$bench" train --data data.h5
expect_equal "$(weights)" "$one" "weights of a second run"
expect_exit 0 "$bench" train --data data.h5 --seed 43
[ "$(weights)" != "$one" ] || fail "another seed gives the same weights"
expect_exit 0 "$MUSTER" run -n 2 --slots-per-node 2 -- "$bench" train --data data.h5
expect_contains stdout "2 ranks on backend shm" "500 images in 4 steps"
two=$(weights)
expect_exit 0 "$MUSTER" run -n 2 --slots-per-node 2 -- "$bench" train --data data.h5 --protocol published --backend mpi
expect_contains stdout "2 ranks on backend mpi"
expect_equal "$(weights)" "$two" "weights of two ranks"

expect_exit 0 "$bench" scale --ranks 1,2,3 --repeats 2 --data data.h5 -o out
expect_matches stdout '^ *ranks +train_s' '^ *1 ' '^ *2 ' '^ *3 ' 'medians of 2 runs each; .*speed-up against 1 rank'
expect_true python3 - <<'PY'
import json, os
study = json.load(open("out/results.json"))
assert study["schema"] == "muster.results/2"
assert [(r["ranks"], r["repetition"]) for r in study["runs"] if not r["warmup"]] == [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1)], "interleaved, none averaged away"
cores = study["context"]["cores"]
assert all(r["oversubscribed"] == (r["ranks"] > cores) for r in study["runs"])
assert len({r["train"]["weights_checksum"] for r in study["runs"] if r["ranks"] == 2}) == 1
assert all(r["train"]["mpi_library"] for r in study["runs"])
PY
expect_contains out/report.html "<svg" "What the numbers mean"
expect_not_contains out/report.html "not like for like"
expect_true python3 - <<'PY'
import re
from html.parser import HTMLParser

page = open("out/report.html").read()
assert not re.search(r'(src|href)="(?!#)', page) and "<script" not in page, "the page must stand alone"

class Checker(HTMLParser):
    stack = []
    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "line", "circle", "rect"): self.stack.append(tag)
    def handle_startendtag(self, tag, attrs): pass
    def handle_endtag(self, tag):
        assert self.stack and self.stack[-1] == tag, (self.getpos(), self.stack[-3:], tag)
        self.stack.pop()
checker = Checker()
checker.feed(page)
assert not checker.stack, checker.stack
PY
expect_exit 0 "$bench" report --results out -o other
expect_true test -s other/report.html
expect_true test -s other/summary.json
expect_exit 0 "$bench" report --results out/results.json --no-html --json
expect_true python3 -c 'import json, sys; assert [r["ranks"] for r in json.load(open(sys.argv[1]))["rows"]] == [1, 2, 3]' "$OUT"

# Protocols: each is judged by its own metric and says where it was shortened, or its images generated.
protocol() { expect_exit "$1" "$bench" scale --ranks 1,2 --repeats 1 --warmup 0 --no-html -o "p-$2" --protocol "$2" "${@:3}"; }
protocol 0 published --data data.h5 --epochs 2
expect_matches stdout '^ *ranks +published_s' 'note: shortened: 2 of the protocol.s 32 epochs'
protocol 0 steady --data data.h5 --epochs 6
expect_matches stdout '^ *ranks +epoch_s'
protocol 0 strong --images 300,20 --batch 32
expect_matches stdout 'note: generated images, no data set'
protocol 0 weak --data data.h5 --batch 16
expect_matches stdout '^ *ranks +images_per_s'
protocol 0 accuracy --data data.h5 --target-accuracy 2% --epochs 3
protocol 125 accuracy --data data.h5 --target-accuracy 100% --epochs 1 --fresh
expect_contains stderr "did not reach an accuracy of 100.00%"
expect_true python3 - <<'PY'
import json
def runs(name):
    study = json.load(open(f"p-{name}/results.json"))
    assert study["plan"]["protocol"] == name
    assert all(r["load"]["stolen"] >= 0 and "clock_after_mhz" in r["load"] for r in study["runs"])
    return {r["ranks"]: (r["train"], {m["name"]: m["values"][-1] for m in r["metrics"]}) for r in study["runs"]}
for train, metrics in runs("published").values():
    assert train["protocol"] == "published" and train["epochs"] == 2 and train["batch"] == 64
    assert abs(metrics["published_with_startup_s"] - metrics["published_s"] - metrics["startup_s"]) < 1e-9
steady = runs("steady")[1][1]
assert steady["first_epoch_s"] > 0 and steady["epoch_s"] > 0
strong = runs("strong")
assert strong[1][0]["batch"] == 32 and strong[2][0]["batch"] == 16, "fixed of all ranks"
assert strong[1][0]["rate"] == strong[2][0]["rate"] == 0.01 and strong[1][0]["data_note"]
assert strong[1][0]["epochs_done"][0]["steps"] == strong[2][0]["epochs_done"][0]["steps"] == 10
weak = runs("weak")
assert weak[1][0]["batch"] == weak[2][0]["batch"] == 16 and weak[2][0]["rate"] == 0.02
two = weak[2][0]["epochs_done"][0]
assert 0 <= two["waiting_s"] <= two["allreduce_wait_mean_s"] + 1e-9 and two["exposed_s"] > 0
PY

# The larger loads: the CIFAR-10 network on generated images, and gradients beside timed compute, marked as such.
expect_exit 0 "$bench" train --net cifar10 --images 4,2 --batch 4
expect_contains stdout "network cifar10 with 23272266 parameters, on generated images of 3x32x32"
expect_exit 0 "$MUSTER" run -n 2 --slots-per-node 2 -- "$bench" train --net resnet50 --steps 2 --compute-ms 4
expect_contains stdout "25557032 parameters" "timed compute, no training: 4 ms a step"
protocol 0 fast --net resnet50 --steps 2 --compute-ms 4
expect_contains stdout "note: timed compute, no training"

# Damaged results are told with file and place.
head -c 1000 out/results.json >cut.json
expect_exit 125 "$bench" report --results cut.json --no-html
expect_matches stderr 'cut\.json:[0-9]+:[0-9]+: '
sed 's/"train_s": [0-9.e-]*/"train_s": "soon"/' out/results.json >wrong.json
expect_exit 125 "$bench" report --results wrong.json --no-html
expect_contains stderr "wrong.json: /runs/0/train/epochs_done/0/train_s: is string, expected a number"
expect_exit 125 "$bench" report --results none.json
expect_contains stderr none.json

# A launcher that fails: its messages are shown.
printf '#!/bin/sh\necho the dog ate it >&2\nexit 9\n' >bad-muster
chmod +x bad-muster
expect_exit 125 "$bench" scale --data data.h5 --muster ./bad-muster -o bad --no-html
expect_contains stderr "exit code 9" "the dog ate it"
