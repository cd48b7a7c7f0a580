# Wrong command lines of muster-bench: exit code 2 and a message that says what to do.
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (no MPI or no HDF5)"

expect_exit 2 "$bench"
expect_exit 0 "$bench" --help
expect_contains stdout train scale compare report
expect_exit 0 "$bench" --version
expect_matches stdout '^muster-bench [0-9]'
for command in train scale compare report; do
    expect_exit 0 "$bench" $command --help
    expect_contains stdout "muster-bench $command"
    expect_exit 2 "$bench" $command --no-such-option
    expect_contains stderr "unknown option '--no-such-option'"
    [ $command = report ] || expect_exit 2 "$bench" $command word  # a report's words are results
    expect_empty stdout
done
expect_exit 2 "$bench" tarin
expect_contains stderr "did you mean 'train'?"
expect_exit 0 "$MUSTER" bench train --help

# A helper that was not built is said to be missing, not to have failed; a launcher that fails is said to have failed how.
mkdir alone
ln "$bench" alone/ 2>/dev/null || cp "$bench" alone/
printf '#!/bin/sh\necho first >&2\necho "no such luck" >&2\nexit 9\n' >alone/muster
chmod +x alone/muster
expect_exit 1 alone/muster-bench launch --ranks 1 --mpi-ranks 1 --repeats 1 --output-mib 0 --json launch.json
expect_contains stdout "2 of 2 runs did not end well; the first: exit code 9: no such luck"
expect_contains stderr "its program muster-bench-mpi is neither at" "build the target muster-bench-mpi"
grep -q '"others_before"' launch.json || fail "no load in launch.json"

expect_exit 2 "$bench" train
expect_contains stderr "--data is missing"
expect_exit 2 "$bench" train --data x.h5 --epoch 3
expect_contains stderr "did you mean --epochs?"
expect_exit 2 "$bench" train --data x.h5 --epochs 0
expect_contains stderr "--epochs: '0' is no whole number from 1"
expect_exit 2 "$bench" train --data x.h5 --batch -5
expect_exit 2 "$bench" train --data x.h5 --batch many
expect_exit 2 "$bench" train --data x.h5 --momentum 1
expect_exit 2 "$bench" train --data x.h5 --lr nan
expect_exit 2 "$bench" train --data x.h5 --protocol quick
expect_contains stderr "expected fast or published"
expect_exit 2 "$bench" train --data x.h5 --kernels avx9
expect_contains stderr "no kernels named 'avx9'" baseline
expect_exit 2 "$bench" train --data x.h5 --threads 4
expect_contains stderr "start more ranks"
expect_exit 125 "$bench" train --data none.h5
expect_contains stderr none.h5
echo "not HDF5" >text.h5
expect_exit 125 "$bench" train --data text.h5
expect_contains stderr text.h5

expect_exit 2 "$bench" scale
expect_contains stderr "--data is missing"
expect_exit 125 "$bench" scale --data none.h5
expect_contains stderr "no file 'none.h5'" muster-stage
for ranks in "" 0 1,,2 1,x 9999; do
    expect_exit 2 "$bench" scale --data text.h5 --ranks "$ranks"
    expect_contains stderr "--ranks"
done
expect_exit 2 "$bench" scale --data text.h5 --ranks 2,1,2
expect_contains stderr "names 2 twice"
expect_exit 125 "$bench" scale --data text.h5 --muster ./no-muster
expect_contains stderr "no launcher at './no-muster'" "--muster"
expect_exit 125 "$bench" scale --data text.h5 -o text.h5
expect_contains stderr "cannot write into 'text.h5'"
expect_exit 125 "$bench" scale --data text.h5 --ranks 1 --warmup 0 --repeats 1
expect_contains stderr "no run ended well" "1 rank: exit code 125" "text.h5"
expect_exit 2 "$bench" scale --data text.h5 --rate-metric x
expect_contains stderr "--rate-metric is for a program of your own"
expect_exit 2 "$bench" scale --data text.h5 --ranks 1,2 --strong --batch 3
expect_contains stderr "3 does not divide among 2 ranks"
expect_exit 2 "$bench" scale --data text.h5 --strong --protocol weak
expect_contains stderr "--strong and --protocol weak exclude each other"
expect_exit 2 "$bench" scale --data text.h5 --protocol quick
expect_contains stderr "expected fast, published, steady, strong, weak, accuracy" "^"
expect_exit 2 "$bench" scale --data text.h5 --target-accuracy 90%
expect_contains stderr "--protocol accuracy"
expect_exit 2 "$bench" scale --net resnet50 --protocol accuracy
expect_contains stderr "resnet50 is not trained"
expect_exit 2 "$bench" scale --net lenet --data text.h5
expect_contains stderr "expected mnist, cifar10, resnet50 or gpt2-small"
expect_exit 2 "$bench" train --net resnet50 --lr 1
expect_contains stderr "--lr is for a network that is trained"
expect_exit 2 "$bench" train --net cifar10 --steps 3
expect_exit 2 "$bench" train --data x.h5 --images 3,4
expect_exit 2 "$bench" train --images 3
expect_exit 2 "$bench" train --data x.h5 --target-accuracy 120%
expect_contains stderr "120%" "^"
expect_exit 2 "$bench" train --images 3,4 --device tpu
expect_contains stderr "--device is 'tpu', expected cpu, cuda or auto"
expect_exit 2 "$bench" train --images 3,4 --graph parts
expect_contains stderr "--graph is for a GPU; give --device cuda"
expect_exit 2 "$bench" train --net resnet50 --device cuda
expect_contains stderr "resnet50 is not trained"
expect_exit 2 "$bench" train --images 3,4 --device cuda --profile
expect_contains stderr "--profile is for processors"
# No GPU, driver or kernels here: said with what to do. Where there are all, the training is that of tests/gpu.
if ! "$bench" train --images 64,10 --device cuda >stdout 2>stderr; then
    grep -q -e "--device cuda: " stderr || fail "no reason: $(cat stderr)"
    grep -q -e "--device cpu" -e "install" stderr || fail "nothing to do: $(cat stderr)"
    expect_exit 0 "$bench" train --images 64,10 --device auto --json auto.json
    grep -q '"gpu"' auto.json && fail "a GPU in the record of a machine without"
fi
expect_exit 2 "$bench" scale --as-published
expect_contains stderr "--as-published: --data is missing"
expect_exit 2 "$bench" scale --data text.h5 --core-share 2
expect_contains stderr "expected more than 0, at most 1"
expect_exit 125 "$bench" compare --data text.h5 --python /no/python
