# How busy the GPUs of a run are stands in its folder while it lasts; by a FAKE NVML.
. "$(dirname "$0")/lib.sh"
unset "${!SLURM_@}" "${!CUDA_@}"
fake=$MUSTER_BIN/fake_nvml
[ -e "$fake/libnvidia-ml.so.1" ] || skip 'the fake NVML was not built'
over_fake() { LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$MUSTER" "$@"; }

# The rank lives until the file is there, which it is from the second second on.
wait_for_file='i=0; until [ -e one/gpus.json ]; do sleep 0.05; i=$((i + 1)); [ $i -lt 600 ] || exit 9; done'
expect_exit 0 over_fake run -q -n 2 --output-dir one -- sh -c "$wait_for_file"
expect_true python3 - <<'PY'
import json
told = json.load(open("one/gpus.json"))
assert told["schema"] == "muster.gpus/1", told
node, = told["nodes"]
assert [(g["number"], g["used_bytes"] >> 30, g["memory_bytes"] >> 30) for g in node["gpus"]] == [("0", 1, 80), ("1", 2, 80)], node
assert all(g["mean_busy_percent"] == g["busy_percent"] and g["most_used_bytes"] == g["used_bytes"] for g in node["gpus"]), node
assert all(g["busy_percent"] % 10 == int(g["number"]) for g in node["gpus"]), node
PY

# A run that is over within a second looks at nothing, and what a former run has left is gone. Without GPUs there is no such file.
expect_exit 0 over_fake run -q -n 2 --output-dir one -- true
expect_true test ! -e one/gpus.json
# A driver that never answers holds nothing up: the run goes on and ends with its own code.
FAKE_NVML_HANGS=$PWD/asked expect_exit 3 over_fake run -q -n 1 --output-dir two -- sh -c "${wait_for_file//one\/gpus.json/asked}; exit 3"
expect_true test ! -e two/gpus.json

# The library's own thread takes no signal from the launcher: it sees all of its ranks end, and a request to end too.
for i in 1 2 3 4 5 6 7 8 9 10; do expect_exit 0 over_fake run -q -n 2 --timeout 60s -- true; done
expect_exit 143 over_fake run -n 1 -- sh -c 'kill -TERM $PPID; exec sleep 1000'
expect_contains stderr 'got SIGTERM: ending 1 rank'
