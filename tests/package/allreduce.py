"""The C interface by ctypes. allreduce.py LIBRARY [exit N | mpi4py | lost]

exit N: loads the library, initialises nothing, and ends with N. mpi4py: MPI is initialised by mpi4py before. lost: the same, with no variable left that tells
of the other ranks, so that only MPI can.
"""
import ctypes
import os
import sys


class Tensor(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("input", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("out_elements", ctypes.c_size_t),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("dimensions", ctypes.c_int),
        ("type", ctypes.c_int),
        ("memory", ctypes.c_int),
    ]


what = sys.argv[2] if len(sys.argv) > 2 else ""
if what in ("mpi4py", "lost"):
    from mpi4py import MPI

    assert MPI.COMM_WORLD.Get_size() == 2
if what == "lost":
    for name in [name for name in os.environ if name.startswith(("MUSTER_", "PMIX_", "PMI_", "OMPI_", "SLURM_")) or "RANK" in name or "SIZE" in name]:
        if not name.startswith("MUSTER_COMM"):
            del os.environ[name]

muster = ctypes.CDLL(sys.argv[1])
muster.muster_last_error.restype = ctypes.c_char_p
muster.muster_comm_backend.restype = ctypes.c_char_p
if what == "exit" and muster.muster_comm_abi() > 0:
    sys.exit(int(sys.argv[3]))


def check(code):
    if code != 0:
        sys.exit("failed with %d: %s" % (code, muster.muster_last_error().decode()))


comm = ctypes.c_void_p()
check(muster.muster_comm_create(ctypes.byref(comm)))
value = ctypes.c_float(muster.muster_comm_rank(comm) + 1)
shape = (ctypes.c_int64 * 1)(1)
address = ctypes.addressof(value)
tensor = Tensor(ctypes.sizeof(Tensor), b"value", address, address, 0, shape, 1, 0, 0)
check(muster.muster_allreduce(comm, ctypes.byref(tensor), 0, None))
print("%s: %g from %d ranks" % (muster.muster_comm_backend(comm).decode(), value.value, muster.muster_comm_size(comm)))
check(muster.muster_comm_destroy(comm))
