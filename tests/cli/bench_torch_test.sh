# timeout: 300
# The comparison with PyTorch, as a test of its own so that its being skipped is seen.
. "$(dirname "$0")/lib.sh"
[ -x "$MUSTER_BIN/unit_bench" ] || skip "unit_bench was not built"
expect_exit 0 "$MUSTER_BIN/unit_bench" --gtest_filter='torch.*'
grep -q '^SKIPPED' "$ERR" && skip "$(sed -n 's/^SKIPPED: //p' "$ERR")"
expect_contains stdout "[  PASSED  ] 1 test."
