# Sourced first by every tests/cli/*_test.sh: `. "$(dirname "$0")/lib.sh"`.
#
# ctest gives MUSTER (the program), MUSTER_BIN (its folder, with muster-stage and muster-bench) and MUSTER_SOURCE_DIR. The test starts in an
# empty folder of its own that is removed afterwards, with standard input at its end. A failed expectation is printed and counted, the test
# goes on, and ends 1 if there was any. Expectations may stand in pipelines and subshells.
# A function at_end of the test's runs last.
# Lines a test may hold for ctest: `# timeout: SECONDS` (150 if there is none), `# serial` (nothing else runs beside it) and `# parts: NAME..` (muster's parts that it needs).
: "${MUSTER:?set MUSTER to the program under test, or start this test by ctest -R cli}"
: "${MUSTER_BIN:=$(dirname "$MUSTER")}"
: "${MUSTER_SOURCE_DIR:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
set -u
export LC_ALL=C
MUSTER=$(readlink -f "$MUSTER")
lib_dir=$(mktemp -d /tmp/muster-cli.XXXXXX) || exit 1
export TMPDIR=$lib_dir/tmp
mkdir "$lib_dir/work" "$TMPDIR"
: >"$lib_dir/failures"
OUT=$lib_dir/stdout  # of the latest expect_exit
ERR=$lib_dir/stderr
: >"$OUT"
: >"$ERR"
COMMAND='(nothing run yet)'
cd "$lib_dir/work" || exit 1
exec </dev/null

# A test that has more to end than processes of its own defines this; it may call fail.
at_end() { :; }

lib_end() {
    local status=$? failures
    [ "$BASHPID" = $$ ] || return  # bash runs it in a subshell too that a signal ends right after its start
    at_end
    failures=$(wc -l <"$lib_dir/failures")
    cd /
    rm -rf "$lib_dir"
    if [ "$status" = 0 ] && [ "$failures" != 0 ]; then
        echo "$failures expectation(s) failed"
        exit 1
    fi
    exit "$status"
}
trap lib_end EXIT

# fail MESSAGE: counts a failure and shows where, and what the latest command printed.
fail() {
    local place=${BASH_SOURCE[-1]##*/}
    echo "$place:${BASH_LINENO[-2]}: FAILED: $*"
    echo "    command: $COMMAND"
    sed 's/^/    stdout: /' "$OUT" | head -n 40
    sed 's/^/    stderr: /' "$ERR" | head -n 40
    echo x >>"$lib_dir/failures"
    return 1
}

# has_part NAME: whether muster was built with this part. A test of which nothing is left without it has a line `# parts: NAME..` instead.
has_part() { "$MUSTER" --version | sed -n 's/^parts *\([^(]*\).*/\1/p' | grep -qw "$1"; }

# skip REASON: ends the test as skipped.
skip() {
    echo "SKIPPED: $*"
    exit 77
}

# expect_exit CODE COMMAND...: runs it, standard output into the file $OUT and standard error into $ERR.
expect_exit() {
    local want=$1 got
    shift
    printf -v COMMAND '%q ' "$@"
    "$@" >"$OUT" 2>"$ERR"
    got=$?
    [ "$got" = "$want" ] || fail "exit code $got, expected $want"
}

# lib_file stdout|stderr|FILE: the file meant.
lib_file() {
    case $1 in
        stdout) echo "$OUT" ;;
        stderr) echo "$ERR" ;;
        *) echo "$1" ;;
    esac
}

# expect_contains stdout|stderr|FILE TEXT...: each TEXT stands there, as it is, on one line.
expect_contains() {
    local where=$1 text
    shift
    for text; do
        grep -qF -e "$text" -- "$(lib_file "$where")" || fail "$where does not contain: $text"
    done
}

# expect_not_contains stdout|stderr|FILE TEXT...
expect_not_contains() {
    local where=$1 text
    shift
    for text; do
        ! grep -qF -e "$text" -- "$(lib_file "$where")" || fail "$where contains: $text"
    done
}

# expect_matches stdout|stderr|FILE REGEX...: each extended regular expression matches a line.
expect_matches() {
    local where=$1 regex
    shift
    for regex; do
        grep -qE -e "$regex" -- "$(lib_file "$where")" || fail "$where has no line that matches: $regex"
    done
}

# expect_empty stdout|stderr|FILE
expect_empty() { [ ! -s "$(lib_file "$1")" ] || fail "$1 is not empty"; }

# expect_equal GOT WANTED [WHAT]
expect_equal() { [ "$1" = "$2" ] || fail "${3:-value} is '$1', expected '$2'"; }

# expect_true COMMAND...: the command succeeds; its output is not kept.
expect_true() { "$@" || fail "false: $*"; }

# wait_until SECONDS COMMAND...: repeats the command until it succeeds; fails after so many seconds.
wait_until() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || {
            fail "not so in time: $*"
            return 1
        }
        sleep 0.02
    done
}

# expect_survivors RANKS TOTAL MEMBER...: of programs/elastic_steps.py these have ended well, in this order of rank, and nothing is left.
expect_survivors() {
    local size=$1 total=$2 rank=0 member
    shift 2
    for member; do
        expect_matches stdout "^member $member ends: rank $rank of $size, total $total\$"
        rank=$((rank + 1))
    done
    expect_equal "$(grep -c ' ends: ' "$OUT")" "$#" "ranks that have ended well: $(cat "$ERR")"
    expect_nothing_left
}
