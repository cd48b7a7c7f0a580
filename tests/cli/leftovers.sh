# Sourced behind lib.sh by tests that end runs badly: what must not be there afterwards.

# Every process of a run under test carries this variable, whatever it does to its session or parent.
export MUSTER_TEST_MARK="mark-$$-$RANDOM$RANDOM"

# marked: the pids of living processes with the mark, this shell and its own children left out.
marked() {
    local p
    for p in $(grep -lsF "MUSTER_TEST_MARK=$MUSTER_TEST_MARK" /proc/[0-9]*/environ | cut -d/ -f3); do
        case " $(ps -o comm= -p "$p" 2>/dev/null) " in *" grep "* | *" bash "*) [ "$(ps -o ppid= -p "$p" 2>/dev/null | tr -d ' ')" = "$$" ] && continue ;; esac
        grep -qs '^State:[[:space:]]*[ZX]' "/proc/$p/status" && continue
        grep -zqs "^MUSTER_RANK=" "/proc/$p/environ" && echo "$p"
    done
}
nothing_runs() { [ -z "$(marked)" ]; }
# A session folder is named after its user and launcher: those of other runs on this machine that still go on are not ours, nor those of another space of
# process numbers, where the number says nothing. What MPI makes is not named so: it counts only where nobody else's can be there (tests/own_shm.sh).
own_space=$(readlink /proc/self/ns/pid)
shm_files() {
    local space
    all_shm_files | while read -r name; do
        if [[ $name =~ ^muster-[0-9]+-([0-9]+)- ]]; then
            space=$(cat "/dev/shm/$name/muster-session" 2>/dev/null) || space=$own_space
            [ "$space" != "$own_space" ] || [ -d "/proc/${BASH_REMATCH[1]}" ] || echo "$name"
        else
            [ -z "${MUSTER_OWN_SHM:-}" ] || echo "$name"
        fi
    done
}
all_shm_files() { find /dev/shm -mindepth 1 -maxdepth 1 \( -name 'muster-*' -o -name 'vader_segment*' -o -name 'mpich*' \) -printf '%f\n' | sort; }
shm_before=$(shm_files)
no_new_shm() { [ -z "$(comm -13 <(echo "$shm_before") <(shm_files))" ]; }

# expect_nothing_left [SECONDS]: no process of the run and no file in /dev/shm.
expect_nothing_left() {
    wait_until "${1:-10}" nothing_runs || {
        echo "    left: $(for p in $(marked); do tr '\0' ' ' <"/proc/$p/cmdline"; echo "($p)"; done)"
        kill -9 $(marked) 2>/dev/null
    }
    wait_until 10 no_new_shm || echo "    left in /dev/shm: $(comm -13 <(echo "$shm_before") <(shm_files))"
}

# start COMMAND...: in the background, its pid in $PID, output as expect_exit does.
start() {
    printf -v COMMAND '%q ' "$@"
    : >"$OUT" # here and not in the background, or the lines of the run before would be taken for this one's
    : >"$ERR"
    # without job control bash lets background commands ignore SIGINT; muster must be startable as from a terminal
    env --default-signal=INT,QUIT "$@" >"$OUT" 2>"$ERR" &
    PID=$!
}
# expect_end CODE: of what was started.
expect_end() {
    local got
    wait "$PID"
    got=$?
    [ "$got" = "$1" ] || fail "exit code $got, expected $1"
}
out_lines() { [ "$(wc -l <"$OUT")" -ge "$1" ]; }
