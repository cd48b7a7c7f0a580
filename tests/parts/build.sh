# build.sh SOURCE FOLDER: configures and builds the core without any part in FOLDER, unoptimised, and runs its unit tests and two ranks; then the core with each part
# alone, and that part's unit tests. FOLDER stays, so that the next time only what has changed is compiled.
set -eu
source=$1 folder=$2
command -v ninja >/dev/null || { echo "SKIPPED: no ninja"; exit 77; }

# build PARTS TARGET..: with these parts.
build() {
    local parts=$1
    shift
    echo "== MUSTER_PARTS=$parts: $*"
    cmake -G Ninja -S "$source" -B "$folder" -DMUSTER_PARTS="$parts" -DMUSTER_TEST_KINDS=none "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG" -DMUSTER_WITH_CUDA=OFF \
        ${LAUNCHER:+-DCMAKE_C_COMPILER_LAUNCHER="$LAUNCHER" -DCMAKE_CXX_COMPILER_LAUNCHER="$LAUNCHER"} >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
    ninja -C "$folder" -j2 "$@" >"$folder.log" 2>&1 || { tail -n 60 "$folder.log"; exit 1; }
}

# lacks NAME..: the build has no such target.
lacks() {
    ninja -C "$folder" -t targets all >"$folder.log"
    local name
    for name; do
        ! grep -q "/$name[.:]" "$folder.log" || { echo "a build without its part has the target $name"; exit 1; }
    done
}

python() { [ ! -e "$folder/python/_muster_native.abi3.so" ] || PYTHONPATH=$folder/python PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c "$1"; }
is_left_out() { python "
try:
    import muster.$1
except ImportError as fault:
    assert 'without the part' in str(fault), fault
else:
    raise SystemExit('muster.$1 is there')"; }
unit() {
    local name
    for name; do
        GTEST_BRIEF=1 "$folder/bin/unit_$name"
    done
}

rm -f "$folder"/bin/muster-* # of the last time: muster would run them
build none all
lacks unit_io unit_bench unit_jobs libmuster_io libmuster_bench libmuster_jobs muster-stage muster-bench _muster_data
[ "$("$folder/bin/muster" run -q -n 2 -- hostname | wc -l)" = 2 ]
"$folder/bin/muster" --version | grep -qx 'parts     none (without data, bench, jobs, keras)'
unit base pmix comm jobscripts launch
is_left_out data
is_left_out keras
is_left_out tensorflow

build jobs muster unit_jobs
unit jobs
"$folder/bin/muster" script --site polaris --gpus 4 --time 30min --account a --queue debug -- true | grep -q '^#PBS'
build bench muster muster-bench unit_bench
unit bench
"$folder/bin/muster" bench --help >/dev/null
build keras muster muster_native
python 'import importlib.util as u; assert u.find_spec("muster.keras").origin.endswith("keras/__init__.py")'
is_left_out data
if grep -q '^hdf5_FOUND:INTERNAL=1' "$source/build/release/CMakeCache.txt" 2>/dev/null || pkg-config --exists hdf5-openmpi || pkg-config --exists hdf5-mpi; then
    build data muster muster-stage unit_io $([ ! -e "$folder/python/_muster_native.abi3.so" ] || echo muster_data)
    unit io
    "$folder/bin/muster" stage --help >/dev/null
fi
echo "the core and each part build alone"
