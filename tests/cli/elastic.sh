# Sourced after lib.sh by the tests of elastic runs on one node: the program that steps, and the command that runs it.
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || skip "NumPy is not installed"
[ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip "the Python package is not built"
steps="$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_steps.py"
host=$(hostname)
run=("$MUSTER" run -n 4 --slots-per-node 4 --timeout 100s --min-np 2)
