# muster-bench gpu-check over a FAKE driver, a FAKE NVML and a FAKE NCCL: what it tries, and the file that it writes.
# timeout: 400
# parts: bench
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (launcher only)"
fake=$MUSTER_BIN/../tests/gpu/fake_libraries
unset "${!CUDA_@}" "${!SLURM_@}"

# Without a GPU it says so, and what to do; no file is left.
if ! "$bench" gpu-check-step driver >driver; then
    expect_exit 125 "$bench" gpu-check
    expect_contains stderr 'no NVIDIA GPU on this node' 'srun --gpus=1 muster-bench gpu-check'
    expect_true test ! -e gpu-check.json
fi

# The steps with torch, on the processor: what they compare.
steps=$MUSTER_SOURCE_DIR/bench/gpu/gpu_check_steps.py
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    for step in hvd ddp-muster ddp-nccl; do
        expect_exit 0 "$MUSTER" run -q -n 2 --slots-per-node 2 --timeout 100s -- /usr/bin/python3 "$steps" $step cpu
        expect_contains stdout 'rank 1: 5 steps on cpu, weights as computed by one process'
    done
    # Gradients that are not averaged are seen.
    sed 's/hvd.DistributedOptimizer(optimizer.*/optimizer/' "$steps" >no_average.py
    expect_exit 1 "$MUSTER" run -q -n 2 --slots-per-node 2 --timeout 100s -- /usr/bin/python3 no_average.py hvd cpu
    expect_contains stderr 'is off by'
fi

[ -e "$fake/libcuda.so.1" ] || skip 'the fake driver was not built'
over_fakes() {
    rm -rf fake && mkdir fake
    MUSTER_FAKE_GPU_FOLDER=$PWD/fake LD_LIBRARY_PATH=$fake:$1${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$bench" gpu-check "${@:2}"
}
expect_exit 0 over_fakes "$MUSTER_BIN/fake_nvml" -n 2 --python /usr/bin/python3
expect_matches stdout '^passed +nvml ' '^passed +binding ' '^passed +nccl ' '^not run +hvd '
exchange='^passed +exchange '
! grep -q '^not run  kernels' "$OUT" || exchange='^not run +exchange '  # a build without nvcc
expect_matches stdout "$exchange"
expect_contains stdout 'of 10 passed, 0 failed: gpu-check.json; please send this file'
expect_true python3 - <<'PY'
import json
told = json.load(open("gpu-check.json"))
assert told["schema"] == "muster.gpu-check/1" and told["ranks"] == 2, told
steps = {each["name"]: each for each in told["steps"]}
assert list(steps) == "driver nvml binding kernels nccl exchange hvd ddp-muster ddp-nccl graph".split(), steps
assert told["passed"] + sum(each["outcome"] == "not run" for each in steps.values()) == 10 and told["failed"] == 0, told
assert steps["hvd"]["outcome"] == "not run" and "torch" in steps["hvd"]["why"], steps["hvd"]
assert "NCCL" in told["software"] and "GPU 0" in told["software"] and "host" not in told["context"], told
PY

# What is missing on the way is a failed step, with its output; more ranks than GPUs share them.
printf '#!/bin/sh\necho this Python sees no GPU\nexit 77\n' >no_gpu_python && chmod +x no_gpu_python
expect_exit 1 over_fakes /nonexistent -n 5 --python "$PWD/no_gpu_python" -o failed.json
expect_matches stdout '^failed +nvml .*doctor shows no GPU$' "$exchange" '^not run +graph .* this Python sees no GPU$'
expect_true python3 - <<'PY'
import json
told = json.load(open("failed.json"))
nvml, = (each for each in told["steps"] if each["name"] == "nvml")
assert told["failed"] == 1 and nvml["outcome"] == "failed" and "nvidia-smi" in nvml["output"], told
PY
expect_exit 125 over_fakes /nonexistent -o /nonexistent/file
expect_contains stderr '/nonexistent'
