# timeout: 240
# tests/speed/recover.py: a rank of a small training is killed, and each phase of what the others do has a time.
# parts: bench
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
$python -c 'import torch' 2>/dev/null || skip "PyTorch is not installed"
[ -e "$MUSTER_BIN/../python/_muster_native.abi3.so" ] || skip "the Python package is not built"
recover() { expect_exit "$1" "$python" -B "$MUSTER_SOURCE_DIR/tests/speed/recover.py" --muster "$MUSTER" --python $python "${@:2}"; }

recover 0 --ranks 3 --repeats 1 --ways in-place,warm-spare,spare
expect_matches stdout '^in place, muster +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +- ' '^in place, with a (warm )?spare, muster( +[0-9]+){6} '
expect_equal "$(grep -c '^in place, with a ' "$OUT")" 2 "ways with a spare"

recover 2 --ways sideways
expect_contains stderr "'sideways' is unknown; give some of in-place, warm-spare, spare, restart, torchrun"
recover 2 --ranks 2
expect_contains stderr "--ranks: 2 is less than 3"
printf '#!/bin/sh\nexit 1\n' >no-torch
chmod +x no-torch
recover 1 --python ./no-torch
expect_contains stderr "./no-torch has no torch; name one that has"
recover 1 --python ./nowhere
expect_contains stderr "./nowhere cannot be started: No such file or directory"
recover 1 --peer-python ./no-torch --ways torchrun
expect_contains stderr "torchrun is left out: ./no-torch has no torch"

# A run that takes too long is ended with what it has started, and counts as failed.
mkfifo held
cat >slow <<'END'
#!/bin/sh
[ "$1" != -c ] || exec echo 2.0
sleep 100 >held &
wait
END
chmod +x slow
timeout 60 cat held & # ends with the last that holds it
recover 0 --peer-python ./slow --ways torchrun --repeats 1 --limit 1
expect_contains stdout "torchrun 2.0, restart: 1 of 1 runs failed; the first: not done after 1 s"
wait $! || fail "what the run had started was left"
