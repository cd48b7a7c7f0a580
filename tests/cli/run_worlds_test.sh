# serial
# timeout: 600
# Programs of every MPI come up with the right world at every size, without muster being told which MPI it is.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
programs=$MUSTER_SOURCE_DIR/tests/mpi/programs
debian_python=/usr/bin/python3

# world N COMMAND...: N ranks say who they are.
world() {
    local n=$1
    shift
    expect_exit 0 "$MUSTER" run -q -n "$n" --timeout 240s -- "$@"
    expect_equal "$(grep -E '^rank [0-9]+ of [0-9]+' "$OUT" | cut -d' ' -f2-4 | sort -n | tr '\n' ' ')" \
        "$(for ((r = 0; r < n; r++)); do printf '%d of %d ' "$r" "$n"; done)" "the ranks of $* at $n"
}

for n in 1 2 8 32 128; do
    [ -x "$MUSTER_BIN/pmix_probe" ] && world $n "$MUSTER_BIN/pmix_probe" exchange
    [ -x "$MUSTER_BIN/hello_openmpi" ] && world $n "$MUSTER_BIN/hello_openmpi"
    [ -x "$MUSTER_BIN/hello_mpich" ] && world $n "$MUSTER_BIN/hello_mpich"
    [ $n = 128 ] && continue # mpi4py's world is Open MPI's
    if $debian_python -c 'import mpi4py' 2>/dev/null; then world $n $debian_python "$programs/hello_mpi4py.py"; else echo "mpi4py: not here"; fi
done

# On a busy machine a rank waits for a core between its connection to the PMI port and its first words: it is not taken for a stranger. What would come before
# them is the end of the connection.
cat >late.py <<'PYTHON'
import os, select, socket

host, port = os.environ["PMI_PORT"].split(":")
server = socket.create_connection((host, int(port)))
print("hears before it speaks:", bool(select.select([server], [], [], 12)[0]), flush=True)
server.sendall(f"cmd=initack pmiid={os.environ['PMI_ID']}\n".encode())
print("is answered:", server.makefile().readline().strip(), flush=True)
PYTHON
expect_exit 0 "$MUSTER" run -q -n 2 --allow-singletons --timeout 60s -- $debian_python late.py
expect_equal "$(sort -u "$OUT")" $'hears before it speaks: False\nis answered: cmd=initack' 'what a late rank prints'

# expect_alone COMMAND...: nobody meets, which muster sees only while the programs live: when they speak.
expect_alone() {
    rm -f go
    start env HELLO_MPI_STAYS="$PWD/go" "$MUSTER" run -q -n 2 --timeout 60s -- "$@"
    wait_until 50 eval '[ "$(grep -c "^rank 0 of 1" "$OUT")" = 2 ]'
    touch go
    expect_end 125
}

# A rank that loads MPI but never meets its world is an error, not a world of size 1. Without its variables a program takes itself for the only one.
if [ -x "$MUSTER_BIN/hello_mpich" ]; then
    alone='for v in $(env | grep -oE "^(PMIX|PMI|OMPI|JSM)[A-Z0-9_a-z]*"); do unset "$v"; done; exec "$0"'
    expect_alone sh -c "$alone" "$MUSTER_BIN/hello_mpich"
    expect_exit 125 "$MUSTER" run -q -n 2 --timeout 60s -- sh -c "[ \$RANK = 0 ] && exec \"\$0\"; $alone" "$MUSTER_BIN/hello_mpich"
    expect_contains stderr "rank 1 on " "came up as a singleton"
    expect_alone env -u PMI_PORT -u PMI_ID -u PMI_FD "$MUSTER_BIN/hello_mpich"
    expect_exit 0 "$MUSTER" run -q -n 2 --allow-singletons -- sh -c "$alone" "$MUSTER_BIN/hello_mpich"
    expect_equal "$(grep -c '^rank 0 of 1' "$OUT")" 2 "singletons"
    [ ! -x "$MUSTER_BIN/hello_openmpi" ] || expect_alone sh -c "$alone" "$MUSTER_BIN/hello_openmpi"
fi

# A rank that has MPI and never initialises it is none: a program that ends with its first words, Python that only loads the library.
for hello in "$MUSTER_BIN"/hello_openmpi "$MUSTER_BIN"/hello_mpich; do
    [ ! -x "$hello" ] || expect_exit 0 "$MUSTER" run -q -n 2 --timeout 60s -- "$hello" --version
    [ ! -x "$hello" ] || expect_exit 0 "$MUSTER" run -q -n 2 --timeout 60s -- "$hello" --wait
done
[ ! -x "$MUSTER_BIN/muster-bench" ] || expect_exit 0 "$MUSTER" run -q -n 2 --timeout 60s -- "$MUSTER_BIN/muster-bench" collectives --help
if $debian_python -c 'import mpi4py' 2>/dev/null; then
    expect_exit 0 "$MUSTER" run -q -n 2 --timeout 60s -- $debian_python -c 'import time, mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print("loaded"); time.sleep(0.6)'
fi
