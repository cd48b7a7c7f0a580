#!/usr/bin/env python3
"""A hostile caller of the launcher's ports, for the tests of this folder. PORT is one of this host, ADDRESS:PORT one of any.

port_caller.py hold N PORT...        holds N connections that say nothing, to the ports in turn, until standard input ends; prints "held"
port_caller.py flood PER_SECOND PORT...  connects and closes at this rate until standard input ends; prints "flooding", at the end how many
port_caller.py from ADDRESS PORT     connects from ADDRESS; prints "closed" or "open" (after 5 s)
port_caller.py pmix [abort|log]      joins the PMIx server that the variables PMIX_* name; prints PMIx_Init's status, 0 for success
"""
import ctypes
import ctypes.util
import resource
import select
import socket
import sys
import time


def place_of(port):
    address, _, number = port.rpartition(":")
    return address or "127.0.0.1", int(number)


def connect(port, source=None):
    s = socket.socket()
    s.settimeout(5)
    if source and place_of(port)[0].startswith("127."):
        s.bind((source, 0))
    s.connect(place_of(port))
    return s


def stdin_ended():
    return bool(select.select([sys.stdin], [], [], 0)[0]) and not sys.stdin.buffer.raw.read(1)


def hold(count, ports):
    held = []
    for i in range(count):
        try:
            held.append(connect(ports[i % len(ports)], f"127.0.{i // 250 % 250}.{2 + i % 250}"))
        except OSError:
            pass
    print("held", flush=True)
    sys.stdin.read()


def flood(rate, ports):
    print("flooding", flush=True)
    start, done, places = time.monotonic(), 0, [place_of(port) for port in ports]
    while not stdin_ended():
        for _ in range(100):
            s = socket.socket()
            s.setblocking(False)
            try:
                s.connect(places[done % len(places)])
            except OSError:
                pass
            s.close()
            done += 1
        ahead = done / rate - (time.monotonic() - start)
        if ahead > 0:
            time.sleep(ahead)  # the rate that was asked for
    print(done, "connections", flush=True)


def caller_from(address, port):
    s = connect(port, address)
    try:
        print("closed" if s.recv(1) == b"" else "open")
    except ConnectionResetError:
        print("closed")
    except socket.timeout:
        print("open")


class proc(ctypes.Structure):
    _fields_ = [("nspace", ctypes.c_char * 256), ("rank", ctypes.c_uint32)]


def pmix(what):
    lib = ctypes.CDLL("libpmix.so.2")
    me = proc()
    status = lib.PMIx_Init(ctypes.byref(me), None, ctypes.c_size_t(0))
    print(status, flush=True)
    if status != 0:
        return
    if what == "abort":
        lib.PMIx_Abort(77, b"mallory was here", None, ctypes.c_size_t(0))
    lib.PMIx_Finalize(None, ctypes.c_size_t(0))


soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
what, rest = sys.argv[1], sys.argv[2:]
if what == "hold":
    hold(int(rest[0]), rest[1:])
elif what == "flood":
    flood(int(rest[0]), rest[1:])
elif what == "from":
    caller_from(rest[0], rest[1])
else:
    pmix(rest[0] if rest else "")
