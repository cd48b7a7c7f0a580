# Wrong command lines of muster-bench: exit code 2 and a message that says what to do.
# parts: bench
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (launcher only)"

expect_exit 2 "$bench"
expect_exit 0 "$bench" --help
expect_contains stdout scale report steps collectives
expect_not_contains stdout loader launch recover
expect_exit 0 "$bench" --version
expect_matches stdout '^muster-bench [0-9]'
for command in scale report steps gpu-check; do
    expect_exit 0 "$bench" $command --help
    expect_contains stdout "muster-bench $command"
    expect_exit 2 "$bench" $command --no-such-option
    expect_contains stderr "unknown option '--no-such-option'"
    [ $command = report ] || expect_exit 2 "$bench" $command word  # report takes results as words
    expect_empty stdout
done
expect_exit 2 "$bench" sclae
expect_contains stderr "did you mean 'scale'?"
expect_exit 0 "$MUSTER" bench steps --help

# Of the benchmarks for muster's developers: a helper that was not built is said to be missing, not to have failed; a launcher that fails is said to have failed how.
mkdir alone
printf '#!/bin/sh\necho first >&2\necho "no such luck" >&2\nexit 9\n' >alone/muster
chmod +x alone/muster
expect_exit 1 python3 -B "$MUSTER_SOURCE_DIR/tests/speed/launch.py" --muster alone/muster --ranks 1 --mpi-ranks 1 --repeats 1 --output-mib 0 --json launch.json
expect_contains stdout "2 of 2 runs did not end well; the first: exit code 9: no such luck"
expect_contains stderr "there is no $PWD/alone/mpi_start; build the target mpi_start"
for word in '"schema": "muster.launch/2"' '"processor": "' '"cores": [1-9]' '"others_before"'; do
    grep -q "$word" launch.json || fail "no $word in launch.json"
done

# In a Slurm job, with programs in the places of muster and srun.
cat >alone/muster <<'END'
#!/bin/bash
while [ "$1" != -n ]; do shift; done
ranks=$2 && shift 2
[ "$1" != -- ] || shift
for ((rank = 0; rank < ranks; rank++)); do SLURM_PROCID=$rank "$@" & done
wait -n
kill $(jobs -p) 2>/dev/null
exit 0
END
cp alone/muster alone/srun
expect_exit 0 env PATH="$PWD/alone:$PATH" SLURM_JOB_NUM_NODES=1 python3 -B "$MUSTER_SOURCE_DIR/tests/speed/launch.py" --slurm --muster alone/muster --ranks 2 --mpi-ranks 0 --repeats 1 --json slurm.json
expect_matches stdout '^muster run adds -?[0-9]+ ms to srun$' '^a rank kills itself: ms to the end of the run +median' '^srun +[0-9.]+ '
expect_not_contains stdout 'during the runs'
grep -q '"others_during": null' slurm.json || fail "ranks that are no children were counted as others"

expect_exit 2 "$bench" steps --net lenet
expect_contains stderr "'lenet' is unknown; give resnet50 or gpt2-small"
expect_exit 2 "$bench" steps --epoch 3
expect_contains stderr "did you mean --epochs?"
expect_exit 2 "$bench" steps --epochs 0
expect_contains stderr "--epochs: '0' is no whole number from 1"
expect_exit 2 "$bench" steps --compute-ms -1
expect_exit 2 "$bench" steps --compute-by sleep
expect_contains stderr "expected burn or wait"

# A python without PyTorch, and one with a module of that name: what is asked of an interpreter is only whether it finds it.
mkdir no-torch
printf '#!/bin/sh\nexit 1\n' >no-torch/python3
chmod +x no-torch/python3
echo "not HDF5" >text.h5
scale() { expect_exit "$1" "$bench" scale --python python3 "${@:2}"; }
scale 125 --data none.h5
expect_contains stderr "no file 'none.h5'" "muster stage convert"
for ranks in "" 0 1,,2 1,x 9999; do
    scale 2 --ranks "$ranks"
    expect_contains stderr "--ranks"
done
scale 2 --ranks 2,1,2
expect_contains stderr "names 2 twice"
scale 125 --muster ./no-muster
expect_contains stderr "no launcher at './no-muster'" "--muster"
scale 125 -o text.h5
expect_contains stderr "cannot write into 'text.h5'"
scale 2 --rate-metric x
expect_contains stderr "--rate-metric is for a program of your own"
scale 2 --ranks 1,2 --strong --batch 3
expect_contains stderr "3 does not divide among 2 ranks"
scale 2 --strong --protocol weak
expect_contains stderr "--strong and --protocol weak exclude each other"
scale 2 --protocol quick
expect_contains stderr "expected fast, published, steady, strong, weak, accuracy" "^"
scale 2 --target-accuracy 90%
expect_contains stderr "--protocol accuracy"
scale 2 --protocol accuracy --target-accuracy 120%
expect_contains stderr "120%" "^"
scale 2 --net lenet
expect_contains stderr "give mnist, cifar10, resnet50 or gpt2-small"
expect_exit 2 "$bench" scale --net resnet50 --protocol accuracy
expect_contains stderr "resnet50 is not trained"
expect_exit 2 "$bench" scale --net resnet50 --lr 1
expect_contains stderr "--lr says nothing of resnet50, whose compute is timed"
expect_exit 2 "$bench" scale --net resnet50 --backend gloo
expect_contains stderr "--backend says nothing of resnet50, whose compute is timed"
expect_true test ! -e scaling  # nothing was made for what was refused
if [ "$(id -u)" = 0 ] && ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    expect_exit 125 env PATH="$PWD/no-torch:$PATH" "$bench" scale
    expect_contains stderr "no PyTorch" "apt install python3-torch" "--python"
fi
