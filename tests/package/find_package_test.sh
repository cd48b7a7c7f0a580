# find_package(muster) in projects of C, of C++ and of both: each configured, built and run.
. "$(dirname "$0")/../cli/lib.sh"
command -v ninja >/dev/null && export CMAKE_GENERATOR=Ninja
library_folder=$(dirname "$(find "$MUSTER_PREFIX" -name libmuster_comm.so)")

# project NAME LANGUAGES COMPONENTS SOURCE TARGETS
project() {
    mkdir "$1"
    cp "$4" "$1/"
    cat >"$1/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project($1 LANGUAGES $2)
find_package(muster REQUIRED $3)
add_executable($1 $(basename "$4"))
target_link_libraries($1 PRIVATE $5)
CMAKE
    expect_exit 0 cmake -S "$1" -B "$1/build" -DCMAKE_PREFIX_PATH="$MUSTER_PREFIX"
    expect_exit 0 cmake --build "$1/build"
}
run() { "$MUSTER_PREFIX/bin/muster" run -q --timeout 60s "$@"; }

# C: the shared library needs nothing else.
project only_c C "" "$MUSTER_SOURCE_DIR/tests/package/allreduce.c" muster::comm_c
! grep -q "^MPI_\|^fmt_DIR\|^pmix_\|^Boost\|^HDF5" only_c/build/CMakeCache.txt || fail "a project of C looked for more than muster::comm_c needs"
expect_exit 0 run -n 2 -- only_c/build/only_c
expect_contains stdout "shm: 3 from 2 ranks"

# C++: the static libraries, with the documented example.
sed -n '/<!-- file: average.cpp -->/,/^```$/p' "$MUSTER_SOURCE_DIR/docs/collectives.md" | grep -v '^```\|^<!--' >main.cpp
project only_cxx CXX "" main.cpp muster::comm
! grep -q "^Boost\|^HDF5\|^hdf5\|^toml\|^nlohmann\|^hwloc" only_cxx/build/CMakeCache.txt || fail "a project of C++ looked for more than muster::comm needs"
expect_exit 0 run -n 2 -- only_cxx/build/only_cxx
expect_contains stdout "rank 1 of 2: 0.5"

# Both.
if [ "$MUSTER_HAVE_HDF5" = ON ]; then
    cat >both.cpp <<'CPP'
#include "comm/c_api/muster_comm.h"
#include "io/loader/sampler.hpp"
int main() { return muster_comm_abi() == MUSTER_COMM_ABI ? 0 : 1; }
CPP
    project both "C CXX" "COMPONENTS comm_c comm io" both.cpp "muster::io muster::comm_c"
    expect_exit 0 both/build/both
fi

# What cannot be had is told.
mkdir refused
printf 'cmake_minimum_required(VERSION 3.25)\nproject(refused LANGUAGES C)\nfind_package(muster REQUIRED COMPONENTS comm)\n' >refused/CMakeLists.txt
expect_exit 1 cmake -S refused -B refused/build -DCMAKE_PREFIX_PATH="$MUSTER_PREFIX"
expect_contains stderr "component comm: it is C++"
