# timeout: 400
# --keep-state node: ranks that are started again go on from what each had committed, in memory; without it they begin anew.
# parts: keep
. "$(dirname "$0")/lib.sh"
. "$MUSTER_SOURCE_DIR/tests/cli/leftovers.sh"
python=/usr/bin/python3
$python -c 'import torch' 2>/dev/null || skip "PyTorch is not installed"
[ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip "the Python package is not built"
program="$MUSTER_SOURCE_DIR/tests/cli/programs/elastic_kept.py"
run=("$MUSTER" run -n 3 --slots-per-node 3 --timeout 100s -q)

expect_exit 0 "${run[@]}" --max-restarts 1 -- $python "$program"
weights=$(sed -n 's/.*, weights //p' "$OUT" | sort -u)
expect_equal "$(grep -c ' ends with ' "$OUT")" 3 'ranks that have ended well'

# A rank is killed: the others may not have committed its last step yet, but all go on from the same one, each with its own part.
expect_exit 0 env FAULT=2:4 "${run[@]}" --max-restarts 1 --keep-state node -- $python "$program"
expect_equal "$(grep -c ' begins at step 0 ' "$OUT")" 3 'ranks that have begun anew'
step=$(sed -n 's/^rank 0 begins at step \([34]\) .*/\1/p' "$OUT")
for rank in 0 1 2; do
    expect_contains stdout "rank $rank begins at step $step with $((step * rank))" "rank $rank ends with $((6 * rank)), weights $weights"
done
expect_nothing_left

expect_exit 0 env FAULT=2:4 "${run[@]}" --max-restarts 1 -- $python "$program"
expect_equal "$(grep -c ' begins at step 0 ' "$OUT")" 6 'ranks that have begun anew'

# In place each goes back to its own commit, and gets rank 0's.
expect_exit 0 env FAULT=0:4 "${run[@]}" --min-np 2 --keep-state node -- $python "$program"
expect_equal "$(grep -c ' ends with ' "$OUT")" 2 'ranks that have ended well'
expect_matches stdout '^rank 0 begins at step [34] ' "^rank 1 ends with [0-9]+, weights $weights\$"

# A restart goes on from what those had that went on in place; the lost one's part has stayed behind.
expect_exit 0 env FAULT='1:1 0:4:1' "${run[@]}" --min-np 2 --max-restarts 1 --keep-state node -- $python "$program"
expect_equal "$(grep -c ' begins at step 0 ' "$OUT")" 3 'ranks that have begun anew'
for rank in 0 1 2; do expect_matches stdout "^rank $rank begins at step [34] " "^rank $rank ends with [0-9]+, weights $weights\$"; done
# What a lost rank had kept of a step that the others have not is none of theirs: a restart goes on from the one before, as they had it in place, where all got rank 0's.
expect_exit 0 env AHEAD=2:3 FAULT=0:2:1 "${run[@]}" --min-np 2 --max-restarts 1 --keep-state node -- $python "$program"
for rank in 0 1 2; do expect_contains stdout "rank $rank begins at step 2 with 0" "rank $rank ends with $((4 * rank)), weights $weights"; done
# A spare that has taken the lost rank's place has what was committed, and keeps what is committed from then on.
rm -f gate
start env GATE="$PWD/gate" FAULT='1:2 0:4:1' "$MUSTER" run --verbose -n 3 --slots-per-node 4 --timeout 100s --min-np 3 --max-restarts 1 --spares 1 --warm-spares --keep-state node -- $python "$program"
wait_until 60 grep -q 'spare 0 on .* waits for the place of a lost rank' "$ERR" && touch gate
expect_end 0
expect_contains stderr 'spare 0 is rank 2'
expect_equal "$(grep -c ' begins at step 0 ' "$OUT")" 3 'ranks that have begun anew'
for rank in 0 1 2; do
    expect_matches stdout "^rank $rank begins at step [12] " "^rank $rank begins at step [34] " "^rank $rank ends with [0-9]+, weights $weights\$"
done
expect_nothing_left
# All that began are gone in the end: a restart goes on from what the spares have.
rm -f gate
start env GATE="$PWD/gate" FAULT='1:1 0:2:1 1:4:2' "$MUSTER" run --verbose -n 2 --slots-per-node 4 --timeout 100s --min-np 2 --max-restarts 1 --spares 2 --warm-spares --keep-state node -- $python "$program"
for spare in 0 1; do wait_until 60 grep -q "spare $spare on .* waits for the place of a lost rank" "$ERR"; done
touch gate
expect_end 0
for rank in 0 1; do expect_matches stdout "^rank $rank begins at step [34] " "^rank $rank ends with [0-9]+, weights "; done
expect_nothing_left

# A run within the run has no part of its memory.
inner="exec $MUSTER run -n 1 -- sh -c '[ -z \"\$MUSTER_KEPT_STATE\" ]'"
expect_exit 0 "$MUSTER" run -n 1 --max-restarts 1 --keep-state node -- sh -c "[ -n \"\$MUSTER_KEPT_STATE\" ] && $inner"

expect_exit 125 "$MUSTER" run -H node7.invalid:1 --max-restarts 1 --keep-state node -- true
expect_contains stderr "--keep-state: the ranks' only node, node7.invalid, is not that of muster run" 'run muster there, or leave the option out'
expect_exit 2 "$MUSTER" run -n 1 --keep-state node -- true
expect_contains stderr "--keep-state is for runs that go on after a failure: give --max-restarts N or --min-np N as well"
expect_exit 2 "$MUSTER" run -n 1 --max-restarts 1 --keep-state disk -- true
expect_contains stderr "node"
