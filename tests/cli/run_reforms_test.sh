# timeout: 600
# Of 300 generations in one process nothing is left: files, threads, memory, shared memory.
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || skip "NumPy is not installed"
[ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip "the Python package is not built"
expect_exit 0 "$MUSTER" run -q -n 3 --slots-per-node 3 --min-np 2 --timeout 500s -- $python "$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_reforms.py" 300
expect_equal "$(grep -c '^rank .: generation 300,' "$OUT")" 3 "ranks that have come to the last generation"
expect_nothing_left
