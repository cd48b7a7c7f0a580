# A script written for torchrun comes up as it stands.
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
$python -c 'import torch.distributed as d; assert d.is_available()' 2>/dev/null || skip "no python3-torch"
for n in 1 2 4; do
    expect_exit 0 "$MUSTER" run -q -n $n --timeout 60s -- $python "$MUSTER_SOURCE_DIR/tests/cli/programs/train_ddp.py"
    expect_equal "$(sort "$OUT")" "$(for ((r = 0; r < n; r++)); do echo "rank $r of $n, local rank $r on $(hostname)"; done)" "the ranks"
done
