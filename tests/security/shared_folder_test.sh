# Files that mallory left in folders where alice works: settings, links and pipes below --output-dir, folders under a swept name.
# timeout: 180
. "$(dirname "$0")/lib.sh"
make_hosts
alice() { on login alice timeout -k 2 10 env "$@"; }
mallory() { on login mallory bash -c "$1"; }

# 1. ./muster.toml of another user in a folder that all may write to.
mallory 'printf "env = [\"GREETING=evil\"]\n" >muster.toml'
expect_exit 0 alice "$bin/muster" run -n 1 -- sh -c 'echo "said ${GREETING-nothing}"'
expect_contains stdout 'said nothing'
expect_contains stderr './muster.toml is not read: it belongs to'
mallory 'rm muster.toml; mkfifo muster.toml; chmod 666 muster.toml'
expect_exit 0 alice "$bin/muster" run -n 1 -- echo ran
expect_contains stdout ran
mallory 'rm muster.toml; ln -s /dev/zero muster.toml'
expect_exit 0 alice "$bin/muster" run -n 1 -- echo ran
mallory 'rm muster.toml'
# alice's own is read, and said; a site file beside it that is mallory's is not.
alice sh -c 'umask 022; printf "env = [\"GREETING=own\"]\n" >muster.toml'
expect_exit 0 alice "$bin/muster" run -n 1 -- sh -c 'echo "said $GREETING"'
expect_contains stdout 'said own'
expect_contains stderr 'settings from ./muster.toml: env'
mallory 'printf "name = \"evil\"\n" >evil.toml'
alice sh -c 'umask 022; printf "site = \"./evil.toml\"\n" >muster.toml'
expect_exit 2 alice "$bin/muster" run -n 1 -- true
expect_contains stderr 'site names ./evil.toml, which is not read: it belongs to'
alice rm muster.toml
# mallory moves her file to that name and away again all the time: what was looked at is what is read.
mallory 'printf "env = [\"GREETING=evil\"]\n" >away.toml'
on login mallory python3 -c '
import os
print("moving", flush=True)
while True:
    try:
        os.rename("away.toml", "muster.toml")
        os.rename("muster.toml", "away.toml")
    except OSError:
        break' >"$lib_dir/moving" &
mover=$!
wait_until 20 grep -q moving "$lib_dir/moving"
on login alice timeout 80 bash -c 'for ((i = 0; i < 150; i++)); do "$1" run -q -n 1 -- sh -c "echo said \$GREETING"; done' - "$bin/muster" >"$OUT" 2>"$ERR"
pkill -KILL -U "${uid_of[mallory]}" python3
wait "$mover" 2>/dev/null
expect_equal "$(grep -c said "$OUT") $(grep -c evil "$OUT")" '150 0' "runs, and those that obeyed mallory's file"
rm -f "$common/muster.toml" "$common/away.toml"
# A link of alice's that goes on over one of mallory's.
alice sh -c 'umask 022; mkdir -p "$HOME/other"; printf "env = [\"GREETING=other\"]\n" >"$HOME/other/muster.toml"; ln -s hop.toml muster.toml'
mallory "ln -s $homes/alice/other/muster.toml hop.toml"
expect_exit 0 alice "$bin/muster" run -n 1 -- sh -c 'echo "said $GREETING"'
expect_not_contains stdout 'said other'
expect_contains stderr './muster.toml is not read: the link ' '/hop.toml belongs to'
alice rm muster.toml
rm -f "$common/hop.toml"

# 2. Links and pipes in a rank's folder that was there before.
alice sh -c 'umask 077; echo precious >"$HOME/precious"'
mallory 'mkdir -m 777 -p logs/rank.00; chmod 777 logs; ln -s '"$homes/alice/precious"' logs/rank.00/stdout'
expect_exit 125 alice "$bin/muster" run -n 1 --output-dir logs -- echo overwritten
expect_equal "$(cat "$homes/alice/precious")" precious "alice's file"
expect_contains stderr 'common/logs is not written to'
mallory 'rm logs/rank.00/stdout; mkfifo -m 666 logs/rank.00/stdout'
expect_exit 125 alice "$bin/muster" run -n 1 --output-dir logs -- echo overwritten
# A link in the folder's place: nothing in alice's own folder is removed.
alice sh -c 'mkdir "$HOME/keep" && echo kept >"$HOME/keep/samples.json"'
mallory "ln -s $homes/alice/keep links"
expect_exit 125 alice "$bin/muster" run -n 1 --output-dir links -- true
expect_equal "$(ls "$homes/alice/keep")" samples.json "alice's folder"

# 3. A folder of alice's, moved to a name under which muster sweeps what killed runs left after a minute; here the minute is over at once.
command -v cc >/dev/null || skip "the rest needs a C compiler: a program with another clock"
echo '#include <time.h>
time_t time(time_t* at) { struct timespec now; clock_gettime(CLOCK_REALTIME, &now); if (at) *at = now.tv_sec + 300; return now.tv_sec + 300; }' >"$lib_dir/later.c"
cc -shared -fPIC -o "$bin/later.so" "$lib_dir/later.c" && chmod 755 "$bin/later.so" || exit 1
mallory 'mkdir -m 777 project'
gone=$(bash -c 'echo $$')
stolen=/tmp/muster-${uid_of[alice]}-$gone-ZZZZZZ
alice sh -c 'umask 0; mkdir project/results; mkdir -m 700 project/results/run1; echo data >project/results/run1/data'
mallory "mv project/results $stolen"
alice LD_PRELOAD="$bin/later.so" "$bin/muster" run -n 1 -- true
expect_equal "$(cat "$stolen/run1/data")" data "alice's data"
# What a killed run left is swept still.
alice "$bin/muster" run -n 1 -- sh -c 'kill -STOP $PPID $(ps -o ppid= -p $PPID); : >stopped; sleep 20' &
wait_until 20 test -e "$common/stopped"
# The launcher before its guardian: with that, `timeout` ends too, and the kernel wakes a stopped process whose group has lost its parent (SIGHUP, SIGCONT).
pkill -KILL -n -U "${uid_of[alice]}" -x muster
pkill -KILL -U "${uid_of[alice]}" -x muster
wait
compgen -G "/dev/shm/muster-${uid_of[alice]}-*" >/dev/null || fail "a killed run left no folder: there is nothing to sweep"
alice LD_PRELOAD="$bin/later.so" "$bin/muster" run -n 1 -- true
! compgen -G "/dev/shm/muster-${uid_of[alice]}-*" >/dev/null || fail "a killed run's folder is there still"
