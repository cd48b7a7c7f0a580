# timeout: 300
# muster-bench collectives: muster's own ranks, checked while timed. Beside the libraries of this machine it takes longer than a test may.
# parts: bench
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (launcher only)"

expect_exit 0 "$bench" collectives --help
expect_contains stdout "muster-bench collectives"
expect_exit 0 "$bench" collectives --ranks 2 --peers none --min 8 --max 1MiB --factor 512 --repeats 1 --json out.json --csv out.csv
expect_contains stdout "messages between rank 0" "in node: alpha"
grep -q "^allreduce,in,2,1,shm,f32,sum,1048576," out.csv || fail "no allreduce in out.csv"
grep -q "^latency,-,2,1,mpi," out.csv || fail "no latency in out.csv"
expect_contains stdout "allreduce, 2 ranks on"
expect_matches stdout '^ *1048576 +262144 +f32 +sum +-1 +shm '
expect_matches stdout '^ *1048576 +262144 +f32 +sum +-1 +mpi '
expect_matches stdout '^ *1048576 +262144 +f32 +sum +-1 +shm-allocated '
expect_not_contains stdout mpi-allocated
grep -q '"schema": "muster.collectives/1"' out.json || fail "no schema in out.json"
grep -q '"memory": "allocated"' out.json || fail "no memory in out.json"
expect_exit 0 "$bench" collectives --ranks 2 --peers none --backend shm --memory plain --gradients cifar --repeats 1 --pair none
expect_contains stdout "cifar: 59 tensors, 269722 parameters"
expect_not_contains stdout shm-allocated

# Every collective, on types and reductions that are not the usual; a wrong element would end it with 1.
expect_exit 0 "$bench" collectives --op all -d bf16 -o avg --root 1 --peers none -b 100KiB -e 100KiB --repeats 1 --pair none
expect_matches stdout '^ *102400 +51200 +bf16 +avg +-1 +shm .* 0 +[0-9.]+ .* 0$'
expect_matches stdout '^ *102400 +51200 +bf16 +none +1 +mpi +- +- +- +- +- '
expect_matches stdout '^ *102400 +25600 +bf16 +none +-1 +shm .* - +- +- +- +-$'
expect_matches stdout '^ *102400 +51200 +bf16 +avg +-1 +shm-allocated .* 0 +[0-9.]+ .* 0$'
expect_exit 0 "$bench" collectives --ranks 4 --backend hierarchical --memory allocated --pretend-nodes 2 --peers none -b 1MiB -e 1MiB --repeats 1 --pair none
expect_contains stdout "one node pretending to be 2 (simulated)"

# On no GPU the nccl backend and the bare NCCL refuse in words; on a driver and an NCCL that are fakes both run.
fake=$MUSTER_BIN/../tests/gpu/libmuster_fake_gpu.so
if [ -f "$fake" ]; then
  mkdir fake
  ln -s "$(realpath "$fake")" fake/libcuda.so.1
  ln -s "$(realpath "$fake")" fake/libnccl.so.2
  expect_exit 0 env LD_LIBRARY_PATH="$PWD/fake" "$bench" collectives --ranks 1 --op all --backend nccl --peers raw-nccl -e 1KiB -f 200 --repeats 1
  expect_matches stdout '^ *1024 +256 +f32 +sum +-1 +raw-nccl '
  expect_contains stdout "nccl on fake GPU"
fi
mkdir none
printf 'no library' >none/libcuda.so.1
expect_exit 125 env LD_LIBRARY_PATH="$PWD/none" "$bench" collectives --backend nccl --peers none
expect_contains stderr "left out: nccl"
expect_contains stderr "nothing to measure"

expect_exit 2 "$bench" collectives --peers nobody
expect_contains stderr "give openmpi, mpich, impi, oneccl, gloo, raw-nccl, all or none"
expect_exit 2 "$bench" collectives --memory shared
expect_contains stderr "give plain, allocated or both"
expect_exit 2 "$bench" collectives --op gather
expect_contains stderr "allreduce, allgather, broadcast, reducescatter, alltoall or all"
expect_exit 2 "$bench" collectives --type f8
expect_exit 2 "$bench" collectives --type i32 --reduction avg
expect_contains stderr "integers have no average"
expect_exit 2 "$bench" collectives --root 2
expect_exit 2 "$bench" collectives --gradients vgg
expect_contains stderr "resnet50, cifar, cifar10, mnist or gpt2"
expect_exit 2 "$bench" collectives --min 64 --max 8
expect_exit 2 "$bench" collectives --factor 1
