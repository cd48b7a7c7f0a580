# Starts a program to which the kernel refuses sched_setaffinity with EPERM, as seccomp profiles of containers do: refused_affinity.py PROGRAM ARGUMENTS…
import ctypes
import os
import struct
import sys

NUMBERS = {"x86_64": 203, "aarch64": 122}  # of sched_setaffinity
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000

steps = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, NUMBERS[os.uname().machine]), (RETURN, 0, 0, ERRNO | 1), (RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


program = Program(len(steps), ctypes.cast(code, ctypes.c_void_p))
prctl = ctypes.CDLL(None, use_errno=True).prctl
if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
    sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
