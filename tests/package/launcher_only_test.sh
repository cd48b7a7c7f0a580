# -DMUSTER_LAUNCHER_ONLY=ON: muster alone, and nothing of MPI, HDF5 or CUDA looked for. Configured only: its sources are those of the tested build.
. "$(dirname "$0")/../cli/lib.sh"
command -v ninja >/dev/null || skip "no ninja"
expect_exit 0 cmake -G Ninja -S "$MUSTER_SOURCE_DIR" -B build -DMUSTER_LAUNCHER_ONLY=ON -DMUSTER_TESTS=OFF
! grep -q '^MPI_\|^hdf5\|^xxhash\|NVCC' build/CMakeCache.txt || fail "looked for $(grep -m1 '^MPI_\|^hdf5\|^xxhash\|NVCC' build/CMakeCache.txt)"
ninja -C build -t targets all >targets
expect_contains targets "bin/muster: CXX_EXECUTABLE_LINKER"
! grep -q 'muster_comm\b\|muster_io\|muster-stage\|muster-bench' targets || fail "a launcher alone builds $(grep -m1 'muster_comm\b\|muster_io\|muster-stage' targets)"
