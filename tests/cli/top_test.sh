# muster top of made-up samples: once, as JSON, of a folder and of a job, and drawn on a terminal.
# parts: jobs
. "$(dirname "$0")/lib.sh"
export HOME=$PWD/home XDG_STATE_HOME=$PWD/state XDG_CONFIG_HOME='' MUSTER_SITE_PATH=''
unset COLUMNS NO_COLOR SLURM_JOB_ID PBS_JOBID FLUX_JOB_ID FLUX_ENCLOSING_ID
mkdir home empty muster-runs
top() { env PATH="$PWD/empty" "$MUSTER" top "$@"; } # no scheduler's command is found

# samples FOLDER [JOB [METRIC]]: the folder of a run, with samples of 4 ranks on two hosts, of which rank 3 keeps the others waiting.
cat >samples.py <<'PY'
import json, os, sys, time

folder, job, metric = (sys.argv[1:] + ["", "loss 0.25"])[:3] if len(sys.argv) < 4 else sys.argv[1:4]
os.makedirs(folder, exist_ok=True)
if not os.path.exists(folder + "/run.json"):
    json.dump({"host": "elsewhere", "allocation": {"job_id": job}, "started_at": "2026-11-01T00:00:00+0000"}, open(folder + "/run.json", "w"))
def rank(r):
    return {"rank": r, "pid": 100 + r, "state": "R", "cores": 1.0, "allowed_cores": 4, "memory_bytes": 1 << 30, "metric": metric if r == 0 else "",
            "cgroup": {"throttled": 0.5 if r == 3 else 0.0}, "waits": {"collectives": 10 if r == 3 else 100, "came_last": 90 if r == 3 else 0, "waiting": 0.01 if r == 3 else 0.41}}
samples = {"schema": "muster.samples/1", "job": job, "command": "train", "world_size": 4, "started_s": time.time() - 60,
           "nodes": [{"host": h, "at_s": time.time(), "steal": float(os.environ.get("STEAL", 0)), "ranks": [rank(r) for r in ranks]} for h, ranks in (("node1", (0, 1)), ("node2", (2, 3)))]}
with open(folder + "/new", "w") as file:
    json.dump(samples, file)
os.rename(folder + "/new", folder + "/samples.json")
PY
samples() { python3 samples.py "$@"; }
end_run() { # FOLDER
    printf '{"host": "elsewhere", "ended_at": "2026-11-01T01:02:03+0000", "exit": {"code": 3, "cause": "rank 1 exited with code 3"}}' >"$1/run.json"
}

samples run
expect_exit 0 top run --once
expect_equal "$(sed -n '4,$p' "$OUT")" '   rank  host        cores  memory  waits  last  state              metric
!     3  node2       1.0/4    1.0G     1%   90%  running
      0  node1       1.0/4    1.0G    41%    0%  running            loss 0.25
      1  node1       1.0/4    1.0G    41%    0%  running
      2  node2       1.0/4    1.0G    41%    0%  running

rank 3 on node2: keeps the others waiting 40 % of the time: its cgroup'\''s quota
  held it back 50 % of the time' 'the table'
once=$(sed -n '3,$p' "$OUT")
expect_matches stdout '^train$' '^4 ranks on 2 nodes, started [0-9.]+ s ago$'
expect_exit 0 top ./run/
expect_equal "$(sed -n '3,$p' "$OUT")" "$once" 'the table without a terminal'
expect_exit 0 env COLUMNS=45 PATH="$PWD/empty" "$MUSTER" top run --once
expect_true [ "$(wc -L <"$OUT")" -le 45 ]
STEAL=0.2 samples run
expect_exit 0 top run --json
samples run
expect_true python3 - "$OUT" <<'PY'
import json, sys
got, file = json.load(open(sys.argv[1])), json.load(open("run/samples.json"))
marks = got["oddities"]
assert [(mark.get("rank"), mark["host"], mark["kind"]) for mark in marks] == [
    (3, "node2", "awaited"), (3, "node2", "throttled"), (None, "node1", "steal"), (None, "node2", "steal")], marks
assert marks[1]["reason"] == "its cgroup's quota held it back 50 % of the time", marks
assert got["schema"] == "muster.samples/1"
assert got["nodes"][0]["ranks"][0]["metric"] == file["nodes"][0]["ranks"][0]["metric"]
PY

# What is no run, has no samples, or may not be read.
expect_exit 125 top nowhere
expect_contains stderr "'nowhere' is no folder, and no number of a job"
expect_exit 125 top empty
expect_contains stderr "$PWD/empty is no folder of a run: it has no run.json"
expect_exit 2 top run run
expect_contains stderr 'muster top takes one job or one run'
mkdir fresh && echo '{}' >fresh/run.json
expect_exit 125 top ./fresh
expect_contains stderr "$PWD/fresh has no samples.json (yet)"
echo '{"schema": "muster.samples/9"}' >fresh/samples.json
expect_exit 2 top ./fresh
expect_contains stderr "$PWD/fresh/samples.json holds no samples that this muster can read"
other=(setpriv --reuid=54321 --regid=54321 --clear-groups)
if (cd / && "${other[@]}" test -x "$MUSTER") 2>/dev/null; then
    chmod 755 "$lib_dir" "$lib_dir/work" && chmod 700 run
    expect_exit 2 env -C / HOME=/ "${other[@]}" "$MUSTER" top "$PWD/run"
    expect_contains stderr "cannot read $PWD/run: permission denied, and $PWD/run belongs to the user $(id -un)"
    chmod 755 run && chmod 600 run/samples.json
    expect_exit 2 env -C / HOME=/ "${other[@]}" "$MUSTER" top "$PWD/run"
    expect_contains stderr "cannot read $PWD/run/samples.json: permission denied"
    chmod 700 "$lib_dir"
else
    echo 'not checked: the folder of another user, which needs root and a program that all may run'
fi

# A run that has ended: a table of it would tell of processes that are gone. What it wrote is there for programs.
samples over && end_run over
expect_exit 0 top over
expect_equal "$(cat "$OUT")" "the run ended at 2026-11-01T01:02:03+0000 with exit code 3: rank 1 exited with code 3; muster show $PWD/over tells more" 'an ended run'
expect_exit 0 top over --json
expect_contains stdout '"schema": "muster.samples/1"'
rm over/samples.json
expect_exit 125 top over --json
expect_contains stderr "$PWD/over has no samples.json: the run ended at 2026-11-01T01:02:03+0000 with exit code 3"
expect_not_contains stderr 'try again'
expect_equal "$(cat "$OUT")" '' 'no prose for a program'
: &
gone=$! here=$(uname -n)
wait $gone
samples killed
printf '{"host": "%s", "process": {"pid": %s, "start_ticks": 1}}' "${here%%.*}" $gone >killed/run.json
expect_exit 0 top killed
expect_contains stdout "the run was killed: process $gone of ${here%%.*} is gone, which led it; muster show $PWD/killed tells more"

# A generation of a restarted run has a folder of its own.
samples restarted '' old
samples restarted/generation.1 '' new
expect_exit 0 top restarted
expect_contains stdout ' new'
expect_not_contains stdout ' old'

# Jobs: the run with the newest samples, of an array too; in a job that one.
samples muster-runs/31 31 first && samples muster-runs/31.2 31 second
expect_exit 0 top 31
expect_contains stdout 'job 31: train' ' second'
expect_exit 0 env SLURM_JOB_ID=31 PATH="$PWD/empty" "$MUSTER" top
expect_contains stdout 'job 31: train' ' second'
for task in 1 2; do
    samples muster-runs/4$task 4$task "task$task"
    printf 'SLURM_ARRAY_JOB_ID=40\nSLURM_ARRAY_TASK_ID=%s\nSLURM_JOB_ID=4%s\n' $task $task >muster-runs/4$task/environment
done
expect_exit 0 top 40_1
expect_contains stdout ' task1'
expect_exit 0 top 40
expect_contains stdout ' task2'
expect_exit 125 top 99
expect_contains stderr "job 99: no run of it in $PWD/muster-runs/99 (yet)"
expect_exit 125 env SLURM_JOB_ID=99 PATH="$PWD/empty" "$MUSTER" top
expect_contains stderr "job 99: no run of it in $PWD/muster-runs/99 (yet)" 'or with samples on this node'

# Runs of this node, with a folder and without: by their job, which is a made-up one, and by nothing.
in_job() { # JOB COMMAND..
    local job=$1
    shift
    env SLURM_JOB_ID="$job" SLURM_JOB_NODELIST="$(hostname)" SLURM_JOB_NUM_NODES=1 SLURM_TASKS_PER_NODE=2 SLURM_NTASKS=2 "$@"
}
echo 'echo "muster-metric: step $RANK"; read x <"$1"; exit 0' >rank.sh
mkfifo go
in_job 7100001 "$MUSTER" run -q -n 2 --output-dir out --sample 200ms -- bash rank.sh "$PWD/go" >/dev/null 2>&1 &
with_folder=$!
in_job 7100002 "$MUSTER" run -q -n 2 --sample 200ms -- bash rank.sh "$PWD/go" >/dev/null 2>&1 &
without=$!
shows() { "$@" >"$OUT" 2>"$ERR" && grep -q '1 .*step 1' "$OUT"; } # the samples of both ranks
wait_until 30 shows top out --once
expect_matches stdout '^job 7100001: bash rank.sh' '^2 ranks on 1 node, started '
wait_until 30 shows in_job 7100001 "$MUSTER" top --once
expect_contains stdout 'job 7100001: '
wait_until 30 shows in_job 7100002 "$MUSTER" top
expect_contains stdout 'job 7100002: '
expect_exit 0 "$MUSTER" top # the newest run may be another test's
exec 9<>go
printf 'x\nx\nx\nx\n' >&9
wait $with_folder $without
exec 9>&-
expect_exit 0 top out
expect_matches stdout '^the run ended at .* with exit code 0'

# On a terminal: keys, another size, the end by a key, by signals and with the run; the terminal is afterwards as it was.
cat >screen.py <<'PY'
import ctypes, fcntl, os, pty, re, select, shutil, signal, struct, subprocess, sys, termios, time

class screen:
    """muster top on a terminal of its own, whose other end the test keeps open to look at its modes."""

    def __init__(self, *words, in_session_of_test=False, **variables):
        self.seen = b""
        self.fd, self.terminal = pty.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(self.terminal)
        self.top = subprocess.Popen([sys.argv[1], "top", *words], env={**os.environ, "TERM": "xterm", **variables}, stdin=self.terminal,
                                    stdout=self.terminal, stderr=self.terminal, start_new_session=not in_session_of_test,
                                    preexec_fn=os.setpgrp if in_session_of_test else lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.pid = self.top.pid

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, text):
        """Waits until the text, a regular expression, has come since the last call."""
        end = time.monotonic() + 30
        while not (found := re.search(text, self.seen, re.S)):
            assert time.monotonic() < end, (text, self.seen[-800:])
            if select.select([self.fd], [], [], 0.1)[0]:
                self.seen += os.read(self.fd, 65536)
        taken, self.seen = self.seen[: found.end()], self.seen[found.end():]
        return taken

    def press(self, keys, text):
        self.seen = b""
        os.write(self.fd, keys)
        return self.wait_for(text)

    def end(self, code):
        """Waits for the end with this code; the terminal must be as it was. Returns what it has shown since."""
        rest = self.seen
        while self.top.poll() is None or select.select([self.fd], [], [], 0)[0]:
            if select.select([self.fd], [], [], 0.05)[0]:
                rest += os.read(self.fd, 65536)
        assert self.top.returncode == code, (self.top.returncode, rest[-800:])
        assert b"\x1b[?7h\x1b[?25h\x1b[?1049l" in rest, rest[-800:]
        assert termios.tcgetattr(self.terminal) == self.before
        return rest

begin = rb"\x1b\[\?1049h\x1b\[\?25l"
top = screen("run")
top.wait_for(begin)
text = top.wait_for(rb"ranks 1-4 of 4; \? shows the keys")
assert b"\x1b[7m   rank " in text and b"\x1b[1;33m!     3  node2" in text and b"loss 0.25" in text, text
now = termios.tcgetattr(top.terminal)
assert not now[3] & (termios.ICANON | termios.ECHO) and now[3] & termios.ISIG
subprocess.run([sys.executable, "samples.py", "run", "", "loss 0.11"], check=True)
top.wait_for(rb"loss 0\.11")
top.press(b"h", rb"hosts 1-2 of 2")
top.press(b"n", rb"only node1; .*ranks 1-2 of 2")
top.press(b"n", rb"only node2; ")
top.press(b"n", rb"hosts 1-2 of 2")
top.press(b"?", rb"q quit  h by host")
top.press(b"h?", rb"ranks 1-4 of 4")
top.seen = b""
top.resize(41, 8)
text = top.wait_for(rb"ranks 1-1 of 4")
text = top.press(b"\x1b[B", rb"ranks 2-2 of 4")
top.press(b"\x1b[6~", rb"ranks 3-3 of 4")
# Ctrl-Z where nobody could continue it.
top.press(b"\x1a", rb"\x1b\[\?1049l.*" + begin + rb".*ranks 3-3 of 4")
os.write(top.fd, b"q")
top.end(0)

# Stopped as by Ctrl-Z, and continued: meanwhile the shell has its terminal.
top = screen("run", in_session_of_test=True)
top.wait_for(rb"ranks 1-4 of 4")
os.kill(top.pid, signal.SIGTSTP)
assert os.WIFSTOPPED(os.waitpid(top.pid, os.WUNTRACED)[1])
assert termios.tcgetattr(top.terminal) == top.before
top.wait_for(rb"\x1b\[\?1049l")
os.kill(top.pid, signal.SIGCONT)
top.wait_for(begin + rb".*ranks 1-4 of 4")
assert not termios.tcgetattr(top.terminal)[3] & termios.ECHO
os.write(top.fd, b"q")
top.end(0)

for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
    top = screen("run", NO_COLOR="1")
    text = top.wait_for(begin) + top.wait_for(rb"shows the keys")
    assert b"\x1b[1;33m" not in text and b"!     3" in text, text
    os.kill(top.pid, number)
    top.end(code)

# A signal ends it also while a file system does not answer: fanotify holds up who opens the file.
libc = ctypes.CDLL(None)
class_content, mark_add, open_perm, at_fdcwd = 4, 1, ctypes.c_uint64(0x10000), -100
shutil.copy("run/samples.json", "run/held")
held = libc.fanotify_init(class_content, os.O_RDONLY)
if held >= 0 and libc.fanotify_mark(held, mark_add, open_perm, at_fdcwd, b"run/held") == 0:
    top = screen("run")
    top.wait_for(rb"shows the keys")
    os.rename("run/held", "run/samples.json")
    os.read(held, 4096)
    os.kill(top.pid, signal.SIGTERM)
    top.end(143)
    os.close(held)
else:
    print("not checked: a file system that does not answer, which needs root and fanotify")

# A run without samples yet, which then ends.
subprocess.run(["sh", "-c", "mkdir late; echo '{}' >late/run.json"], check=True)
top = screen("late")
top.wait_for(rb"no samples yet")
subprocess.run([sys.executable, "samples.py", "late", "", "loss 9"], check=True)
top.wait_for(rb"loss 9")
with open("late/new", "w") as file:
    file.write('{"exit": {"code": 0}}')
os.rename("late/new", "late/run.json")
assert b"the run ended with exit code 0" in top.end(0)

# --once and a terminal that cannot draw.
for words, variables in ((("run", "--once"), {}), (("run",), {"TERM": "dumb"})):
    top = screen(*words, **variables)
    text = top.wait_for(rb"50 % of the time")
    assert b"\x1b" not in text, text
    assert top.top.wait(30) == 0
PY
expect_exit 0 timeout 120 python3 screen.py "$MUSTER"
