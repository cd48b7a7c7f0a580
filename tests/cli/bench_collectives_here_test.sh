# muster-bench collectives under muster run: collectives and messages among the ranks of a job, checked while timed.
# parts: bench
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench
[ -x "$bench" ] || skip "muster-bench was not built (launcher only)"
here() { "$MUSTER" run -q -n "$ranks" --slots-per-node "$ranks" -- "$bench" collectives "$@"; }

ranks=2
expect_exit 0 here --op all --reduction avg --repeats 2 -b 8 -e 64KiB -f 100 --csv out.csv --json out.json
expect_contains stdout '2 ranks on 1 host'
expect_matches stdout '^ *65536 +16384 +f32 +avg +-1 +shm +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+% +[0-9.]+ +[0-9.]+ +0 +[0-9.]+ .* 0$'
expect_matches stdout '^ *65536 +16384 +f32 +none +0 +shm +- '
expect_matches stdout '^average busbw GB/s: shm [0-9.]+$'
expect_contains stdout 'messages between rank 0'
expect_matches stdout '^ *65536( +[0-9.]+ +[0-9]+%){3} +64 +0$'
expect_equal "$(grep -c '^allreduce,in,2,1,shm,f32,avg,' out.csv)" 3 'lines of allreduce in place'
expect_equal "$(grep -c '^latency,' out.csv)" 3 'lines of latency'
grep -q '"schema": "muster.collectives/1"' out.json || fail 'no table in out.json'
grep -q '"schema": "muster.messages/1"' out.json || fail 'no messages in out.json'
expect_exit 0 here --gradients cifar --repeats 1
expect_contains stdout 'cifar: 59 tensors, 269722 parameters'

# Other backends, memory, a pair that is not the first and the last; the third rank waits meanwhile.
ranks=3
expect_exit 0 here --backend mpi --op none --pair 2,1 --repeats 1 -e 1KiB -f 32
expect_contains stdout 'messages between rank 2'
expect_not_contains stdout 'average busbw'
expect_exit 0 here --memory allocated --pair none --op reducescatter -d bf16 --repeats 1 -b 1KiB -e 1KiB
expect_matches stdout '^ *102[0-9] .* bf16 +sum '
expect_not_contains stdout 'messages between'

# Sizes that would take too long are left out, which is told.
expect_exit 0 here --pair none --repeats 1 -b 8 -e 64 --time 0s
expect_contains stdout 'allreduce: 8 B and larger were left out'

# One rank alone is told; what is wrong in the options, too.
ranks=1
expect_exit 0 here -e 64 --repeats 1
expect_contains stdout 'one rank alone: nothing is sent; start it with muster run'
expect_exit 2 here --pair 0,1
expect_contains stderr 'start it with muster run'
ranks=2
expect_exit 2 here --pair 0,2
expect_contains stderr '--pair'
expect_exit 2 here --pair 1,1
expect_contains stderr 'give two different ones, such as 0,1'
expect_exit 2 here --op none --pair none
expect_contains stderr 'nothing to measure'
expect_exit 2 here --memory shared
expect_exit 2 here --peers gloo
expect_contains stderr '--peers is for the command that starts the ranks itself'
expect_exit 2 here --op gather
