# A rank that the kernel kills because memory is full: that is said, and not where someone else has killed it. Needs root, for a cgroup of its own.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"

expect_exit 137 "$MUSTER" run -q -n 2 -- sh -c '[ $RANK = 1 ] && kill -9 $$; exec sleep 100'
expect_contains stderr 'rank 1 on' 'was killed by signal 9 (SIGKILL), ' 'muster did not send it'
expect_not_contains stderr 'out of memory' 'nobody here sent it'

[ "$(id -u)" = 0 ] || skip 'a cgroup of its own needs root'
name=muster-test-$$
if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
    group=/sys/fs/cgroup/memory/$name limit=memory.limit_in_bytes
elif grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
    group=/sys/fs/cgroup/$name limit=memory.max
else
    skip 'no memory cgroup can be made here'
fi
mkdir "$group" 2>/dev/null || skip "$group cannot be made"
at_end() { rmdir "$group" 2>/dev/null || { sleep 1; rmdir "$group"; }; }
echo $((96 << 20)) >"$group/$limit" || skip 'the limit of the cgroup cannot be set'
[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"

in_group() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"; }
expect_exit 137 in_group "$MUSTER" run -q -n 2 -- sh -c '[ $RANK = 1 ] && exec python3 -c "x = bytearray(400 << 20)"; exec sleep 100'
expect_contains stderr 'rank 1 on' 'was killed by signal 9 (SIGKILL): out of memory' 'the kernel killed a process of its memory cgroup' \
    'start fewer ranks on a node'
expect_nothing_left

# A child of the rank is killed, and the rank fails by it.
expect_exit 9 in_group "$MUSTER" run -q -n 2 -- sh -c '[ $RANK = 1 ] || exec sleep 100; python3 -c "x = bytearray(400 << 20)" || exit 9'
expect_contains stderr 'exited with code 9' 'the kernel killed a process of its memory cgroup'
expect_nothing_left
