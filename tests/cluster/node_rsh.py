#!/usr/bin/python3
"""Stands in for ssh between the nodes of a test cluster, which run no sshd.

  node_rsh.py serve FOLDER            on each node: obeys through a socket in FOLDER, called as the node
  node_rsh.py [-x] HOST COMMAND...    as ssh: a shell on HOST runs the words, joined by blanks; its exit code is ours

Like ssh it gives the command none of the caller's variables, a home folder to be in, and SIGHUP when the caller is gone. Descriptors 0 to 2 are handed
over as they are. NODE_RSH_FOLDER says where the sockets are; HOST may be a full name.
"""
import array
import os
import select
import signal
import socket
import subprocess
import sys


def obey(connection):
    message, ancillary, _, _ = connection.recvmsg(1 << 20, socket.CMSG_SPACE(3 * 4))
    fds = array.array("i", ancillary[0][2])
    variables = {name: os.environ[name] for name in ("HOME", "USER", "LOGNAME", "PATH", "SLURM_CONF") if name in os.environ}
    variables["NODE_RSH_FOLDER"] = os.path.dirname(connection.getsockname())
    child = subprocess.Popen(["/bin/bash", "-c", message.decode()], stdin=fds[0], stdout=fds[1], stderr=fds[2], env=variables,
                             cwd=variables.get("HOME", "/"), start_new_session=True)
    for fd in fds:
        os.close(fd)
    ended = os.pidfd_open(child.pid)
    readable, _, _ = select.select([ended, connection], [], [])
    if ended not in readable:  # the caller went first
        os.killpg(child.pid, signal.SIGHUP)
    status = child.wait()
    try:
        connection.sendall(bytes([status if status >= 0 else 128 - status]))
    except OSError:
        pass


def serve(folder):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    path = os.path.join(folder, socket.gethostname().split(".")[0])
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    os.chmod(path + ".new", 0o700)
    listener.listen(64)
    os.rename(path + ".new", path)  # whoever finds it can connect
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            obey(connection)
            os._exit(0)
        connection.close()
        while True:  # those that have ended
            try:
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    break
            except ChildProcessError:
                break


def call(words):
    while words and words[0].startswith("-"):
        words = words[1:]
    host = words[0].split("@")[-1].split(".")[0]
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(os.path.join(os.environ["NODE_RSH_FOLDER"], host))
    except OSError as fault:
        sys.stderr.write(f"node_rsh: {host}: {fault.strerror}\n")
        return 255
    connection.sendmsg([" ".join(words[1:]).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
    answer = connection.recv(1)
    return answer[0] if answer else 255


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "serve":
        serve(sys.argv[2])
    sys.exit(call(sys.argv[1:]))
