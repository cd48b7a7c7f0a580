#!/usr/bin/python3
"""Stands in for Flux between the nodes of a test cluster: does what flux-core 0.88.0 was measured to do, no more.

  flux_stand_in.py serve FOLDER            on each node: its broker, obeys through a socket in FOLDER
  flux_stand_in.py job FOLDER NODES CMD    runs CMD on the first node as the script of a job of "node1:0-1:1 node2:0-1:0", each a host, its cores and
                                           its GPUs by number; ends with its exit code. SIGUSR1 to the process whose number is in FOLDER/running
                                           is flux cancel; $TIME_LIMIT, in seconds, is the job's
  flux                                     a link to this program in FOLDER/bin, for the job: getattr, resource R, exec, job eventlog,
                                           resource status

A process of flux exec has the variables of flux exec, its standard input and its own group; it is killed when flux exec vanishes. The script gets
CUDA_VISIBLE_DEVICES of its own host. At the time limit its group gets SIGALRM and SIGHUP, SIGTERM and SIGHUP after 5 s, SIGKILL after 10 s;
flux cancel sends SIGTERM and SIGHUP, and SIGKILL after 5 s. The log of events tells of it before.
"""
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

JOB = "\u0192Stand1n"


def read_ids(text):
    ids = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        ids += range(int(first), int(last or first) + 1)
    return ids


def end_group(leader, number):
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        pass


def call(folder, host, request, descriptors=()):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.path.join(folder, host))
    socket.send_fds(connection, [b"F"], list(descriptors) or [0])
    connection.sendall(json.dumps(request).encode() + b"\n")
    return connection


def obey(connection):
    """One process: started with the caller's own streams, waited for, signalled as the caller says."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    request = json.loads(connection.makefile().readline())
    streams = (streams * 3)[:3]
    process = subprocess.Popen(request["argv"], stdin=streams[0], stdout=streams[1], stderr=streams[2], env=request["env"],
                               cwd=request["cwd"], process_group=0)
    for descriptor in set(streams):
        os.close(descriptor)
    ended = os.pidfd_open(process.pid)
    while True:
        ready = select.select([ended, connection], [], [])[0]
        if ended in ready:
            break
        number = connection.recv(1)
        end_group(process.pid, number[0] if number else signal.SIGKILL)
        if not number:
            connection = open("/dev/null")
            process.wait()
            break
    status = process.wait()
    try:
        connection.sendall(bytes([status if status >= 0 else 128 - status]))
    except (OSError, AttributeError):
        pass


def serve(folder):
    path = os.path.join(folder, socket.gethostname())
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen(64)
    os.rename(path + ".new", path)  # whoever finds it can connect
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            obey(connection)
            os._exit(0)
        connection.close()


def note(folder, name, context=None):
    with open(f"{folder}/events", "a") as file:
        file.write(json.dumps({"timestamp": time.time(), "name": name} | ({"context": context} if context else {})) + "\n")


def run_job(folder, nodes, argv):
    hosts = [dict(zip(("host", "cores", "gpus"), node.split(":"))) for node in nodes.split()]
    limit = float(os.environ.get("TIME_LIMIT", 0))
    kill_after = float(os.environ.get("KILL_TIMEOUT", 5))  # Flux's setting of that name, and its default
    now = time.time()
    lite = [{"rank": str(i), "children": {"core": h["cores"]} | ({"gpu": h["gpus"]} if h["gpus"] else {})} for i, h in enumerate(hosts)]
    with open(f"{folder}/R", "w") as file:
        json.dump({"version": 1, "execution": {"R_lite": lite, "starttime": now, "expiration": now + limit if limit else 0.0,
                                               "nodelist": [h["host"] for h in hosts]}}, file)
    open(f"{folder}/events", "w").close()
    note(folder, "start")
    gpus = ",".join(map(str, read_ids(hosts[0]["gpus"])))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "TIME_LIMIT", "KILL_TIMEOUT"))} | {
        "FLUX_URI": f"local://{folder}/local", "FLUX_ENCLOSING_ID": JOB, "CUDA_VISIBLE_DEVICES": gpus or "-1",
        "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    script = call(folder, hosts[0]["host"], {"argv": argv, "env": env, "cwd": os.getcwd()}, (0, 1, 2))
    cancelled = []
    signal.signal(signal.SIGUSR1, lambda *_: cancelled.append(True))
    with open(f"{folder}/running.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{folder}/running.new", f"{folder}/running")
    signals = []  # when, and which
    end = time.monotonic() + limit if limit else None
    while True:
        if cancelled:
            cancelled.clear()
            note(folder, "exception", {"type": "cancel", "severity": 0, "note": "", "userid": os.getuid()})
            signals, end = [(time.monotonic(), (signal.SIGTERM, signal.SIGHUP)), (time.monotonic() + kill_after, (signal.SIGKILL,))], None
        if end is not None and time.monotonic() >= end:
            note(folder, "exception", {"type": "timeout", "severity": 0, "note": "resource allocation expired", "userid": os.getuid()})
            signals = [(end, (signal.SIGALRM, signal.SIGHUP)), (end + 5, (signal.SIGTERM, signal.SIGHUP)), (end + 5 + kill_after, (signal.SIGKILL,))]
            end = None
        while signals and time.monotonic() >= signals[0][0]:
            script.sendall(bytes(signals.pop(0)[1]))
        if select.select([script], [], [], 0.02)[0]:
            answer = script.recv(1)
            return answer[0] if answer else 255


def flux_exec(folder, words):
    rank, cwd = 0, os.getcwd()
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option.startswith("--rank="):
            rank = int(option[7:])
        elif option.startswith("--dir="):
            cwd = option[6:]
        elif option != "--quiet":
            sys.stderr.write(f"flux-exec: unrecognized option '{option}'\n")
            return 1
    try:
        connection = call(folder, read_hosts(folder)[rank], {"argv": words, "env": dict(os.environ), "cwd": cwd}, (0, 1, 2))
    except OSError:
        sys.stderr.write(f"flux-exec: Error: rank {rank}: {words[0]}: No route to host\n")
        return 68
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: connection.sendall(bytes([n])))
    answer = connection.recv(1)
    return answer[0] if answer else 255


def read_hosts(folder):
    with open(f"{folder}/R") as file:
        return json.load(file)["execution"]["nodelist"]


def flux(folder, words):
    if words[:1] == ["exec"]:
        return flux_exec(folder, words[1:])
    if words == ["getattr", "hostlist"]:
        print(",".join(read_hosts(folder)))
    elif words == ["getattr", "security.owner"]:
        print(os.environ.get("FLUX_STAND_IN_OWNER", os.getuid()))
    elif words == ["resource", "R"]:
        print(open(f"{folder}/R").read())
    elif words == ["--parent", "job", "eventlog", "--format=json", "fStand1n"]:
        print(open(f"{folder}/events").read(), end="")
    elif words[:2] == ["resource", "status"]:
        print(end="")
    else:
        sys.stderr.write(f"flux: the stand-in knows no {words}\n")
        return 1
    return 0


if __name__ == "__main__":
    called, args = os.path.basename(sys.argv[0]), sys.argv[1:]
    if called == "flux":
        sys.exit(flux(os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0]))), args))
    if args[0] == "serve":
        serve(args[1])
    sys.exit(run_job(args[1], args[2], args[3:]))
