# timeout: 240
# Ranks die together: the first culprit is named, its code is muster's, and nothing is left.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"

run=("$MUSTER" run -q -n 4)

# A rank exits with a code of its own.
expect_exit 3 "${run[@]}" -- sh -c '[ $RANK = 2 ] && { echo "cannot open data" >&2; exit 3; }; exec sleep 100'
expect_contains stderr "rank 2 on " "exited with code 3" "ending the other 3" "| cannot open data"
expect_nothing_left

# A rank is killed.
expect_exit 137 "${run[@]}" -- sh -c '[ $RANK = 1 ] && kill -9 $$; exec sleep 100'
expect_contains stderr "rank 1 on " "was killed by signal 9 (SIGKILL)"
expect_nothing_left
expect_exit 139 "${run[@]}" -- sh -c '[ $RANK = 0 ] && kill -SEGV $$; exec sleep 100'
expect_contains stderr "rank 0 on " "signal 11 (SIGSEGV)"

# Grandchildren in sessions of their own end with the run, whether it fails or not.
orphan='setsid sleep 1000 & setsid sh -c "trap : TERM; sleep 1000; sleep 1000" &'
expect_exit 3 "${run[@]}" -- sh -c "$orphan [ \$RANK = 2 ] && exit 3; exec sleep 100"
expect_nothing_left
expect_exit 0 "${run[@]}" -- sh -c "$orphan exit 0"
expect_nothing_left

# SIGINT and SIGTERM to muster.
for case in INT:130 TERM:143 HUP:129; do
    start "${run[@]}" -- sh -c 'echo ready; exec sleep 100'
    wait_until 10 out_lines 4
    kill -"${case%:*}" "$PID"
    expect_end "${case#*:}"
    expect_nothing_left
done

# Shells let what they run in the background ignore SIGINT: it gets SIGTERM a moment later.
start "${run[@]}" -- sh -c 'echo ready; sleep 1000 & wait'
wait_until 10 out_lines 4
kill -INT "$PID"
expect_end 130
expect_nothing_left

# SIGTERM to the whole process group, as a scheduler sends it, is one request, not two.
start setsid "$MUSTER" run -n 4 --grace 20s -- sh -c 'trap "echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
wait_until 10 out_lines 4
kill -TERM -- "-$(ps -o pid= --ppid "$PID" 2>/dev/null | tr -d ' ' | head -n 1)" 2>/dev/null || kill -TERM -- "-$PID"
expect_end 143
expect_equal "$(grep -c saved "$OUT")" 4 "ranks that could save"
expect_nothing_left

# Ranks that ignore SIGTERM are killed after the grace.
start "${run[@]}" --grace 300ms -- sh -c 'trap "" TERM INT; echo ready; while :; do sleep 0.05; done'
wait_until 10 out_lines 4
kill -TERM "$PID"
expect_end 143
expect_contains stderr "that did not end within 300 ms (--grace)"
expect_nothing_left

# A second request is no longer patient.
start "${run[@]}" --grace 100s -- sh -c 'trap "echo asked" TERM; trap "" INT; echo ready; while :; do sleep 0.05; done'
wait_until 10 out_lines 4
kill -TERM "$PID"
wait_until 10 grep -q asked "$OUT"
kill -INT "$PID"
expect_end 143
expect_nothing_left

# muster itself is killed: its parent half, its child half, both at once, its parent half while the other one is stopped.
for victims in guardian launcher both stopped; do
    start "${run[@]}" -- sh -c 'setsid sleep 1000 & echo ready; exec sleep 1003'
    wait_until 10 out_lines 4
    launcher=$(ps -o pid= --ppid "$PID" | tr -d ' ' | head -n 1)
    case $victims in
        guardian) kill -9 "$PID" ;;
        launcher) kill -9 "$launcher" ;;
        both) kill -STOP "$launcher"; kill -9 "$PID" "$launcher" ;;
        stopped) kill -STOP "$launcher"; kill -9 "$PID" ;;
    esac
    expect_end 137
    # With both gone nobody is left to look for sessions of their own: the ranks themselves die, as the kernel was told.
    if [ $victims = both ]; then
        ranks_gone() { ! pgrep -f 'sleep 1003$' >/dev/null; }
        wait_until 5 ranks_gone
        kill -9 $(marked) 2>/dev/null
        rm -rf $(comm -13 <(echo "$shm_before") <(shm_files) | sed 's,^,/dev/shm/,')
    else
        expect_nothing_left
    fi
done

# A program below a wrapper script has the whole grace to save its state, although the script itself ends at once.
cat >saving.sh <<'SH'
trap 'sleep 1; echo saved; exit 0' TERM
echo ready
while :; do sleep 0.05; done
SH
start "$MUSTER" run -q -n 2 --grace 30s -- bash -c 'bash saving.sh; true'
wait_until 10 out_lines 2
kill -TERM "$PID"
expect_end 143
expect_equal "$(grep -c saved "$OUT")" 2 "programs that could save below a wrapper"
expect_nothing_left

# Signals that whoever started muster wants ignored stay so.
start nohup "$MUSTER" run -q -n 2 -- sh -c 'echo ready; exec sleep 100'
wait_until 10 out_lines 2
kill -HUP "$PID"
kill -TERM "$PID"
expect_end 143 # not 129: the first of the two was to be ignored
expect_nothing_left
expect_exit 3 python3 -c 'import signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); import os
os.execv(sys.argv[1], sys.argv[1:])' "$MUSTER" run -q -n 2 --timeout 20s -- sh -c 'exit 3'
expect_nothing_left

# Time.
expect_exit 124 "${run[@]}" --timeout 300ms -- sleep 100
expect_contains stderr "still running after --timeout 300 ms"
expect_nothing_left

# A rank that leaves its world by sys.exit waits at its exit for the others, which fail because of it and end first.
if [ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] && /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    cat >leave.py <<'PY'
import sys
import numpy as np
import muster
from muster import arrays
muster.init()
for step in range(50):
    if step == 5 and muster.rank() == 1: sys.exit(3)
    arrays.allreduce(np.ones(4), name=f"step {step}")
PY
    expect_exit 3 "$MUSTER" run -n 3 --slots-per-node 3 --timeout 60s -- /usr/bin/python3 leave.py
    expect_contains stderr 'rank 1 (' 'has ended the exchange and will not take part' "error: rank 1 on $(hostname) exited with code 3"
    # One that raises, and whose exit takes longer than that of the others, which fail because it has left.
    cat >raise.py <<'PY'
import atexit
import os
import time
import numpy as np
import muster
from muster import arrays


def wait_for_the_other():  # runs after muster has left
    pid = open("pid").read()
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.01)


if os.environ["RANK"] == "1": atexit.register(wait_for_the_other)
else: open("pid", "w").write(str(os.getpid()))
muster.init()
arrays.allreduce(np.ones(4), name="both are there")
if muster.rank() == 1: raise RuntimeError("bad batch")
arrays.allreduce(np.ones(4), name="one only")
PY
    expect_exit 1 "$MUSTER" run -n 2 --slots-per-node 2 --timeout 60s -- /usr/bin/python3 raise.py
    expect_contains stderr 'it has destroyed its communicator' "error: rank 1 on $(hostname) exited with code 1" '  | RuntimeError: bad batch'
fi

# Programs that are none.
expect_exit 127 "${run[@]}" -- no-such-program
expect_contains stderr "no program 'no-such-program' on PATH ("
echo 'print(1)' >train.py
expect_exit 126 "${run[@]}" -- ./train.py
expect_contains stderr "or write python3 in front of it: python3 ./train.py"
printf 'no shebang' >script
chmod +x script
expect_exit 126 "${run[@]}" -- ./script
expect_contains stderr "neither a program nor a script with a #! line"
printf '#!/no/such/interpreter\n' >script
expect_exit 127 "${run[@]}" -- ./script
expect_contains stderr 'its interpreter /no/such/interpreter is not there'
printf '#!/bin/sh\r\necho\r\n' >script
expect_exit 127 "${run[@]}" -- ./script
expect_contains stderr 'its interpreter /bin/sh\r, with a carriage return, is not there'
expect_exit 127 "${run[@]}" -- 'sh -c true'
expect_contains stderr 'its name has a blank'
expect_exit 127 "${run[@]}" -- A=1 true
expect_contains stderr 'set a variable by -x A=1'
expect_exit 125 "${run[@]}" --wd /nowhere -- true
expect_contains stderr "--wd /nowhere: there is no such directory"
expect_exit 2 "${run[@]}" --tag-ouput -- true
expect_contains stderr "did you mean --tag-output?"
expect_exit 125 "$MUSTER" run -n 3 --slots-per-node 2 -- true
expect_contains stderr "cannot map 3 ranks"
expect_exit 2 "$MUSTER" rnu -- true
expect_contains stderr "did you mean 'run'?"
expect_nothing_left
