# A script written for torchrun comes up as it stands.
# timeout: 400
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
python=/usr/bin/python3
$python -c 'import torch.distributed as d; assert d.is_available()' 2>/dev/null || skip "no python3-torch"
for n in 1 2 4; do
    expect_exit 0 "$MUSTER" run -q -n $n --timeout 60s -- $python "$MUSTER_SOURCE_DIR/tests/cli/programs/train_ddp.py"
    expect_equal "$(sort "$OUT")" "$(for ((r = 0; r < n; r++)); do echo "rank $r of $n, local rank $r on $(hostname)"; done)" "the ranks"
done

# DistributedDataParallel goes on without a lost rank: in place, by muster.distributed.reform. An object of the former world takes no step.
if [ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ]; then
    # A collective that times out is told by each rank that waits for it, as its exception, and in the log at most by the one that does not: not by all in both.
    cat >late.py <<'PY'
import os, time, torch, muster.torch as hvd
open("imported." + os.environ["RANK"], "w").close()
while not all(os.path.exists(f"imported.{rank}") for rank in range(3)):  # else the deadline may end init()
    time.sleep(0.01)
hvd.init()
if hvd.rank() == 1:
    time.sleep(100)
hvd.allreduce(torch.ones(10), name="grad")
PY
    expect_exit 1 env MUSTER_COMM_DEADLINE=5s "$MUSTER" run -n 3 --slots-per-node 4 --timeout 60s -- $python late.py
    expect_true test "$(grep -c '\[error\] exchange: allreduce of "allreduce.grad"' "$ERR")" -le 1
    expect_matches stderr '^muster.errors.CollectiveError: allreduce of "allreduce.grad".* timed out'
    reforms=("$MUSTER" run -q -n 3 --slots-per-node 4 --min-np 2 --timeout 100s)
    expect_exit 0 "${reforms[@]}" -- $python "$MUSTER_SOURCE_DIR/tests/cli/programs/ddp_steps.py" reform 0
    expect_survivors 2 6 1 2
    expect_equal "$(grep -c '^refused: .*an earlier generation.* make it anew: model = DistributedDataParallel(model.module)' "$OUT")" 2 refusals
    # A rank is lost while another makes a group with it.
    expect_exit 0 "${reforms[@]}" -- $python "$MUSTER_SOURCE_DIR/tests/cli/programs/lost_in_new_group.py"
    expect_survivors 2 2 0 1
    # Under elastic.run, and with a rank that is started in place of the lost one, then or before.
    for warm in "" --warm-spares; do
        expect_exit 0 env UNTIL=3 "${reforms[@]}" --spares 1 $warm -- $python "$MUSTER_SOURCE_DIR/tests/cli/programs/ddp_steps.py" run 0
        expect_equal "$(sed -n 's/^member [123] ends: rank [012] of 3, total //p' "$OUT" | uniq -c | awk '{print $1}')" 3 'ranks that have ended after the same step'
    done
    # The example, where a rank is lost behind the last batch of an epoch: the others find none left in it.
    last='import os, runpy, signal, sys, time
if os.environ["RANK"] == "1": time.sleep = lambda _: os.kill(os.getpid(), signal.SIGKILL)
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")'
    expect_exit 0 "${reforms[@]}" -- $python -c "$last" "$MUSTER_SOURCE_DIR/examples/elastic.py" --samples 48 --batch-size 16
    expect_equal "$(grep -c '^rank [01] of 2: 3 steps' "$OUT")" 2 'ranks that have ended well'
    expect_nothing_left
fi

# The starter that trains over several jobs: one signal, the code 75, and the next run goes on from there.
has_part jobs || exit 0
expect_exit 0 "$MUSTER" init .
"$MUSTER" run -q -n 1 -- $python -c 'import muster.checkpoint' 2>/dev/null || skip 'no package muster'
sed 's/step < 300/step < 100000/' resume.py >long.py
"$MUSTER" run -q -n 2 --timeout 60s -- $python long.py >first 2>"$ERR" &
PID=$!
wait_until 50 grep -q 'rank 1 begins at step 0' first
kill -USR1 $PID
wait $PID
expect_equal $? 75 'exit code of a run that saved'
expect_exit 0 "$MUSTER" run -q -n 2 --timeout 60s -- $python resume.py
expect_contains stdout 'steps are done'
expect_matches stdout 'rank 0 begins at step [1-9]'
