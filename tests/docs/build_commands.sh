#!/bin/bash
# build_commands.sh [DOCUMENT:LINE..]: the commands by which README.md, CONTRIBUTING.md and docs/install.md tell people to build muster ("needs: a build") build it: each block in a
# copy of this checkout and a home folder of its own, as it is written. In a clean Debian: tests/systems/debian-12.sh run tests/docs/build_commands.sh
#
# With arguments only these blocks, else all; each takes as long as a build, or less where ccache is: what one block has compiled is not compiled again for the
# next. MUSTER_OPTIMISE=-O1 compiles faster.
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
installed=/opt/muster # where a block installs as root; what is there already stays
[ ! -e $installed ] || { echo "$installed is there already"; exit 1; }
trap 'rm -rf "$scratch" $installed' EXIT
cat >"$scratch/compile" <<'TEXT'
#!/bin/bash
words=()
for word; do [ "$word" != -O3 ] || word=${MUSTER_OPTIMISE:--O3}; words+=("$word"); done
exec ${CCACHE:-} "${words[@]}"
TEXT
chmod +x "$scratch/compile"
export CMAKE_C_COMPILER_LAUNCHER=$scratch/compile CMAKE_CXX_COMPILER_LAUNCHER=$scratch/compile
CCACHE=$(command -v ccache || true) CCACHE_DIR=$scratch/ccache CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
export CCACHE CCACHE_DIR CCACHE_SLOPPINESS
unset MUSTER_TEST_KINDS

count=0
for document in README.md CONTRIBUTING.md docs/install.md; do
    python3 -B - "$checkout" "$document" "$scratch" <<'TEXT'
import pathlib, sys
source, document, scratch = sys.argv[1:]
sys.path.insert(0, f"{source}/tests/docs")
import documents
for number, one in enumerate(documents.read_blocks(pathlib.Path(source) / document, document)):
    if one.marks.get("needs") == "a build":
        pathlib.Path(f"{scratch}/{document.replace('/', '-')}.{number}").write_text(f"# {one.where}\nset -e\n{one.text}")
TEXT
    for block in "$scratch/${document//\//-}".*; do
        [ -e "$block" ] || continue
        name=$(sed -n '1s/^# //p' "$block")
        [ $# = 0 ] || [[ " $* " = *" $name "* ]] || continue
        mkdir "$scratch/home"
        mkdir "$scratch/muster"
        tar -C "$checkout" --exclude=./build --exclude=./.git --exclude=./demo-results -c . | tar -C "$scratch/muster" -x
        begin=$SECONDS
        (cd "$scratch/muster" && HOME=$scratch/home bash "$block") >"$scratch/log" 2>&1 || { tail -n 40 "$scratch/log"; echo "$name: failed"; exit 1; }
        echo "$name: built in $((SECONDS - begin)) s"
        count=$((count + 1))
        rm -rf "$scratch/home" "$scratch/muster" $installed
    done
done
[ $count -ge 4 ] || [ $# -gt 0 ] || { echo "only $count blocks that need a build were found"; exit 1; }
