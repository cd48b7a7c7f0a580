# What ranks, their node and its GPUs do stands in the folder of a run while it lasts; GPUs by a FAKE NVML.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/leftovers.sh"
unset "${!SLURM_@}" "${!CUDA_@}"
# told FOLDER CONDITION: the condition holds for the samples there, with its only `node` and the `ranks` by number.
cat >told.py <<'PY'
import json, sys
try:
    run = json.load(open(sys.argv[1] + "/samples.json"))
    node, = run["nodes"]
    ranks = {one["rank"]: one for one in node["ranks"]}
    sys.exit(not eval(sys.argv[2]))
except (OSError, KeyError, ValueError):
    sys.exit(1)
PY
told() { python3 told.py "$@"; }
# Rank 0 computes and rank 1 sleeps, both until the file `seen` is there.
cat >ranks.sh <<'END'
if [ $MUSTER_RANK = 1 ]; then until [ -e seen ]; do sleep 1; done; exit; fi
echo 'muster-metric: loss 0.5'
echo 'muster-metric: loss 0.25'
until [ -e seen ]; do i=0; while [ $i -lt 10000 ]; do i=$((i + 1)); done; done
END

for engine in embedded remote; do
    rm -f seen
    start "$MUSTER" run -q -n 2 --slots-per-node 2 --sample 0.2s --engine $engine --output-dir $engine -- bash ranks.sh
    # Other tests run beside this one: rank 0 gets what is left of a core.
    wait_until 60 told $engine 'ranks[0]["cores"] > 0.2 and ranks[1]["cores"] < 0.1 and ranks[0]["user_s"] > 0.5'
    expect_true told $engine 'ranks[1]["state"] == "S" and ranks[1]["where"] in ("sleep", "wait") and ranks[0]["metric"] == "loss 0.25" and "metric" not in ranks[1]'
    expect_true told $engine '0 < ranks[0]["silent_s"] <= ranks[0]["age_s"] and "silent_s" not in ranks[1]'
    expect_true told $engine 'all(r["memory_bytes"] > 1e5 and r["most_memory_bytes"] >= r["memory_bytes"] and r["threads"] >= 1 and r["allowed_cores"] >= 1 for r in ranks.values())'
    expect_true told $engine 'node["cpus"] >= 1 and node["load"] >= 0 and "steal" in node'
    expect_equal "$(stat -c %a $engine/samples.json)" 600 mode
    : >seen
    expect_end 0
    expect_true told $engine 'sorted(ranks) == [0, 1]' # at the end the last look at each stays
    expect_true test ! -e $engine/samples.json.new
    # Nothing looks with --sample 0, nor at a run that is over at once, and what a former run has left is gone.
    expect_exit 0 "$MUSTER" run -q -n 1 --sample 0 --engine $engine --output-dir $engine -- sleep 1.5
    expect_true test ! -e $engine/samples.json
done

# A rank that has ended is no longer there. Without a folder the samples are in the session folder of the launcher.
rm -f seen
start "$MUSTER" run -q -n 2 --slots-per-node 2 --sample 0.1s -- bash -c 'until [ -e first ]; do sleep 0.1; done; [ $MUSTER_RANK = 0 ] || until [ -e seen ]; do sleep 0.1; done'
session=
find_session() { for session in /dev/shm/muster-"$(id -u)"-"$PID"-*; do [ -e "$session/samples.json" ] && return; done; return 1; }
wait_until 60 find_session
wait_until 60 told "$session" 'sorted(ranks) == [0, 1]'
: >first
wait_until 60 told "$session" 'sorted(ranks) == [1]'
: >seen
expect_end 0
expect_true test ! -e "$session"

# A folder that cannot be written: the run goes on, with one note.
mkdir blocked blocked/samples.json.new
expect_exit 0 "$MUSTER" run -n 1 --sample 0.1s --output-dir blocked -- sleep 3
expect_equal "$(grep -c 'note: the samples of the run are not written: .*samples.json.new' "$ERR")" 1 notes
expect_true test ! -e blocked/samples.json

fake=$MUSTER_BIN/fake_nvml
[ -e "$fake/libnvidia-ml.so.1" ] || skip 'the fake NVML was not built'
over=LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
over_fake() { env "$over" "$MUSTER" "$@"; }
rm -f seen
start env "$over" "$MUSTER" run -q -n 2 --sample 0.2s --output-dir one -- sh -c 'until [ -e seen ]; do sleep 0.05; done'
wait_until 60 told one '[g["number"] for g in node["gpus"]] == ["0", "1"] and [ranks[r]["gpu"] for r in (0, 1)] == ["0", "1"]'
: >seen
expect_end 0
expect_true python3 - <<'PY'
import json
told = json.load(open("one/samples.json"))
assert told["schema"] == "muster.samples/1", told
first, second = told["nodes"][0]["gpus"]
for number, g in enumerate((first, second)):
    assert (g["used_bytes"] >> 30, g["memory_bytes"] >> 30, g["busy_percent"] % 10, g["most_clock_mhz"]) == (number + 1, 80, number, 1980), g
    assert g["mean_busy_percent"] == g["busy_percent"] and g["most_used_bytes"] == g["used_bytes"], g
assert "slowed" not in first and (first["clock_mhz"], first["celsius"], first["ecc_errors"], first["link_replays"]) == (1900, 50, 0, 0), first  # errors count from the first look
assert (second["slowed"], second["celsius"], second["ecc_errors"], second["remapped_rows"], second["link_replays"]) == ("heat (hardware)", 91, 0, 3, 0), second
assert (second["mean_clock_mhz"], second["slowed_share"], second["was_slowed"]) == (1200, 1, "heat (hardware)"), second
PY

# A driver that never answers holds nothing up: ranks and node are looked at, and the run ends with its own code.
start env "$over" "FAKE_NVML_HANGS=$PWD/asked" "$MUSTER" run -q -n 1 --sample 0.1s --output-dir two -- sh -c 'until [ -e done ]; do sleep 0.05; done; exit 3'
wait_until 60 test -e asked
wait_until 60 told two 'ranks[0]["age_s"] > 3 and node["gpus"] == []'
: >done
expect_end 3

# The library's own thread takes no signal from the launcher: it sees all of its ranks end, and a request to end too.
for i in 1 2 3 4 5 6 7 8 9 10; do expect_exit 0 over_fake run -q -n 2 --timeout 60s -- true; done
expect_exit 143 over_fake run -n 1 -- sh -c 'kill -TERM $PPID; exec sleep 1000'
expect_contains stderr 'got SIGTERM: ending 1 rank'
