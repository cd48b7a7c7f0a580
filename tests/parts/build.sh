# build.sh SOURCE BUILD: builds the core without any part, and then with each part alone, and runs two ranks and the parts' unit tests. It works on a layer over the
# finished build BUILD, which it leaves as it is: what a part has nothing to do with is not compiled again. The layer needs root, or user namespaces, and is gone
# afterwards.
set -eu
source=$1 build=$2
skip() { echo "SKIPPED: $*"; exit 77; }
command -v ninja >/dev/null && grep -qx 'CMAKE_GENERATOR:INTERNAL=Ninja' "$build/CMakeCache.txt" || skip 'the build is not one of ninja'

if [ -z "${LAYER:-}" ]; then
    own=(unshare --mount)
    [ "$(id -u)" = 0 ] || own=(unshare --map-root-user --mount)
    "${own[@]}" true 2>/dev/null || skip 'no namespaces of mounts'
    LAYER=$(mktemp -d)
    trap 'rmdir "$LAYER"' EXIT
    LAYER=$LAYER "${own[@]}" bash "$0" "$source" "$build"
    exit
fi
mount --make-rprivate /
mount -t tmpfs tmpfs "$LAYER"
mkdir "$LAYER/changes" "$LAYER/work"
mount -t overlay overlay -o "lowerdir=$build,upperdir=$LAYER/changes,workdir=$LAYER/work" "$build" || skip 'no layer can be laid over the build'
cd "$build"

# with PARTS: configures this, and builds everything.
with() {
    local start=$SECONDS
    echo "== MUSTER_PARTS=$1"
    cmake -DMUSTER_PARTS="$1" . >log 2>&1 || { cat log; exit 1; }
    ninja -j2 >log 2>&1 || { tail -n 60 log; exit 1; }
    ninja -t targets all >targets
    bin/muster --version >version
    echo "   $((SECONDS - start)) s, $(grep -c Building log) compiled"
}
# lacks NAME..: there is no such target.
lacks() {
    local name
    for name; do
        ! grep -q "/$name[.:]" targets || { echo "the build has $name of a part that was left out"; exit 1; }
    done
}
unit() { GTEST_BRIEF=1 "bin/unit_$1"; }
python() { [ ! -e python/_muster_native.abi3.so ] || PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c "$1"; }
has_package() { python "from importlib.util import find_spec as find; assert find('muster.$1').origin.endswith('/$1/__init__.py')"; }
lacks_package() { python "
try:
    import muster.$1
except ImportError as fault:
    assert 'without the part' in str(fault), fault
else:
    raise SystemExit('muster.$1 is there')"; }

with none
lacks unit_io unit_bench unit_jobs unit_keep unit_preflight libmuster_io libmuster_bench libmuster_jobs libmuster_render libmuster_keep libmuster_preflight
lacks muster-stage muster-bench _muster_data
grep -qx 'parts     none (without data, bench, jobs, keep, preflight, keras)' version
[ "$(bin/muster run -q -n 2 -- hostname | wc -l)" = 2 ]
unit launch
for package in data keras tensorflow; do lacks_package $package; done
cmake --install . --prefix "$LAYER/installed" >log
[ "$("$LAYER/installed/bin/muster" run -q -n 2 -- hostname | wc -l)" = 2 ]
"$LAYER/installed/bin/muster" --help >help
! grep -E '^  (stage|bench|submit|jobs|site|script) ' help || { echo 'the installed core has commands of parts'; exit 1; }
found=$(find "$LAYER/installed" -name 'muster-stage*' -o -name 'muster-bench*' -o -name 'muster-submit.1' -o -name '_muster_data*' -o -name 'libmuster_io*' -o -path '*/python/muster/keras' -o -path '*/python/muster/data')
[ -z "$found" ] || { echo "the installed core has files of parts: $found"; exit 1; }

with jobs
lacks unit_io unit_bench unit_keep unit_preflight libmuster_io libmuster_bench libmuster_keep libmuster_preflight muster-stage muster-bench
unit jobs
bin/muster script --site polaris --gpus 4 --time 30min --account a --queue debug -- true | grep -q '^#PBS'

with keep
lacks unit_io unit_bench unit_jobs unit_preflight libmuster_preflight libmuster_render
unit keep
bin/muster run -q -n 2 --max-restarts 1 --keep-state node -- sh -c '[ -n "$MUSTER_KEPT_STATE" ]'

with preflight
lacks unit_io unit_bench unit_jobs unit_keep libmuster_keep libmuster_render
unit preflight
bin/muster run -q -n 2 --preflight -- true

with bench
lacks unit_io unit_jobs unit_keep unit_preflight libmuster_io libmuster_jobs libmuster_keep libmuster_preflight muster-stage
unit bench
bin/muster bench --help >/dev/null

with keras
has_package keras
has_package tensorflow
lacks_package data

[ "$HAVE_DATA" = ON ] || exit 0
with data
lacks unit_bench unit_jobs unit_keep unit_preflight libmuster_bench libmuster_jobs libmuster_keep libmuster_preflight muster-bench
unit io
bin/muster stage --help >/dev/null
has_package data
lacks_package keras
