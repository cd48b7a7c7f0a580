# What ranks on several nodes print, whoever started them: whole lines of any length, each stream by itself, and an end of the run where output is lost.
# timeout: 240
. "$(dirname "$0")/cluster_lib.sh"
start_cluster 2 0
install_muster
muster=$work/prefix/bin/muster
engines=srun
"$cluster" run mpirun --version 2>/dev/null | grep -q 'Open MPI' && engines+=' mpirun'
"$cluster" run mpiexec.hydra --version 2>/dev/null | grep -q HYDRA && engines+=' mpiexec'

# Lines of 100, 5,000 and 60,000 bytes by each rank, most of them no text, written in pieces that end anywhere; meanwhile lines on standard error, in pieces too.
cat >"$work/print.py" <<'PY'
import os
rank = int(os.environ["RANK"])
pattern = bytes(byte for byte in range(256) if byte != 10) * 240
text = b""
for i in range(1000):
    size = 60000 if i % 100 == 50 else 5000 if i % 10 == 5 else 100
    line = b"%d %d %d " % (rank, i, size)
    text += line + pattern[i % 255:][:size - len(line) - 1] + b"\n"
at, pieces = 0, 0
while at < len(text):
    at += os.write(1, text[at:at + 1 + (at * 7919 + rank * 104729) % 9000])
    pieces += 1
    if pieces % 10 == 0:
        os.write(2, b"error %d " % rank)
        os.write(2, b"%d\n" % pieces)
os.write(1, b"end")
PY
cat >"$work/check.py" <<'PY'
import sys
out, errors = open(sys.argv[1], "rb").read(), open(sys.argv[2], "rb").read()
assert out.count(b"end") == 4, out.count(b"end")
seen = [0] * 4
for line in out.replace(b"end", b"").split(b"\n")[:-1]:  # a last line without an end stands before whatever comes next
    rank, i, size = (int(word) for word in line.split(b" ", 3)[:3])
    assert len(line) + 1 == size and i == seen[rank], (rank, i, size, len(line), seen)
    seen[rank] += 1
assert seen == [1000] * 4, seen
last = [0] * 4
for line in errors.split(b"\n")[:-1]:
    word, rank, pieces = line.split(b" ")
    assert word == b"error" and int(pieces) == last[int(rank)] + 10, (line, last)
    last[int(rank)] += 10
assert min(last) > 100, last
PY

allocate -N2 --ntasks-per-node=2
run() { inside "$muster" run -q --engine "$engine" "$@"; } # ENGINE is a variable
for engine in $engines; do
    COMMAND="muster run --engine $engine"
    run -- python3 print.py >"$lib_dir/printed" 2>"$ERR"
    expect_equal $? 0 "exit code over $engine"
    python3 "$work/check.py" "$lib_dir/printed" "$ERR" || fail "lines over $engine"

    # A progress bar shows while its line is unfinished, and the others' lines stay whole.
    rm -f "$work/seen"
    run -- bash -c '[ "$RANK" = 0 ] && printf "\r 10%%" || echo "a line"; until [ -e seen ]; do sleep 0.1; done; [ "$RANK" != 0 ] || printf "\r100%%\n"' >"$lib_dir/bar" 2>"$ERR" &
    wait_until 30 grep -q 10% "$lib_dir/bar"
    touch "$work/seen"
    wait $!
    expect_equal "$(grep -c '^a line$' "$lib_dir/bar")" 3 "lines beside a progress bar over $engine"

    # A loop over a list: a note says that rank 0 gets the list, and --stdin none leaves it to the loop.
    seq 3 >"$work/list"
    expect_exit 0 inside bash -c 'while read -r item; do "$@" -- bash -c "exec >/dev/null; cat; echo $item >>items"; done <list' bash "$muster" run --engine "$engine"
    expect_contains stderr 'note: standard input goes to rank 0 as a whole' 'give --stdin none'
    expect_exit 0 inside bash -c 'while read -r item; do "$@" -- bash -c "exec >/dev/null; cat; echo $item >>all"; done <list' bash "$muster" run --engine "$engine" --stdin none
    expect_equal "$(sort "$work/all" | uniq -c | awk '{print $1 ":" $2}' | tr '\n' ' ')" '4:1 4:2 4:3 ' "items of a list over $engine"
    rm -f "$work/all" "$work/items"

    # What a hidden rank says is known, although nobody sees it.
    expect_exit 75 run --show-ranks 3 --lives-file "lives.$engine" -- bash -c '[ "$RANK" != 0 ] || printf "muster-metric: loss 1\nmuster-checkpoint: 7\n"; exit 75'
    expect_equal "$(cat "$OUT")" '' 'what hidden ranks write'
    expect_contains "$work/lives.$engine" '"measured":true,"saved_step":7'

    # Output that is lost is no success, and ends the ranks.
    run -- bash -c 'for i in {1..200}; do echo lost; sleep 0.1; done' >/dev/full 2>"$ERR"
    expect_equal $? 125 "exit code over $engine with a full disk"
    expect_contains stderr "muster: error: cannot write the ranks' output: No space left on device"
    run -- echo lost 2>"$ERR" >&-
    expect_equal $? 125 "exit code over $engine with a closed standard output"
    expect_contains stderr 'Bad file descriptor'
    (run -- bash -c 'while echo x; do sleep 0.1; done' 2>"$ERR"; echo $? >"$lib_dir/code") | head -n 1 >"$OUT"
    expect_equal "$(cat "$lib_dir/code") $(cat "$OUT")" '141 x' "exit code and output over $engine of a run whose reader left"
done
engine=srun
COMMAND='muster run --engine srun'
run -- true 2>"$ERR" >&-
expect_equal $? 0 'exit code where nothing was to be written'
run -- python3 print.py 2>"$ERR" | (sleep 0.5; cat) >"$lib_dir/printed"
python3 "$work/check.py" "$lib_dir/printed" "$ERR" || fail 'lines to a slow reader'

# A reader that does not read holds the ranks, but not against a request to end.
all_held() { [ "$("$cluster" on node1 ps -C yes -o wchan= | grep -c pipe)$("$cluster" on node2 ps -C yes -o wchan= | grep -c pipe)" = 22 ]; }
mkfifo "$work/held"
exec 8<>"$work/held"
(run --grace 30s -- yes >&8 2>"$ERR"; echo $? >"$lib_dir/code") &
PID=$!
wait_until 30 all_held || exit 1
mark
"$cluster" on head kill -TERM $("$cluster" on head pgrep -x muster) # at once: a second request would end all without delay
wait "$PID"
expect_equal "$(cat "$lib_dir/code")" 143 'exit code of a run whose output nobody reads'
TOOK_MS=$((($(date +%s%N) - marked_at) / 1000000))
expect_took 25000 'the end of a run whose output nobody reads' # far below --grace: its ranks are gone at once
exec 8>&-

# A prompt shows on a terminal before its line is complete.
mkfifo "$work/typed"
exec 8<>"$work/typed"
(cd "$work" && exec timeout 60 script -qfc "$(printf '%q ' "$cluster" run env "${salloc_env[@]}" "$muster" run -q --engine srun -- \
    bash -c '[ "$RANK" != 0 ] || { printf "name? "; read -r name; echo "hello $name"; }')" /dev/null) <&8 >"$OUT" 2>"$ERR" &
PID=$!
wait_until 30 grep -q 'name? ' "$OUT"
echo you >&8
wait "$PID"
expect_contains stdout 'hello you'
exec 8>&-
release
expect_nothing_left
