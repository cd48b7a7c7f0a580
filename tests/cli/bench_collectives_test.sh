# timeout: 120
# muster-bench collectives: muster's own ranks, checked while timed. Beside the libraries of this machine it takes longer than a test may.
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (no MPI or no HDF5)"

expect_exit 0 "$bench" collectives --help
expect_contains stdout "muster-bench collectives"
expect_exit 0 "$bench" collectives --ranks 2 --peers none --min 8 --max 1MiB --factor 512 --repeats 1 --json out.json
expect_contains stdout "allreduce, 2 ranks on"
expect_matches stdout '^ *1048576 +262144 +f32 +sum +-1 +shm '
expect_matches stdout '^ *1048576 +262144 +f32 +sum +-1 +mpi '
grep -q '"schema": "muster.collectives/1"' out.json || fail "no schema in out.json"
expect_exit 0 "$bench" collectives --ranks 2 --peers none --backend shm --gradients cifar --repeats 1
expect_contains stdout "cifar: 59 tensors, 269722 parameters"

expect_exit 2 "$bench" collectives --peers nobody
expect_contains stderr "there are openmpi, mpich, gloo, all and none"
expect_exit 2 "$bench" collectives --gradients vgg
expect_contains stderr "resnet50, cifar, mnist, gpt2"
expect_exit 2 "$bench" collectives --min 64 --max 8
expect_exit 2 "$bench" collectives --factor 1
