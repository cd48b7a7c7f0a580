# The core alone: it runs ranks, lists what it has, and says of everything else which part was left out.
. "$(dirname "$0")/../cli/lib.sh"
expect_exit 0 "$MUSTER" --version
expect_contains stdout 'parts     none (without data, bench, jobs, keep, preflight, keras)'
expect_true test "$("$MUSTER" run -q -n 2 -- hostname | wc -l)" = 2

parts='jobs:script jobs:submit jobs:alloc jobs:jobs jobs:watch jobs:logs jobs:show jobs:cancel jobs:rerun jobs:init jobs:site data:stage bench:bench'
expect_exit 0 "$MUSTER" --help
cp "$OUT" help
expect_exit 0 "$MUSTER" completion bash
cp "$OUT" completion
expect_exit 0 "$MUSTER" manual
cp "$OUT" manual
for command in run plan hosts doctor config completion; do
    grep -q "^  $command " help || fail "the help lacks $command"
    expect_exit 0 "$MUSTER" "$command" --help
done
for each in $parts; do
    part=${each%:*} command=${each#*:}
    expect_exit 125 "$MUSTER" "$command" --help
    expect_contains stderr "muster $command: this muster was built without the part $part" './bootstrap.sh install --prefix DIR'
    ! grep -q "^  $command " help || fail "the help lists $command"
    ! grep -q "^        $command)\|muster-$command\b" completion || fail "the completion has $command"
    ! grep -q "muster $command\*\*" manual || fail "the man page has $command"
done
expect_exit 125 "$MUSTER" help submit
expect_contains stderr 'muster submit: this muster was built without the part jobs'
expect_exit 2 "$MUSTER" sumbit
expect_not_contains stderr 'did you mean'
# An option, a variable or a key of a file that needs a part says so, and is not listed.
for command in run doctor; do "$MUSTER" manual $command >>manual; done
"$MUSTER" run --help-all >>help
"$MUSTER" doctor --help >>help
"$MUSTER" config show --all >>help
for each in keep:--keep-state preflight:--preflight preflight:--exclude-bad-nodes preflight:--allocation; do
    option=${each#*:}
    ! grep -e "^  $option\b\|^\*\*$option\b\|^${option#--} " help manual || fail "$option of a part that was left out is listed"
    ! grep -e "$option\b" completion || fail "the completion has $option of a part that was left out"
done
absent='this muster was built without the part'
expect_exit 125 "$MUSTER" run --max-restarts 1 --keep-state node -- true
expect_contains stderr "error: --keep-state: $absent keep; build it with all parts" './bootstrap.sh install --prefix DIR'
expect_exit 125 "$MUSTER" run --preflight -- true
expect_contains stderr "error: --preflight: $absent preflight"
expect_exit 0 "$MUSTER" run --no-preflight -- true
expect_exit 125 env MUSTER_EXCLUDE_BAD_NODES=yes "$MUSTER" run -- true
expect_contains stderr "error: MUSTER_EXCLUDE_BAD_NODES: $absent preflight"
expect_exit 125 "$MUSTER" doctor --allocation
expect_contains stderr "error: --allocation: $absent preflight"
mkdir folder
echo 'keep-state = "node"' >folder/muster.toml
expect_exit 125 sh -c 'cd folder && "$MUSTER" run --max-restarts 1 -- true'
expect_contains stderr "error: muster.toml:1: keep-state: $absent keep"
expect_exit 125 "$MUSTER" config check folder/muster.toml
expect_contains stderr "error: folder/muster.toml:1: keep-state: $absent keep"
echo 'preflight = false' >folder/muster.toml
expect_exit 0 "$MUSTER" config check folder/muster.toml
expect_exit 125 "$MUSTER" run -H elsewhere1,elsewhere2 --engine remote -- true
expect_contains stderr "error: cannot tell how many GPUs the nodes have, without -n or --ranks-per-node: $absent preflight"
"$MUSTER" doctor >found || true
expect_contains found 'none (without data, bench, jobs, keep, preflight, keras)' 'build with -DMUSTER_PARTS=all for the others'
for command in keeper:keep probe:preflight; do
    expect_exit 125 "$MUSTER" "${command%:*}"
    expect_contains stderr "muster ${command%:*}: $absent ${command#*:}"
done
# A program of a part that is installed later is a command again.
cp "$MUSTER" muster
printf '#!/bin/sh\necho "here: $*"\n' >muster-bench
chmod +x muster-bench
expect_exit 0 ./muster bench scale
expect_contains stdout 'here: scale'

# A Python package of a part that was left out says so; one that is there is taken.
built=$MUSTER_BIN/../python
[ -e "$built/_muster_native.abi3.so" ] || exit 0
mkdir -p package/muster
for file in "$MUSTER_SOURCE_DIR"/python/muster/* "$MUSTER_SOURCE_DIR"/python/left_out/*.py; do
    case ${file##*/} in data | keras | tensorflow | __pycache__) ;; *) ln -s "$file" package/muster/ ;; esac
done
export PYTHONPATH=$PWD/package:$built PYTHONDONTWRITEBYTECODE=1
for each in data:data keras:keras keras:tensorflow; do
    name=${each#*:}
    expect_exit 1 /usr/bin/python3 -c "import muster.$name"
    expect_contains stderr "ModuleNotFoundError: no muster.$name: this muster was built or installed without the part ${each%:*}; " '-DMUSTER_PARTS=all'
    ln -s "$MUSTER_SOURCE_DIR/python/muster/$name" package/muster/
    expect_exit 0 /usr/bin/python3 -c "import importlib.util as u; print(u.find_spec('muster.$name').origin)"
    expect_contains stdout "package/muster/$name/__init__.py"
done
