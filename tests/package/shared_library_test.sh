# libmuster_comm.so: what it exports and needs; used from C by pkg-config, and from Python by ctypes, over shared memory and MPI.
. "$(dirname "$0")/../cli/lib.sh"
here=$MUSTER_SOURCE_DIR/tests/package
library=$(find "$MUSTER_PREFIX" -name libmuster_comm.so)
folder=$(dirname "$library")
muster=$MUSTER_PREFIX/bin/muster
run() { "$muster" run -q --timeout 60s "$@"; }

# Exports: what the header declares and nothing else. The number in the name is the ABI's.
header=$MUSTER_PREFIX/include/muster/comm/c_api/muster_comm.h
sed -n 's/.*\b\(muster_[a-z_]*\)(.*/\1/p' "$header" | sort -u >declared
nm -D --defined-only "$library" | awk '{print $3}' | sort >exported
diff declared exported || fail "what libmuster_comm.so exports is not what muster_comm.h declares"
abi=$(awk '/#define MUSTER_COMM_ABI/ {print $3}' "$header")
readelf -d "$library" >dynamic
expect_contains dynamic "soname: [libmuster_comm.so.$abi]"
! grep NEEDED dynamic | grep -q 'mpi\|pmix\|hwloc\|hdf5' || fail "libmuster_comm.so needs $(grep NEEDED dynamic | grep 'mpi\|pmix\|hwloc\|hdf5')"
for module in "$folder"/muster/libmuster_comm_*.so; do
    [ "$(nm -D --defined-only "$module" | awk '{print $3}')" = muster_comm_module ] || fail "$module exports more than its entry"
done

# C, with what pkg-config says and nothing else. A program that only loads the library ends with its own code, and is not taken for a rank of MPI.
PKG_CONFIG_PATH=$(dirname "$(find "$MUSTER_PREFIX" -name muster.pc)")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs muster)"
expect_exit 0 "$CC" -std=c11 -Wall -Wextra -Werror -o allreduce "$here/allreduce.c" "${flags[@]}"
export LD_LIBRARY_PATH=$folder
expect_exit 0 ./allreduce
expect_contains stdout "self: 1 from 1 ranks"
expect_exit 0 run -n 2 -- ./allreduce exit 0
expect_exit 3 run -n 2 -- ./allreduce exit 3
expect_exit 0 run -n 2 -- ./allreduce
expect_contains stdout "shm: 3 from 2 ranks"

# Python.
ctypes() { run -n 2 -- /usr/bin/python3 "$here/allreduce.py" "$library" "$@"; }
if [ -x /usr/bin/python3 ]; then
    expect_exit 0 ctypes exit 0
    expect_exit 3 ctypes exit 3
    expect_exit 0 ctypes
    expect_contains stdout "shm: 3 from 2 ranks"
fi

# Without its module for MPI, mpi is a backend that this machine has not.
cp -r "$folder" bare
rm bare/muster/*
LD_LIBRARY_PATH=$PWD/bare expect_exit 0 ./allreduce
LD_LIBRARY_PATH=$PWD/bare MUSTER_COMM_BACKEND=mpi expect_exit 40 ./allreduce
[ "$MUSTER_HAVE_MPI" = ON ] || exit 0
expect_contains stderr "bare/muster/libmuster_comm_mpi.so is missing; install muster's libraries with MPI"
MUSTER_COMM_BACKEND=mpi MUSTER_COMM_MPI_MODULE=$folder/muster/libmuster_comm_mpi.so.1 expect_exit 40 ./allreduce
expect_contains stderr "libmuster_comm_mpi.so.1 is missing"
MUSTER_COMM_BACKEND=mpi MUSTER_COMM_MPI_MODULE=$library expect_exit 40 ./allreduce
expect_contains stderr "is no module of muster"

# MPI. An error of the module's comes over as itself: one rank has the wrong idea of the world.
MUSTER_COMM_BACKEND=mpi expect_exit 0 run -n 2 -- ./allreduce
expect_contains stdout "mpi: 3 from 2 ranks"
if [ -x /usr/bin/python3 ]; then
    MUSTER_COMM_BACKEND=mpi expect_exit 0 ctypes
    expect_contains stdout "mpi: 3 from 2 ranks"
fi
if /usr/bin/python3 -c 'import mpi4py' 2>/dev/null; then
    MUSTER_COMM_BACKEND=mpi expect_exit 0 ctypes mpi4py
    expect_contains stdout "mpi: 3 from 2 ranks"
    expect_exit 1 ctypes lost
    expect_contains stderr "world"
fi
