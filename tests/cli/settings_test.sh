# Settings from all their places, help and completion of the built program.
# parts: jobs preflight
. "$(dirname "$0")/lib.sh"
mapfile -t commands < <("$MUSTER" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' | grep -v -e '^muster$' -e '^stage$' -e '^bench$')
expect_true test "${#commands[@]}" -ge 6

# Precedence, as a user meets it.
export HOME=$PWD/home XDG_CONFIG_HOME='' MUSTER_SITE_PATH=$PWD/sites
mkdir -p home/.config/muster sites
cat >sites/mine.toml <<'TOML'
name = "mine"
description = "A cluster of ours"
scheduler = "slurm"
[source]
facts = "a look at it"
date = 2026-01-31
[settings]
grace = "1s"
heartbeat = "10s"
TOML
printf 'timeout = "1h"\nidle-timeout = "5min"\nheartbeat = "9s"\nsite = "mine"\n' >home/.config/muster/muster.toml
printf '# of this project\nranks = 2\ntimeout = "30min"\nenv = ["GREETING=hello you"]\n' >muster.toml
expect_exit 0 env MUSTER_TIMEOUT=20min "$MUSTER" config show --tag-output
expect_matches stdout '^ranks +2 +\./muster.toml +muster.toml:2$' '^timeout +20min +environment +MUSTER_TIMEOUT$' \
    "^env +'GREETING=hello you' +\./muster.toml +muster.toml:4$" "^idle-timeout +5min +user's file +$HOME/.config/muster/muster.toml:2$" \
    "^heartbeat +9s +user's file" "^grace +1s +site +$PWD/sites/mine.toml:8$" '^tag-output +true +command line +--tag-output$'
expect_not_contains stdout preflight
expect_equal "$(cat "$ERR")" 'muster: note: settings from ./muster.toml: env' 'what else is said'
expect_exit 2 "$MUSTER" config check sites/mine.toml
expect_contains stderr 'sites/mine.toml is a site file; muster site check sites/mine.toml reads it'
expect_exit 2 "$MUSTER" site check muster.toml
expect_contains stderr 'muster.toml is no site file but a settings file; muster config check muster.toml reads it'
expect_exit 0 "$MUSTER" config show --all --json
expect_true python3 - "$OUT" <<'PY'
import json, sys
rows = {r["name"]: r for r in json.load(open(sys.argv[1]))["settings"]}
assert rows["ranks"] == {"name": "ranks", "value": 2, "from": "./muster.toml", "where": "muster.toml:2", "variable": "MUSTER_RANKS"}, rows["ranks"]
assert rows["timeout"]["value"] == 1800 and rows["smt"]["value"] is True and rows["engine"]["value"] is None
assert rows["env"]["value"] == ["GREETING=hello you"] and rows["preflight"]["from"] == "built in"
PY
expect_exit 0 "$MUSTER" run -- sh -c 'echo "$WORLD_SIZE $GREETING"'
expect_equal "$(sort -u "$OUT")" '2 hello you' 'what muster.toml sets'
# Site-wide settings stand beside the installation, below the user's own and above the site's; so do an admin's site files.
mkdir -p prefix/bin prefix/etc/muster/sites
cp "$MUSTER" prefix/bin/muster
printf 'grace = "7s"\nidle-timeout = "1min"\n' >prefix/etc/muster.toml
expect_exit 0 prefix/bin/muster config show
expect_matches stdout "^grace +7s +site-wide file +$PWD/prefix/etc/muster.toml:1$" "^idle-timeout +5min +user's file"
expect_exit 0 prefix/bin/muster config path
expect_matches stdout "^$PWD/prefix/etc/muster.toml +yes$" '^/etc/muster/muster.toml '
sed 's/mine/ours/' sites/mine.toml >prefix/etc/muster/sites/ours.toml
expect_exit 0 env MUSTER_SITE_PATH= HOME=/nonexistent prefix/bin/muster script --gpus 1 --time 5min -- true
expect_contains stderr '--site ours: the only site file that did not come with muster'
expect_exit 0 env MUSTER_SITE_PATH= HOME=/nonexistent prefix/bin/muster init started
expect_contains started/muster.toml 'site = "ours"'
expect_exit 0 env MUSTER_RANK=3 MUSTER_RANK_PER_NODE=1 "$MUSTER" run -n 1 -- true
expect_contains stderr 'MUSTER_RANK_PER_NODE is no setting of muster; did you mean MUSTER_RANKS_PER_NODE?'
expect_not_contains stderr MUSTER_RANK=
expect_exit 0 "$MUSTER" config path
expect_matches stdout "^$PWD/muster.toml +yes$" "^$HOME/.config/muster/muster.toml +yes$"
expect_exit 0 "$MUSTER" config check muster.toml
expect_contains stdout 'muster.toml: 3 settings, no error'
printf 'ranks = 2\nbind-too = "numa"\n' >muster.toml
for words in 'run true' 'plan' 'config show' 'config check muster.toml'; do
    # shellcheck disable=SC2086
    expect_exit 2 "$MUSTER" $words
    expect_contains stderr "muster.toml:2:1: unknown key 'bind-too'; did you mean 'bind-to'?" '  ^'
done
expect_exit 0 "$MUSTER" run --help # helps, whatever the file says
rm muster.toml home/.config/muster/muster.toml
expect_exit 0 "$MUSTER" config show
expect_contains stderr 'nothing is set'
# A site that is not there: who names it is said, and doctor goes on.
printf '# mine\nsite = "nosuch"\n' >home/.config/muster/muster.toml
for words in 'run true' 'script --gpus 1 --time 1h -- true' 'config show' 'init x'; do
    # shellcheck disable=SC2086
    expect_exit 2 "$MUSTER" $words
    expect_contains stderr "error: $HOME/.config/muster/muster.toml:2: no site 'nosuch'"
done
expect_exit 2 env MUSTER_SITE=none "$MUSTER" run true
expect_contains stderr "error: MUSTER_SITE: no site 'none'"
expect_exit 2 "$MUSTER" run --site none true
expect_contains stderr "error: no site 'none'"
# Names near it come first; the others are listed by a command of their own.
expect_exit 2 "$MUSTER" run --site slurm true
expect_contains stderr "error: no site 'slurm'; did you mean 'generic-slurm'?; muster site list shows the " 'searched for slurm.toml in: '
expect_exit 2 "$MUSTER" run --site polaris-debug true
expect_contains stderr "did you mean 'polaris'?"
expect_not_contains stderr frontier
expect_exit 1 "$MUSTER" doctor --json
expect_true python3 - "$OUT" "$HOME" <<'PY'
import json, sys
found = {f["what"]: f for f in json.load(open(sys.argv[1]))["findings"]}
assert found["settings"]["state"] == "MISSING" and found["settings"]["found"].startswith(sys.argv[2] + "/.config/muster/muster.toml:2: no site"), found["settings"]
assert {"cores", "/dev/shm", "open files", "python3"} <= set(found), found.keys()
PY
rm home/.config/muster/muster.toml
# Where the kernel refuses to bind, doctor says what a run says.
refused=(python3 "$MUSTER_SOURCE_DIR/tests/cli/programs/refused_affinity.py" "$MUSTER")
expect_exit 125 "${refused[@]}" run -n 1 --bind-to core -- true
expect_contains stderr 'sched_setaffinity to CPUs ' 'Operation not permitted' 'muster run --bind-to none'
expect_exit 0 "${refused[@]}" run -n 1 --bind-to none -- true
expect_exit 1 "${refused[@]}" doctor
expect_matches stdout '^MISSING +binding +sched_setaffinity: Operation not permitted'
expect_contains stdout '--bind-to none'
expect_exit 0 env MUSTER_BIND_TO=none "${refused[@]}" doctor
expect_exit 0 "$MUSTER" doctor
expect_contains stdout 'ranks can be bound to cores'
printf 'ranks = \n' >home/.config/muster/muster.toml
expect_exit 1 "$MUSTER" doctor
expect_matches stdout '^MISSING +settings +'
rm home/.config/muster/muster.toml
expect_exit 2 "$MUSTER" script --file job.toml
expect_contains stderr 'muster submit --file FILE --dry-run prints the script'
mkdir muster.toml
expect_exit 2 "$MUSTER" plan
expect_contains stderr 'cannot read the settings file muster.toml'
expect_exit 0 "$MUSTER" config path
expect_matches stdout "^$PWD/muster.toml +no, .*cannot read" "^$HOME/.config/muster/muster.toml +no, it is not there$"
rmdir muster.toml
expect_exit 2 "$MUSTER" config
expect_exit 2 "$MUSTER" config sho
expect_exit 2 "$MUSTER" config check none.toml
# A site that is not there is found, in a table [job] too.
for lines in 'site = "campos"' '[job]\nsite = "campos"'; do
    printf "$lines\n" >named.toml
    expect_exit 2 "$MUSTER" config check named.toml
    expect_contains stderr 'named.toml:' "no site 'campos'"
done
printf 'site = "generic-slurm"\n' >named.toml
expect_exit 0 "$MUSTER" config check named.toml

# The example of docs/launching.md.
sed -n '/^```toml$/,/^```$/p' "$MUSTER_SOURCE_DIR/docs/launching.md" | grep -v '^```' >readme.toml
expect_exit 0 "$MUSTER" config check readme.toml
expect_contains stdout 'readme.toml: 4 settings, no error'

# Help fits a screen that is wide enough, and no line is wider than any other.
export COLUMNS=200
for command in "${commands[@]}"; do
    expect_exit 0 "$MUSTER" "$command" --help
    lines=$(wc -l <"$OUT")
    expect_true test "$lines" -le 40 -a "$lines" -ge 3
    expect_matches stdout "^muster $command "
    cp "$OUT" help
    expect_exit 0 "$MUSTER" help "$command"
    expect_true cmp -s help "$OUT"
done
expect_exit 0 "$MUSTER" run --help-all
expect_contains stdout --heartbeat --gpu-map --no-smt
expect_exit 0 "$MUSTER" --help
expect_true test "$(wc -l <"$OUT")" -le 40
unset COLUMNS
widest() { LC_ALL=C.UTF-8 wc -L <"$1"; }
for width in 60 80; do
    for program in muster muster-stage muster-bench; do
        [ -x "$MUSTER_BIN/$program" ] || continue
        expect_exit 0 env COLUMNS=$width "$MUSTER_BIN/$program" --help
        expect_true test "$(widest "$OUT")" -le $width
        for command in $("$MUSTER_BIN/$program" --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'); do
            case "$program $command" in 'muster stage' | 'muster bench') continue ;; esac
            for flag in --help --help-all; do
                env COLUMNS=$width "$MUSTER_BIN/$program" "$command" $flag >help 2>/dev/null || continue
                expect_true test -s help
                [ "$(widest help)" -le $width ] || fail "$program $command $flag: a line of $(widest help) columns, not $width: $(awk -v w=$width 'length > w' help | head -n 3)"
            done
        done
    done
done
expect_exit 0 "$MUSTER" run --help
expect_true test "$(widest "$OUT")" -le 80
expect_contains stdout --min-np --spares --host-discovery-script

# Completion in bash as readline drives it: the words, the last of which is at the cursor.
expect_exit 0 "$MUSTER" completion bash
cp "$OUT" completion.bash
complete_words() {
    bash --norc -c '
        . ./completion.bash
        shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE=$*
        ${COMPLETE_BY:-_muster}
        printf "%s\n" "${COMPREPLY[@]}"' bash x "$@" >completed 2>completed.err || fail "completion of $*"
    [ ! -s completed.err ] || fail "completion of $* says $(cat completed.err)"
}
completes() { # WANTED... -- WORDS...
    local wanted=()
    while [ "$1" != -- ]; do
        wanted+=("$1")
        shift
    done
    shift
    complete_words "$@"
    for word in "${wanted[@]}"; do grep -qxF -e "$word" completed || fail "'$*' is not completed to $word but to: $(tr '\n' ' ' <completed)"; done
}
touch 'a file.txt' hosts.list
mkdir folder
completes run plan config script -- "$MUSTER" ''
completes config completion -- "$MUSTER" co
completes --ranks --ranks-per-node --ranks-per-gpu -- "$MUSTER" run --ra
completes --bind-to --no-smt -- "$MUSTER" run -n 4 --
completes numa none -- "$MUSTER" run --bind-to n
completes numa none -- "$MUSTER" run --bind-to = n
completes share -- "$MUSTER" run --bind-to =
completes --bind-to=numa -- "$MUSTER" run --bind-to=nu
completes hosts.list -- "$MUSTER" run -np 4 --hostfile h
completes 'a file.txt' -- "$MUSTER" run --hostfile 'a f'
completes folder -- "$MUSTER" run --wd f
completes mine polaris -- "$MUSTER" script --site ''
completes MUSTER_SITE_PATH -- "$MUSTER" run -x MUSTER_
completes show path check -- "$MUSTER" config ''
completes merge explain -- "$MUSTER" trace ''
completes --output -- "$MUSTER" trace merge --o
completes --json -- "$MUSTER" config show --j
completes hosts.list -- "$MUSTER" config check h
completes bash zsh fish -- "$MUSTER" completion ''
completes sort -- "$MUSTER" run -n 4 sor
completes sort -- "$MUSTER" run -n 4 -- sor
completes hosts.list -- "$MUSTER" run -n 4 -- sort h
# Names of others are words, whatever a shell would make of them: nothing in them runs, neither now nor once the line is entered.
names=('x$(touch${IFS}PWNED)' 'x`touch${IFS}PWNED`' 'x;touch${IFS}PWNED' 'x${y[$(touch${IFS}PWNED)]}' '*' 'x:m:{touch PWNED}')
for name in "${names[@]}"; do cp sites/mine.toml "sites/$name.toml"; done
printf '127.0.0.1 %s\n' 'x$(touch${IFS}PWNED)' >hosts.foreign
mkdir queue
printf '#!/bin/sh\necho "7\$(touch\${IFS}PWNED) R"\n' >queue/squeue
chmod +x queue/squeue
for prefix in '' x 'x\$' 'x\`' '\*'; do
    for option in --site --queue --site= --after --hosts; do
        USER=me PATH=$PWD/queue:$PATH HOSTFILE=$PWD/hosts.foreign complete_words "$MUSTER" submit "$option" "$prefix"
        while read -r word; do eval "set -- $word" && [ $# -le 1 ] || fail "completion to $word is no single word"; done <completed
    done
done
expect_true test ! -e PWNED
completes 'x\$\(touch\$\{IFS\}PWNED\)' 'x\`touch\$\{IFS\}PWNED\`' '\*' mine -- "$MUSTER" run --site ''
completes '--site=x\;touch\$\{IFS\}PWNED' -- "$MUSTER" run '--site=x\;'
rm sites/x* "sites/*.toml"
# Programs of their own tell their words themselves: no command of theirs is missing, whatever muster knows of them.
for program in stage bench; do
    [ -x "$MUSTER_BIN/muster-$program" ] || continue
    expect_exit 0 "$MUSTER_BIN/muster-$program" --help
    words=$(sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' "$OUT")
    [ "$(wc -w <<<"$words")" -gt 1 ] || fail "muster-$program --help names no commands"
    completes $words --help -- "$MUSTER" $program ''
    COMPLETE_BY=_muster_tool completes $words --version -- "$MUSTER_BIN/muster-$program" ''
done
# Values, not files: of their options, of machines, and jobs that have ended.
if [ -x "$MUSTER_BIN/muster-bench" ]; then
    for words in 'scale --net' 'scale --net ='; do
        # shellcheck disable=SC2086
        completes mnist cifar10 -- "$MUSTER" bench $words ''
        expect_not_contains completed hosts.list
    done
    COMPLETE_BY=_muster_tool completes published -- "$MUSTER_BIN/muster-bench" scale --net mnist --protocol p
    completes hosts.list -- "$MUSTER" bench scale --data h
fi
if [ -x "$MUSTER_BIN/muster-stage" ]; then
    completes csv cifar10 cifar100 -- "$MUSTER" stage convert --from c
    COMPLETE_BY=_muster_tool completes float -- "$MUSTER_BIN/muster-stage" convert x.csv --label-type ''
fi
completes polaris hosts.list -- "$MUSTER" plan --topology ''
mkdir -p state/muster/jobs
for record in slurm-41 slurm-42@alpha pbs-43.server; do : >state/muster/jobs/$record.json; done
for command in watch logs show cancel; do
    XDG_STATE_HOME=$PWD/state completes 41 42 43.server -- "$MUSTER" $command 4
done
if [ -x "$MUSTER_BIN/muster-bench" ]; then
    completes --ranks --rate-metric --run-options -- "$MUSTER" bench scale --r
    COMPLETE_BY=_muster_tool completes --ranks --rate-metric -- "$MUSTER_BIN/muster-bench" scale --repeats 3 --ra
    completes hosts.list -- "$MUSTER" bench report h
    completes sort -- "$MUSTER" bench scale -- sor
    expect_exit 2 "$MUSTER_BIN/muster-bench" completion bash
    expect_contains stderr 'muster completion bash'
fi
complete_words "$MUSTER" run -n 4 --bind-to numa sort --ra # behind the program its own options, which nobody knows here
expect_equal "$(cat completed)" '' 'completion of a program'"'"'s option'
for shell in zsh fish; do
    expect_exit 0 "$MUSTER" completion $shell
    cp "$OUT" script
    expect_contains script ranks-per-node own-first
    expect_not_contains script '{_values' # of zsh: it runs what :x:{...} in a name says
    if command -v $shell >/dev/null; then
        expect_exit 0 $shell -n script
    else
        echo "not checked: the completion for $shell, which is not here"
    fi
done
# Very many keys are read once each: by a comparison of each with each, either takes minutes.
python3 -c 'print("\n".join(f"k{i} = 1" for i in range(90000)))' >many.toml
sed 's/"mine"/"queues"/; /^\[settings\]/,$d' sites/mine.toml >queues.toml
python3 -c 'print("\n".join(f"[[queue]]\nname = \"q{i}\"" for i in range(40000)))' >>queues.toml
expect_exit 2 timeout 30 "$MUSTER" config check many.toml
expect_contains stderr "many.toml:1:1: unknown key 'k0'"
expect_exit 2 timeout 30 "$MUSTER" site show ./queues.toml
expect_contains stderr "'queue' has 40000 tables; it must have at most 1000"

# Names of files that are not UTF-8 end no output in JSON.
odd=$'odd\xe9'
mkdir "$odd"
printf 'ranks = 2\n' >"$odd/muster.toml"
expect_exit 0 env XDG_CONFIG_HOME="$PWD/$odd" "$MUSTER" config path --json
expect_exit 0 "$MUSTER" config check --json "$odd/muster.toml"
mv "$OUT" before_file && expect_exit 0 "$MUSTER" config check "$odd/muster.toml" --json
expect_true cmp "$OUT" before_file
expect_exit 2 "$MUSTER" completion tcsh

# What comes with a project cannot say which program muster starts, nor hide what it sets.
mkdir -p cloned && (
    cd cloned || exit 1
    printf 'min-np = 1\nhost-discovery-script = "id > PWNED; echo localhost:1"\n' >muster.toml
    for words in 'run -- true' 'run --dry-run -- true' 'run --print-env 0 -- true' 'plan' 'config show' 'config check muster.toml'; do
        # shellcheck disable=SC2086
        expect_exit 2 "$MUSTER" $words
        expect_contains stderr "muster.toml:2:1: 'host-discovery-script' is not for a file of the folder" '--host-discovery-script' '  ^'
    done
    expect_true test ! -e PWNED
    printf 'quiet = true\nenv = ["LD_PRELOAD="]\n' >muster.toml
    expect_exit 0 "$MUSTER" run -n 1 -- true
    expect_contains stderr 'settings from ./muster.toml: env'
    expect_exit 0 "$MUSTER" run -q -n 1 -- true
    expect_equal "$(cat "$ERR")" '' 'what is said with --quiet'
)
