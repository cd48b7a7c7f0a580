# A run that hangs: what every rank does is shown, at a time limit or when asked; ranks that miss the others are named.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
host=$(hostname -s)

# At a time limit there is a line for each rank: process, state, processor time, last output; then a command of the user's about each.
cat >sit.sh <<'SH'
echo "step $RANK"
[ $RANK = 1 ] && kill -STOP $$
exec sleep 100
SH
expect_exit 124 "$MUSTER" run -n 2 --timeout 1s --on-hang 'echo looked at {pid}' -- sh sit.sh
expect_contains stderr 'still running after --timeout 1 s: ending 2 ranks'
expect_matches stderr "^muster: rank 0 on $host, pid [0-9]+: asleep in sleep, [0-9.]+ s of CPU; wrote last .* ago: step 0$" \
    "^muster: rank 1 on $host, pid [0-9]+: stopped, [0-9.]+ s of CPU; wrote last .* ago: step 1$" \
    "^muster: --on-hang of rank 1 on $host, pid [0-9]+:$" '^looked at [0-9]+$'
expect_nothing_left
expect_exit 124 "$MUSTER" run -n 1 --idle-timeout 500ms -- sh -c 'sleep 100; :'
expect_matches stderr "^muster: rank 0 on $host, pid [0-9]+: asleep in sleep" # below the shell that only waits for it
expect_exit 124 "$MUSTER" run -n 1 --timeout 500ms -- sh -c 'echo "Traceback (most recent call last):
ValueError: x" >&2; exec sleep 100'
expect_contains stderr 'asleep in sleep, has printed a traceback' 'ago: ValueError: x'
# 0 means no limit: it undoes that of a file. The sleep is the program that hangs: the limit ends it at once.
mkdir limits
printf 'timeout = "1ms"\nidle-timeout = "1ms"\nstart-timeout = 0\n' >limits/muster.toml
expect_exit 124 env -C limits "$MUSTER" run -n 1 -- sleep 100
expect_exit 0 env -C limits MUSTER_IDLE_TIMEOUT=0s "$MUSTER" run -n 1 --timeout 0 -- python3 -c ''

# Once is enough: where the ranks still do the same, a line refers to the table that SIGUSR2 has shown.
start "$MUSTER" run -n 2 --timeout 12s -- sh -c 'echo ready; exec sleep 100'
wait_until 10 out_lines 2
looked() { [ "$(grep -c '^muster: rank' "$ERR")" -gt "$had" ]; }
sees_sleep() { # both ranks, once they are there
    had=$(grep -c '^muster: rank' "$ERR")
    kill -USR2 "$PID"
    wait_until 5 looked && [ "$(tail -n 2 "$ERR" | grep -c 'asleep in sleep')" = 2 ]
}
wait_until 10 sees_sleep
expect_end 124
expect_matches stderr '^muster: all ranks do what the table above shows, [0-9.]+ m?s later$'
expect_nothing_left

# SIGUSR2 shows the same and the run goes on; programs without a handler of their own are not killed by it.
cat >catch.sh <<'SH'
[ $RANK = 0 ] || { echo ready; exec sleep 100; }
trap 'echo caught; exit 3' USR2
echo ready
while :; do sleep 0.05; done
SH
start "$MUSTER" run -q -n 2 -- sh catch.sh
wait_until 10 out_lines 2
kill -USR2 "$PID"
expect_end 3
expect_contains stdout caught
# It may be on its way to sleep still.
expect_matches stderr "^muster: rank 1 on $host, pid [0-9]+: (asleep in sleep|running)" "^muster: error: rank 0 on $host exited with code 3"
expect_nothing_left

# Ranks that meet at MASTER_PORT, as PyTorch's do: --start-timeout names the one that is missing.
cat >meet.py <<'PY'
import os, socket, sys, time
rank, size, late = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(sys.argv[1])
if rank == 0:
    door = socket.create_server(("", int(os.environ["MASTER_PORT"])))
    peers = [door.accept() for _ in range(size - 1 - (late >= 0))]
elif rank != late:
    while True:
        try:
            door = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
            break
        except OSError:
            time.sleep(0.02)
print("met", flush=True)
if len(sys.argv) > 2 and rank == size - 1: sys.exit(0)
time.sleep(100)
PY
expect_exit 124 "$MUSTER" run -n 4 --start-timeout 3s -- python3 meet.py 2
expect_matches stderr "3 of 4 ranks have met .* after --start-timeout 3 s; missing: rank 2 on $host \(pid [0-9]+\)" \
    "^muster: rank 2 on $host, pid [0-9]+: .*; has not met the others" "^muster: rank 3 on $host, pid [0-9]+: .*; has met the others"
expect_nothing_left
expect_exit 124 "$MUSTER" run -n 2 --start-timeout 1s --timeout 4s -- python3 meet.py -1
expect_contains stderr 'still running after --timeout'
expect_exit 124 "$MUSTER" run -n 2 --start-timeout 500ms --timeout 2s -- sleep 100 # a program that does not meet at all
expect_contains stderr 'still running after --timeout'

# A rank that ends well while others wait for it is told, and again when one of them fails.
start "$MUSTER" run -n 3 --timeout 20s -- python3 meet.py -1 leave
wait_until 18 grep -q 'note: rank 2 on' "$ERR"
kill -TERM "$PID"
expect_end 143
expect_matches stderr 'note: rank 2 on .* ended with code 0, and 2 ranks may wait for it' "^muster: rank 0 on $host, pid"
expect_exit 5 "$MUSTER" run -n 3 -- sh -c '[ $RANK = 1 ] && { : >left; exit 0; }; [ $RANK = 2 ] && { while ! [ -e left ]; do sleep 0.02; done; sleep 0.3; exit 5; }; exec sleep 100'
expect_contains stderr "rank 1 on $host had ended with code 0 before that"
expect_nothing_left
