# timeout: 240
# muster-bench-dev recover: a rank of a small training is killed, and each phase of what the others do has a time.
# parts: bench
. "$(dirname "$0")/lib.sh"
bench=$MUSTER_BIN/muster-bench-dev
[ -x "$bench" ] || skip "muster-bench-dev was not built (no MPI or no parallel HDF5)"
python=/usr/bin/python3
$python -c 'import torch' 2>/dev/null || skip "PyTorch is not installed"
[ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip "the Python package is not built"

expect_exit 0 "$bench" recover --ranks 3 --repeats 1 --ways in-place,warm-spare,spare --python $python
expect_matches stdout '^in place, muster [^ ]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +- ' '^in place, with a (warm )?spare, muster [^ ]+( +[0-9]+){6} '
expect_equal "$(grep -c '^in place, with a ' "$OUT")" 2 "ways with a spare"

expect_exit 2 "$bench" recover --ways sideways --python $python
expect_contains stderr "'sideways' is unknown; give some of in-place, warm-spare, spare, restart, torchrun"
expect_exit 2 "$bench" recover --ranks 2
expect_contains stderr "--ranks: '2' is no whole number from 3"
printf '#!/bin/sh\nexit 1\n' >no-torch
chmod +x no-torch
expect_exit 125 "$bench" recover --python ./no-torch
expect_contains stderr "./no-torch has no PyTorch; name one that has"
