# muster-stage out … -- COMMAND: what COMMAND leaves is copied while it runs, at signals and at its end, however it ends; its exit code is kept.
# parts: data
. "$(dirname "$0")/lib.sh"

STAGE=$MUSTER_BIN/muster-stage
[ -x "$STAGE" ] || skip "muster-stage was not built (no MPI or no parallel HDF5)"
host=$(hostname)

# Usage.
mkdir made
expect_exit 2 "$STAGE" out made results --json -- true
expect_contains stderr "--json does not go with a command; leave it out"
expect_exit 2 "$STAGE" out made -- true
expect_contains stderr "the target folder is missing"

# The command's own input, output and exit code; what it left is there, also when it failed or was killed.
printf 'given\n' >input
expect_exit 0 "$STAGE" out made results -- sh -c 'read word; echo "$word"; echo 0 >made/0' <input
expect_equal "$(cat "$OUT")" given 'standard output'
expect_true cmp made/0 "results/$host/made/0"
expect_exit 7 "$STAGE" out made results -- sh -c 'echo 7 >made/7; exit 7'
expect_true cmp made/7 "results/$host/made/7"
expect_exit 137 "$STAGE" out made results -- sh -c 'echo 9 >made/9; kill -9 $$'
expect_true cmp made/9 "results/$host/made/9"
expect_exit 127 "$STAGE" out made results -- /no/such/program
expect_exit 125 "$STAGE" out made/none results -- true
expect_contains stderr "the results are not copied" "made/none"
expect_exit 3 "$STAGE" out made/none results -- sh -c 'exit 3'

# Beside the command: every so often, then at a signal, which the command gets too. It waits for a file, so that nothing depends on time.
mkfifo go
cat >train <<'END'
#!/bin/sh
trap 'echo usr1 >made/usr1' USR1
trap 'echo term >made/term; exit 5' TERM
echo 1 >made/started
while :; do sleep 0.05; done
END
chmod +x train
"$STAGE" out --every 100ms made beside -- ./train >"$OUT" 2>"$ERR" &
pid=$!
wait_until 20 test -e "beside/$host/made/started"
kill -USR1 $pid
wait_until 20 test -e "beside/$host/made/usr1"
kill -TERM $pid
wait $pid
expect_equal $? 5 'exit code after SIGTERM'
expect_true cmp made/term "beside/$host/made/term"
expect_exit 0 "$STAGE" verify "beside/$host"

# Without --every: at the signal alone.
rm -rf made/*
"$STAGE" out made signalled -- ./train >"$OUT" 2>"$ERR" &
pid=$!
wait_until 20 test -e made/started
kill -USR1 $pid
wait_until 20 test -e made/usr1
wait_until 20 test -e "signalled/$host/made/started"
kill -TERM $pid
wait $pid
expect_equal $? 5 'exit code after SIGTERM'
expect_true cmp made/usr1 "signalled/$host/made/usr1"

# Killed itself: the command goes with it, and nothing but whole files has a final name.
rm -rf made/*
head -c 3000000 /dev/urandom >made/large
"$STAGE" out --every 10ms made killed -- ./train >"$OUT" 2>"$ERR" &
pid=$!
wait_until 20 test -e made/started
command=$(pgrep -P $pid -x train)
kill -KILL $pid
wait $pid 2>/dev/null
wait_until 20 test ! -e "/proc/$command"
[ ! -e "killed/$host/made/large" ] || expect_true cmp made/large "killed/$host/made/large"
expect_exit 0 "$STAGE" out made killed
expect_true cmp made/large "killed/$host/made/large"

# Several ranks of a node: each runs the command; what the last one leaves is there too.
rm -rf made/*
expect_exit 4 "$MUSTER" run -n 3 --slots-per-node 3 -- "$STAGE" out made ranks -- sh -c 'echo $MUSTER_RANK >made/$MUSTER_RANK; [ $MUSTER_RANK != 2 ] || { until [ -e ranks/'"$host"'/made/0 ]; do sleep 0.02; done; echo late >made/late; exit 4; }'
expect_true cmp made/late "ranks/$host/made/late"

# No rank meets an MPI world here: one that ends early with 0, or with the code that says that it has saved, is waited for by none. The other ends when it is gone.
for code in 75 0; do
    rm -f first
    expect_exit $code "$MUSTER" run -n 2 --slots-per-node 2 -- "$STAGE" out --every 600s made early -- sh -c 'if [ $RANK = 0 ]; then echo $PPID >part; mv part first; exit '$code'; fi
        until [ -e first ]; do sleep 0.02; done; while kill -0 $(cat first) 2>/dev/null; do sleep 0.02; done'
    rm -f first
    expect_exit $code "$MUSTER" run -n 2 --slots-per-node 2 -- sh -c 'if [ $RANK = 0 ]; then echo $$ >part; mv part first; exit '$code'; fi
        exec "$0" out --every 600s made early -- sh -c "until [ -e first ]; do sleep 0.02; done; while kill -0 \$(cat first) 2>/dev/null; do sleep 0.02; done"' "$STAGE"
done

# A signal to the launcher reaches the command once. Each arrival writes a byte.
cat >count.py <<'END'
import os, signal, time
arrived, noted = os.pipe2(os.O_NONBLOCK)
signal.set_wakeup_fd(noted)
for name in ("USR1", "USR2"):
    signal.signal(getattr(signal, "SIG" + name), lambda number, frame, name=name: open("made/" + name, "w").close())
open("made/started", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
print(*(signal.Signals(number).name for number in os.read(arrived, 100)))
END
count_signals() { # OPTION...: of muster run
    rm -rf made/* go once
    "$MUSTER" run "$@" -- "$STAGE" out made once -- python3 count.py >"$OUT" 2>"$ERR" &
    pid=$!
    wait_until 20 test -e made/started
    for name in USR1 USR2; do
        kill -$name $pid
        wait_until 20 test -e made/$name
    done
    : >go
    wait $pid
    expect_equal $? 0 'exit code'
    expect_equal "$(cat "$OUT")" 'SIGUSR1 SIGUSR2' "signals with $*"
}
count_signals -n 1
if command -v mpirun.openmpi >/dev/null; then
    count_signals --engine mpirun -H "$host:1"
fi
