# What goes wrong around the samples of a run holds no run up: a full folder, a file system that does not answer, a rank of thousands of threads, ranks whose
# processes end while they are looked at, and names that a terminal would obey.
# parts: jobs
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/leftovers.sh"
unset "${!SLURM_@}" "${!CUDA_@}"
# told FOLDER CONDITION: the condition holds for the `ranks` there, by number.
cat >told.py <<'PY'
import json, sys
try:
    run = json.load(open(sys.argv[1] + "/samples.json"))
    ranks = {one["rank"]: one for node in run["nodes"] for one in node["ranks"]}
    sys.exit(not eval(sys.argv[2]))
except (OSError, KeyError, ValueError):
    sys.exit(1)
PY
told() { python3 told.py "$@"; }

# A full folder: one note, and the run ends with its own code; the samples of before stay whole.
mkdir full
if [ -n "${MUSTER_OWN_SHM:-}" ] && mount -t tmpfs -o size=256k tmpfs full 2>"$ERR"; then
    start "$MUSTER" run -n 1 --sample 0.1s --output-dir full/run -- bash -c 'until [ -e seen ]; do sleep 0.1; done; exit 3'
    wait_until 60 told full/run '0 in ranks'
    head -c 1M /dev/zero >full/rest 2>"$lib_dir/filled"
    wait_until 60 grep -q 'note: the samples of the run are not written' "$ERR"
    expect_true told full/run '0 in ranks'
    : >seen
    expect_end 3
    expect_contains stderr 'No space left on device'
    expect_equal "$(grep -c 'the samples of the run are not written' "$ERR")" 1 notes
    umount full
else
    echo 'not checked: a full folder, which needs root and a mount namespace'
fi

# A file system that does not answer: fanotify holds up who opens a file in the folder. One note says so, and output still comes.
cat >hold.py <<'PY'
import ctypes, os, sys
libc = ctypes.CDLL(None)
class_content, mark_add, open_perm, of_children, at_fdcwd = 4, 1, 0x10000, 0x08000000, -100
held = libc.fanotify_init(class_content, os.O_RDONLY)
if held < 0 or libc.fanotify_mark(held, mark_add, ctypes.c_uint64(open_perm | of_children), at_fdcwd, sys.argv[1].encode()) != 0:
    sys.exit("cannot hold")
print("holds", flush=True)
os.read(held, 4096)
print("held", flush=True)
sys.stdin.read(1)
PY
rm -f seen
mkfifo release
start "$MUSTER" run -n 1 --sample 0.1s --output-dir stuck -- bash -c 'until [ -e seen ]; do sleep 0.1; done; echo goes on; until [ -e seen2 ]; do sleep 0.1; done; exit 4'
wait_until 60 told stuck '0 in ranks'
python3 hold.py stuck <>release >holding 2>&1 &
holder=$!
wait_until 30 grep -q 'holds\|cannot' holding
if grep -q holds holding; then
    wait_until 60 grep -q held holding
    : >seen
    wait_until 60 grep -q 'goes on' "$OUT"
    wait_until 60 grep -q "note: the samples of the run are not written: $PWD/stuck has not answered for 5 s" "$ERR"
    : >seen2
    echo >release
    wait $holder
    expect_end 4
    expect_equal "$(grep -c 'the samples of the run are not written' "$ERR")" 1 notes
    expect_true told stuck '0 in ranks'
else
    : >seen
    : >seen2
    expect_end 4
    echo 'not checked: a file system that does not answer, which needs root and fanotify'
fi

# Thousands of threads, and children that end at once.
cat >busy.py <<'PY'
import os, subprocess, sys, threading
end = threading.Event()
if os.environ["MUSTER_RANK"] == "0":
    threading.stack_size(65536)
    try:
        for i in range(4096): threading.Thread(target=end.wait, daemon=True).start()
    except RuntimeError:
        open("too-many", "w").close()
    while not os.path.exists("over"): end.wait(0.1)
    os._exit(0)
while not os.path.exists("over"): subprocess.run(["true"])
PY
start "$MUSTER" run -q -n 2 --slots-per-node 2 --sample 0.2s --output-dir busy -- python3 busy.py
is_seen() { told busy 'ranks[0]["threads"] == 4097 and ranks[1]["age_s"] > 2' || { [ -e too-many ] && echo 'not checked: 4,096 threads, which this machine does not let a process have'; }; }
wait_until 60 is_seen
first=$(python3 -c 'import json; print(json.load(open("busy/samples.json"))["nodes"][0]["at_s"])')
wait_until 60 told busy "run['nodes'][0]['at_s'] > $first" # and it looks again
: >over
expect_end 0

# Names that would move a terminal's cursor, or write its title.
hostile=$'loss\e[2J\e]0;x\a\t1 2'
start "$MUSTER" run -q -n 1 --sample 0.2s --output-dir hostile -- bash -c 'echo "muster-metric: $1"; echo "muster-metric: $1 1"; until [ -e ended ]; do sleep 0.1; done' "$hostile" "$hostile"
wait_until 60 told hostile '0 in ranks'
"$MUSTER" top hostile --once >page && "$MUSTER" top hostile --json >text || fail 'muster top'
expect_equal "$(cat page text hostile/samples.json | LC_ALL=C tr -d '\n' | LC_ALL=C grep -c '[[:cntrl:]]')" 0 'lines with control characters'
: >ended
expect_end 0
expect_exit 0 "$MUSTER" show ./hostile
expect_equal "$(LC_ALL=C tr -d '\n\t' <"$OUT" | LC_ALL=C grep -c '[[:cntrl:]]')" 0 'lines of show with control characters'
