# The use of GPUs, told by a FAKE NVML on each node, in muster watch and muster show.
# parts: jobs
. "$(dirname "$0")/cluster_lib.sh"
start_cluster 2 2
install_muster
fake=$work/fake_nvml
cp -r "$MUSTER_BIN/fake_nvml" "$work/" && chmod -R a+rX "$fake" || exit 1
m() { as_user prefix/bin/muster "$@"; }
# submit OPTIONS...: a job over both nodes, whose ranks live until the file `seen` is there.
submit() {
    rm -f "$work/seen"
    m submit --site generic-slurm --time 5min --gpus 4 --gpus-per-node 2 "$@" -- bash -c 'until [ -e seen ]; do sleep 0.05; done' >"$OUT" 2>"$ERR" || fail "muster submit $*"
    job=$(sed -n 's/^job //p' "$OUT")
    [ -n "$job" ] || exit 1
}
over_fake="export LD_LIBRARY_PATH=$fake"

# Plain lines.
submit --setup "$over_fake"
start m watch "$job"
wait_until 60 grep -q 'node2: GPU 0' "$ERR"
: >"$work/seen"
expect_end 0
expect_matches stderr '^muster: node1: GPU 0 10 %, 1\.0 of 80\.0 GiB, 100 W; GPU 1 11 %, 2\.0 of 80\.0 GiB, 101 W$' \
    '^muster: node2: GPU 0 20 %, 1\.0 of 80\.0 GiB, 200 W; GPU 1 21 %, 2\.0 of 80\.0 GiB, 201 W$'
expect_exit 0 m show "$job"
expect_matches stdout '^GPU use +node1 GPU 1: mean 11 %, at most 2\.0 GiB, last 11 %, 2\.0 of 80\.0 GiB, 101 W$' '^GPU use +node2 GPU 0: mean 20 %'
expect_exit 0 m show "$job" --json
expect_true python3 -c 'import json, sys
run, = json.load(open(sys.argv[1]))["runs"]
assert [[g["busy_percent"] for g in n["gpus"]] for n in run["samples"]["nodes"]] == [[10, 11], [20, 21]], run' "$OUT"

# On a terminal: below the status, and replaced with it.
cat >"$work/terminal.py" <<'PY'
import os, pty, select, sys, time

pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen, until = b"", time.monotonic() + 60
try:
    while data := os.read(fd, 4096) if select.select([fd], [], [], max(0, until - time.monotonic()))[0] else b"":
        seen += data
        if b"\nnode1: GPU 0 10 %" in seen and b"\nnode2: GPU 0 20 %" in seen:
            open("seen", "w").close()
except OSError:
    pass  # the terminal ends with its last process
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.buffer.write(seen)
assert b"\r\x1b[K\x1b[A\r\x1b[K" in seen, seen
sys.exit(code)
PY
submit --setup "$over_fake"
expect_exit 0 as_user python3 terminal.py "$work/prefix/bin/muster" watch "$job"

# Where no node has NVML nothing is told of GPUs.
submit
start m watch "$job"
wait_until 60 grep -q 'RUNNING' "$ERR"
: >"$work/seen"
expect_end 0
expect_not_contains stderr GPU
expect_true test -e "$work/muster-runs/$job/run.json"
