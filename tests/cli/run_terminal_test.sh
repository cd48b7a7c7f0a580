# On a terminal: a prompt without a newline shows, what is typed reaches rank 0, Ctrl-C ends the run.
. "$(dirname "$0")/lib.sh"
cat >terminal.py <<'PY'
import os, pty, select, sys, time

def run(command, talk):
    """Runs it on a terminal of its own; `talk` is what to wait for and what to type then."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    seen = b""
    for awaited, typed in talk:
        end = time.monotonic() + 20
        while awaited not in seen and time.monotonic() < end:
            if select.select([fd], [], [], 0.1)[0]:
                seen += os.read(fd, 4096)
        assert awaited in seen, seen
        os.write(fd, typed)
    try:
        while data := os.read(fd, 4096):
            seen += data
    except OSError:
        pass  # the terminal ends with its last process
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen

muster = sys.argv[1]
ask = '[ $RANK = 0 ] && { printf "name? "; read x; echo "hello $x"; }; true'
code, seen = run([muster, "run", "-q", "-n", "2", "--", "sh", "-c", ask], [(b"name? ", b"world\n")])
assert code == 0 and b"hello world" in seen, (code, seen)
code, seen = run([muster, "run", "-q", "-n", "2", "--", "sh", "-c", "echo ready; exec sleep 100"], [(b"ready", b"\x03")])
assert code == 130 and b"got SIGINT" in seen, (code, seen)

# Output that goes to a file comes in whole lines, although messages go to a terminal.
slow = 'for i in 1 2 3; do printf "$RANK"; sleep 0.4; printf "$RANK\\n"; done'
code, seen = run(["/bin/sh", "-c", 'exec "$0" run -q -n 4 -- sh -c "$1" >file', muster, slow], [])
lines = open("file").read().split()
assert code == 0 and sorted(lines) == sorted(str(r) * 2 for r in range(4) for _ in range(3)), lines
PY
expect_exit 0 python3 terminal.py "$MUSTER"
