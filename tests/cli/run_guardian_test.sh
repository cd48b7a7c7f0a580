# What ends a run when its launcher cannot: a launcher that stands still is killed by the guardian, and a closed terminal ends what it had started itself.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"

# The launcher is stopped: it takes no signal. The rank tells when it is.
"$MUSTER" run -n 1 --grace 0s -- sh -c 'kill -STOP $PPID; : >stopped; exec sleep 100' >"$OUT" 2>"$ERR" &
guardian=$!
wait_until 20 test -e stopped
kill -TERM "$guardian"
wait "$guardian"
expect_equal $? 143 'the exit code of a run whose launcher stands still'
expect_contains stderr 'the launcher did not answer SIGTERM within 5 s; killing it and its ranks'
expect_nothing_left

# The same where nobody reads what muster says: the pipe is full. Then the second signal counts.
rm stopped
mkfifo unread
exec 3<>unread
python3 -c 'import os; os.set_blocking(3, False)
try:
    while True: os.write(3, b"x" * 4096)
except BlockingIOError: os.set_blocking(3, True)'
"$MUSTER" run -n 1 -- sh -c 'kill -STOP $PPID; : >stopped; exec sleep 100' >"$OUT" 2>unread &
guardian=$!
wait_until 20 test -e stopped
kill -TERM "$guardian"
sleep 0.6 # two signals within half a second are one
kill -TERM "$guardian"
wait_until 10 sh -c "! kill -0 $guardian"
wait "$guardian"
expect_equal $? 143 'the exit code of a run whose launcher stands still, and whose messages nobody reads'
exec 3>&-
expect_nothing_left

# Nobody is between the terminal and muster, as with `ssh -t host muster run`: muster leads the session, and it alone is told.
cat >closed.py <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "run", "-n", "2", "--", "sh", "-c", "echo ready; exec sleep 100"])
seen = b""
while seen.count(b"ready") < 2:
    seen += os.read(fd, 4096)
os.close(fd)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
expect_exit 129 timeout -k 2 30 python3 closed.py "$MUSTER"
expect_nothing_left

# A remote shell that becomes the agent by exec is not killed as a shell is: it removes its folder first.
printf '#!/bin/bash\nexec /bin/bash -c "$2"\n' >exec_rsh && chmod +x exec_rsh
for i in $(seq 12); do expect_exit 0 env MUSTER_REMOTE_SHELL="$PWD/exec_rsh" "$MUSTER" run -H elsewhere:2 --timeout 60s -- true; done
expect_nothing_left
