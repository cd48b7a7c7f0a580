# The descriptors of ranks: those that the caller of muster passed on, and none of muster's own.
. "$(dirname "$0")/lib.sh"

# Rank 2 is started while the pipes of two ranks are open.
echo passed on >given
cat >look.sh <<'SH'
cat /proc/self/fd/7 >"read.$1"
ls /proc/self/fd >"open.$1"
SH
sh look.sh alone 7<given
expect_exit 0 "$MUSTER" run -q -n 3 -- sh -c 'exec sh look.sh $MUSTER_RANK' 7<given
for rank in 0 1 2; do
  expect_equal "$(cat read.$rank)" 'passed on' "what rank $rank read from the caller's descriptor 7"
  expect_equal "$(cat open.$rank)" "$(cat open.alone)" "the descriptors of rank $rank"
done

# As a shell's <(command), at a high number.
expect_exit 0 "$MUSTER" run -q -n 2 -- sh -c 'cat /proc/self/fd/200' 200<given
expect_equal "$(grep -c 'passed on' "$OUT")" 2 'what was read from descriptor 200'

# Many ranks on their way at once, on busy processors: they share muster's memory until they run their program, and must not wait for each other there.
busy=()
for _ in $(seq $((2 * $(nproc)))); do (while :; do :; done) & busy+=($!); done
for _ in $(seq 40); do
    timeout 20 "$MUSTER" run -q -n 16 --slots-per-node 16 -- true || { fail '16 ranks of true did not start and end'; break; }
done
kill "${busy[@]}"

# One that cannot be started: no rank stays, and the fault is told once.
printf '#!/no/such/interpreter\n' >broken
chmod +x broken
expect_exit 127 "$MUSTER" run -q -n 5 -- ./broken
expect_equal "$(grep -c 'no/such/interpreter' "$ERR")" 1 'how often the fault is told'
