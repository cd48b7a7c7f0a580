# timeout: 240
# What is installed works by itself, and the README's example builds against it.
. "$(dirname "$0")/lib.sh"
command -v cmake >/dev/null || skip "no cmake"
[ -x "$MUSTER_BIN/muster-bench" ] || skip "built without MPI or HDF5"
grep -q '^MUSTER_SANITIZE:STRING=.' "$MUSTER_BIN/../CMakeCache.txt" && skip "sanitized libraries need sanitized programs"
expect_exit 0 cmake --install "$MUSTER_BIN/.." --prefix "$PWD/prefix"
for file in bin/muster bin/muster-stage bin/muster-bench share/muster/site-configs/polaris.toml share/man/man1/muster-run.1 \
    share/bash-completion/completions/muster include/muster/comm/communicator.hpp; do
    expect_true test -e "prefix/$file"
done
expect_true test ! -e prefix/include/muster/pmix/internal
expect_exit 0 prefix/bin/muster script --site polaris --gpus 8 --time 30min --account A --queue debug -- ./a.out
expect_exit 0 prefix/bin/muster stage --help

mkdir app
sed -n '/^```cpp$/,/^```$/p' "$MUSTER_SOURCE_DIR/docs/collectives.md" | grep -v '^```' >app/main.cpp
cat >app/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES C CXX)
find_package(muster REQUIRED)
add_executable(app main.cpp)
target_link_libraries(app PRIVATE muster::comm muster::io)
CMAKE
expect_exit 0 cmake -S app -B app/build -DCMAKE_PREFIX_PATH="$PWD/prefix"
expect_exit 0 cmake --build app/build
expect_exit 0 prefix/bin/muster run -q -n 2 -- app/build/app
expect_exit 2 prefix/bin/muster stage convert --imges x
