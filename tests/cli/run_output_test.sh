# Output comes whole, in lines, and can be tagged and kept; input goes to rank 0.
. "$(dirname "$0")/lib.sh"

# 1 MiB of random bytes from each of 16 ranks, as bytes with line ends where chance puts them, and each line knows whose it is.
cat >noise.py <<'PY'
import os, sys
rank = int(os.environ["RANK"])
data = os.urandom(1 << 20)
tag = b"%02d:" % rank
lines = b"".join(tag + line + b"\n" for line in data.split(b"\n"))
with open("sent.%d" % rank, "wb") as f:
    f.write(lines)
out = sys.stdout.buffer
at = 0
while at < len(lines):  # in pieces of odd sizes, so that writes end in the middle of lines
    n = 1 + (at * 7919 + rank * 104729) % 9000
    out.write(lines[at:at + n])
    out.flush()
    at += n
PY
cat >check.py <<'PY'
import sys
got = {r: [] for r in range(16)}
for line in open("all", "rb").read().split(b"\n")[:-1]:
    assert line[2:3] == b":", line[:20]
    got[int(line[:2])].append(line + b"\n")
for r in range(16):
    assert b"".join(got[r]) == open("sent.%d" % r, "rb").read(), r
PY
"$MUSTER" run -q -n 16 -- /usr/bin/env python3 noise.py >all 2>"$ERR"
expect_equal $? 0 "exit code"
expect_true python3 check.py
"$MUSTER" run -q -n 16 -- /usr/bin/env python3 noise.py 2>"$ERR" | (sleep 0.3; cat) >all  # a slow reader loses nothing
expect_true python3 check.py

expect_exit 0 "$MUSTER" run -q -n 2 --tag-output --timestamp-output -- sh -c 'echo out; echo err >&2; printf unfinished'
expect_matches stdout '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3} \[[^ ]+:0\] out$' '\[[^ ]+:1\] unfinished$'
expect_matches stderr '\[[^ ]+:1\] err$'

# A progress bar shows while it grows, in a file too, and the line of another rank is whole.
bar='if [ $RANK = 0 ]; then printf "\r 10%%" >&2; else echo "a line" >&2; fi; until [ -e seen ]; do sleep 0.05; done; [ $RANK != 0 ] || printf "\r100%%\n" >&2'
"$MUSTER" run -q -n 2 -- sh -c "$bar" 2>log &
wait_until 20 grep -q '10%' log
touch seen
wait $!
expect_equal "$(grep -c '^a line$' log)" 1 'whole lines of a rank beside a progress bar'
expect_contains log '100%'

expect_exit 0 "$MUSTER" run -q -n 12 --output-dir kept -- sh -c 'echo "out $RANK"; echo "err $RANK" >&2'
expect_equal "$(cat kept/rank.07/stdout kept/rank.11/stderr)" "out 7
err 11"
expect_equal "$(wc -l <"$OUT")" 12 "lines on stdout"

# Input is rank 0's; the others see its end. What is not read stays for whoever reads next.
printf 'one\ntwo\n' >input
expect_equal "$("$MUSTER" run -q -n 3 -- sh -c 'echo "$RANK:$(cat)"' <input | sort | tr '\n' ' ')" "0:one 1: 2: two "
expect_equal "$( ("$MUSTER" run -q -n 2 -- true; cat) <input | tr '\n' ' ')" "one two "

# --stdin none leaves it to the loop that the run is in; mpirun's and srun's words for it.
for words in '--stdin none' '-stdin none' '--input=none'; do
    expect_equal "$(while read -r word; do "$MUSTER" run -q -n 2 $words -- sh -c 'echo "$(cat)$1"' sh "$word"; done <input | sort | tr '\n' ' ')" 'one one two two ' "loop with $words"
done
expect_equal "$("$MUSTER" run -q -n 1 --stdin 0 -- cat <input | tr '\n' ' ')" 'one two ' "mpirun's --stdin 0"

# A reader that goes away ends the writers, as in any pipeline.
"$MUSTER" run -q -n 2 -- sh -c 'yes' 2>"$ERR" | head -n 1 >"$OUT"
expect_contains stdout y
# It does not end the launcher, which still tells how the ranks ended.
"$MUSTER" run -q -n 1 -- sh -c 'trap "" PIPE; while echo y; do :; done 2>&-; exit 3' 2>"$ERR" | head -n 1 >"$OUT"
expect_equal "${PIPESTATUS[0]}" 3 'exit code with a reader that went away'

# Output that is lost is no success: standard output is closed, or a disk is full.
"$MUSTER" run -q -n 2 -- echo lost 2>"$ERR" >&-
expect_equal $? 125 "exit code with a closed standard output"
expect_contains stderr 'Bad file descriptor'
"$MUSTER" run -q -n 2 -- true 2>"$ERR" >&-
expect_equal $? 0 "exit code where nothing was to be written"
for command in 'plan -n 1' '--version' 'run --dry-run -- true'; do
    "$MUSTER" $command 2>"$ERR" >&-
    expect_equal $? 125 "exit code of muster $command with a closed standard output"
    "$MUSTER" $command 2>"$ERR" >/dev/full
    expect_equal $? 125 "exit code of muster $command with a full disk"
    expect_contains stderr 'cannot write to standard output'
done
"$MUSTER" run -q -n 2 -- sh -c 'echo told >&2' >"$OUT" 2>&-
expect_equal $? 0 "exit code with a closed standard error"
"$MUSTER" run -q -n 2 -- echo lost >/dev/full 2>"$ERR"
expect_equal $? 125 "exit code with a full disk"
expect_contains stderr "No space left on device"

# A limit of file sizes is told with the file; the run goes on, and its record says how it ended. The ranks have their own default: they end of it.
expect_exit 125 bash -c 'ulimit -f 100; exec "$0" run -q -n 2 --output-dir small -- bash -c "head -c 300000 /dev/zero; echo end" >/dev/null' "$MUSTER"
expect_contains stderr 'the output of rank 0 on ' 'small/rank.00/stdout: File too large; the rest is only passed on: raise the limit of file sizes (ulimit -f)'
expect_contains small/run.json '"code": 125'
expect_exit 125 bash -c 'ulimit -f 100; exec "$0" run -q -n 2 -- bash -c "head -c 300000 /dev/zero" >all' "$MUSTER"
expect_contains stderr 'File too large'
expect_exit 125 bash -c 'ulimit -f 1; exec "$0" run -q -n 2 --output-dir none -x "LONG=$(printf %5000d 1)" -- true' "$MUSTER"
expect_contains stderr 'none/environment: File too large' 'ulimit -f'
expect_exit 153 "$MUSTER" run -q -n 2 -- bash -c 'ulimit -f 1; exec head -c 300000 /dev/zero >"own.$RANK"'
expect_contains stderr 'signal 25 (SIGXFSZ)' 'ulimit -f'

# A small stack is main()'s, not that of every thread.
for program in "$MUSTER_BIN/comm_sums" "$MUSTER_BIN/hello_openmpi"; do
    [ -x "$program" ] || continue
    expect_exit 0 bash -c 'ulimit -Ss 128; exec "$@"' bash "$MUSTER" run -q -n 2 -- bash -c 'ulimit -Ss 8192; exec "$0"' "$program"
done

# Long names of hosts, without a digit that would divide them for libpmix.
if unshare -u true 2>/dev/null && [ -x "$MUSTER_BIN/hello_openmpi" ]; then
    for length in 50 57 64; do
        expect_exit 0 unshare -u bash -c 'hostname "$(printf "%*s" "$0" "" | tr " " h)" && exec "$@"' $length "$MUSTER" run -q -n 2 -- "$MUSTER_BIN/hello_openmpi"
    done
else
    echo "not checked: long host names, which need root and Open MPI"
fi

# A full /dev/shm, of which MPI's own words say nothing.
if unshare -m mount -t tmpfs none /dev/shm 2>/dev/null; then
    expect_exit 3 unshare -m sh -c 'mount -t tmpfs -o size=4m none /dev/shm && exec "$@"' sh "$MUSTER" run -q -n 2 -- sh -c 'head -c 3000000 /dev/zero >/dev/shm/x.$RANK; exit 3'
    expect_contains stderr '/dev/shm is full there'
fi

# A user without an entry in passwd, as in many containers: Open MPI asks for HOME then.
nobody=(setpriv --reuid=54321 --regid=54321 --clear-groups)
if (cd / && "${nobody[@]}" test -x "$MUSTER") 2>/dev/null && ! getent passwd 54321 >/dev/null; then
    expect_exit 0 env -C / -u HOME "${nobody[@]}" "$MUSTER" run -n 1 -- true
    expect_contains stderr 'HOME is not set, and user 54321 has no entry in passwd: it is / for this run'
    expect_exit 0 env -C / -u HOME "${nobody[@]}" "$MUSTER" run -q -n 2 -- sh -c 'echo "HOME is $HOME"'
    expect_equal "$(sort -u "$OUT")" 'HOME is /' 'the ranks'"'"' HOME'
    if [ -x "$MUSTER_BIN/hello_openmpi" ] && (cd / && "${nobody[@]}" test -x "$MUSTER_BIN/hello_openmpi"); then
        expect_exit 0 env -C / -u HOME "${nobody[@]}" "$MUSTER" run -q -n 2 -- "$MUSTER_BIN/hello_openmpi"
    fi
    expect_exit 0 env -C / HOME=/tmp "${nobody[@]}" "$MUSTER" run -n 1 -- true
    expect_not_contains stderr passwd
    # The HOME of somebody else, as sudo -E leaves it: its settings are not to be had, and are not needed.
    mkdir -m 700 closed
    expect_exit 0 env -C / -u XDG_CONFIG_HOME HOME="$PWD/closed" "${nobody[@]}" "$MUSTER" run -n 1 -- echo ran
    expect_contains stdout ran
    expect_contains stderr "no settings of your own are read: user 54321 may not enter $PWD/closed/.config/muster; set HOME to a folder of your own"
fi

# Neither /dev/shm nor /tmp can be written, as below a read-only root: TMPDIR.
if unshare -m mount -t tmpfs none /mnt 2>/dev/null; then
    expect_exit 0 unshare -m sh -c 'mount -t tmpfs none /mnt && mount -t tmpfs -o ro none /dev/shm && mount -t tmpfs -o ro none /tmp && exec "$@"' sh \
        env TMPDIR=/mnt "$MUSTER" run -q -n 2 -- sh -c 'ls -d /mnt/muster-*'
    expect_equal "$(grep -c '^/mnt/muster-' "$OUT")" 2 'ranks that found the run'"'"'s folder below TMPDIR'
    expect_exit 125 unshare -m sh -c 'mount -t tmpfs -o ro none /dev/shm && mount -t tmpfs -o ro none /tmp && exec "$@"' sh \
        env -u TMPDIR "$MUSTER" run -q -n 2 -- true
    expect_contains stderr 'in /dev/shm and in /tmp' 'set TMPDIR'
fi

# A hang command that prints without end is ended, and what it printed first is shown.
expect_exit 124 "$MUSTER" run -q -n 1 --timeout 1s --on-hang 'echo first; exec yes' -- sleep 100
expect_contains stderr first '--on-hang: ended after the first 64 KiB'

expect_exit 0 "$MUSTER" run -q -n 2 -x COLOUR=red -x HOME --wd / -- sh -c 'echo "$COLOUR $PWD $HOME"'
expect_contains stdout "red / $HOME"
expect_exit 2 "$MUSTER" run -q -x NO_SUCH_VARIABLE -- true
expect_exit 0 "$MUSTER" run --help
expect_contains stdout "muster run -- python3 train.py"

# The phases of a start, in order.
expect_exit 0 env MUSTER_LOG=trace "$MUSTER" run -q -n 2 -- true
expect_equal "$(sed -n 's/.*phase.* ms  \([a-zA-Z].*\)/\1/p' "$ERR" | grep -c -x -e 'libraries loaded' -e 'ports held, PMIx waits for a caller' -e 'PMIx library started, ports held' -e 'ranks started' -e 'ranks ended')" 4 'phases'
expect_equal "$(sed -n 's/.*phase *\([0-9.]*\) ms .*/\1/p' "$ERR" | sort -n -c 2>&1)" '' 'the order of the phases'

# The output of some ranks alone; the files keep all. torchrun's option of that is told muster's.
expect_exit 0 "$MUSTER" run -q -n 3 --show-ranks 1 --output-dir shown -- sh -c 'echo "rank $RANK"; echo "err $RANK" >&2'
expect_equal "$(cat "$OUT" "$ERR")" $'rank 1\nerr 1' 'what rank 1 alone writes'
expect_equal "$(cat shown/rank.*/stdout | sort | paste -sd';')" 'rank 0;rank 1;rank 2' 'what the files keep'
expect_exit 0 "$MUSTER" run -q -n 3 --show-ranks 0,2 -- sh -c 'echo "rank $RANK"'
expect_equal "$(sort "$OUT" | paste -sd';')" 'rank 0;rank 2' 'what ranks 0 and 2 write'
expect_exit 0 "$MUSTER" run -q -n 2 --show-ranks 1 --max-restarts 1 --output-dir marks -- sh -c '[ $RANK = 1 ] || printf "muster-metric: loss 1\nmuster-checkpoint: 7\n" >&2'
expect_equal "$(cat "$OUT" "$ERR")" '' 'what a hidden rank writes'
expect_contains marks/run.json '"saved_step": 7'
expect_not_contains marks/run.json '"first_metric": -1'
expect_exit 2 "$MUSTER" run -q -n 3 --local-ranks-filter 0,2 -- true
expect_contains stderr '--local-ranks-filter is an option of torchrun: write --show-ranks'
expect_exit 3 "$MUSTER" run -q -n 3 --show-ranks 0 -- sh -c '[ $RANK != 2 ] || { echo "why it failed" >&2; exit 3; }'
expect_contains stderr 'rank 2' '| why it failed'
expect_exit 2 "$MUSTER" run -q -n 2 --show-ranks 2 -- true
expect_contains stderr '--show-ranks 2: there is no such rank: they are 0 to 1'

# What ends within a line is not joined with muster's own line.
expect_exit 3 "$MUSTER" run -n 2 -- sh -c 'printf "partial of $RANK" >&2; printf "end of $RANK"; exit 3'
expect_true grep -q '^muster: error: rank' "$ERR"
