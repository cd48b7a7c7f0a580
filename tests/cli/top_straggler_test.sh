# A rank that keeps the others waiting is named within seconds; by which collectives it waits makes no difference. In a healthy run nobody is.
# parts: jobs
# timeout: 300
. "$(dirname "$0")/lib.sh"
unset "${!SLURM_@}"
programs=$MUSTER_SOURCE_DIR/tests/cli/programs

# watch_for RANK PROGRAM..: runs 4 ranks of a program that goes on until `end` is there, and waits until muster top marks the rank; -1: looks six times, and nobody
# may be marked for waits.
watch_for() {
    local late=$1 run marked='' i
    shift
    rm -rf end run
    "$MUSTER" run -q -n 4 --sample 500ms --timeout 2min --output-dir run -- "$@" end >run.log 2>&1 &
    run=$!
    for i in $(seq 1 300); do
        read -r -t 0.2 <>"$pipe" || true
        "$MUSTER" top run --json >top.json 2>top.err || continue
        marked=$(/usr/bin/python3 "$programs/awaited_rank.py" top.json) || continue
        if [ "$late" = -1 ]; then [ "$i" -ge 30 ] && break; elif [ -n "$marked" ]; then break; fi
    done
    : >end
    wait $run || fail "$*: exit code $?: $(cat run.log)"
    [ "$marked" = "${late#-1}" ] || fail "$*: rank '$marked' is marked, not '${late#-1}': $(cat top.json top.err)"
}
pipe=$PWD/pipe
mkfifo "$pipe"

for way in comm exchange; do
    for backend in shm tcp; do
        export MUSTER_COMM_BACKEND=$backend
        watch_for 2 "$MUSTER_BIN/straggler" $way 2 40
    done
    unset MUSTER_COMM_BACKEND
    watch_for -1 "$MUSTER_BIN/straggler" $way -1 0
done
if [ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] && /usr/bin/python3 -c 'import torch' 2>"$ERR"; then
    for way in hvd ddp; do watch_for 1 /usr/bin/python3 "$programs/straggler.py" $way 1 100; done
fi
