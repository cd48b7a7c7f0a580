#!/usr/bin/env python3
"""A stand-in for `apptainer exec`, of which the test cluster has none: namespaces, folders and variables as Apptainer 1.4.5 without setuid was seen to make them.

    apptainer exec [--nv] [-B|--bind SRC[:DEST],…] [--env NAME=VALUE] [--pwd DIR] [-p|--pid] IMAGE COMMAND…

An image is a folder. Each command has a user and a mount namespace of its own; with --pid one of process numbers too, with an init. Of the node it sees /dev, /proc, /sys,
/tmp, /var/tmp, the home and the working folder, and what it is told to bind, also by APPTAINER_BIND. A folder to bind that is not there is the end. The environment
goes in, but for PATH and LD_LIBRARY_PATH; APPTAINERENV_NAME becomes NAME. Signals that come while the container is made are lost; with a file `hold` beside the stand-in it
is made when that is gone, and `making.HOST.PID` tells that it is being made. The runtime stays as the parent: it passes signals on, and dies of the signal that its
command died of (with --pid it ends with 128 + that number)."""
import contextlib
import ctypes
import os
import pwd
import signal
import sys
import time

NEWNS, NEWPID, NEWUSER, NEWIPC = 0x20000, 0x20000000, 0x10000000, 0x8000000
BIND, REC = 0x1000, 0x4000
PR_SET_NAME = 15
libc = ctypes.CDLL(None, use_errno=True)


def fatal(text):
    print("FATAL:   " + text, file=sys.stderr)
    sys.exit(255)


def checked(result, what):
    if result != 0:
        fatal(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind=None, flags=0):
    encode = lambda text: text.encode() if text else None
    checked(libc.mount(encode(source), encode(target), encode(kind), flags, None), f"while mounting {source} on {target}")


def read_arguments(words):
    given = {"binds": [], "env": {}, "pwd": os.getcwd(), "spaces": NEWUSER | NEWNS}
    if words[:1] != ["exec"]:
        fatal("this stand-in knows exec only")
    words = words[1:]
    while words and words[0].startswith("-"):
        word, words = words[0], words[1:]
        if word in ("--nv", "--rocm"):
            continue
        if word in ("-p", "--pid", "--ipc"):
            given["spaces"] |= NEWIPC if word == "--ipc" else NEWPID
            continue
        if word not in ("-B", "--bind", "--env", "--pwd"):
            fatal(f"this stand-in does not know {word}")
        value, words = words[0], words[1:]
        if word == "--env":
            name, _, text = value.partition("=")
            given["env"][name] = text
        elif word == "--pwd":
            given["pwd"] = value
        else:
            given["binds"] += value.split(",")
    given["binds"] += [bind for bind in os.environ.get("APPTAINER_BIND", "").split(",") if bind]
    if len(words) < 2:
        fatal("an image and a command are missing")
    given["image"], given["command"] = os.path.abspath(words[0]), words[1:]
    return given


def make_point(root, path, of):
    """Where `of` is to be seen in the container: a folder or a file there."""
    point = root + os.path.normpath(path)
    if os.path.isdir(of):
        os.makedirs(point, exist_ok=True)
    elif not os.path.exists(point):
        os.makedirs(os.path.dirname(point), exist_ok=True)
        open(point, "w").close()
    return point


def build_root(root, given):
    mount("tmpfs", root, "tmpfs")
    for name in os.listdir(given["image"]):
        inside, point = os.path.join(given["image"], name), os.path.join(root, name)
        if os.path.islink(inside):
            os.symlink(os.readlink(inside), point)
        elif os.path.isdir(inside) and not os.listdir(inside):
            os.mkdir(point)  # what is bound below it needs folders there
        elif os.path.isdir(inside) and name == "etc":
            os.mkdir(point)
            for file in os.listdir(inside):
                mount(os.path.join(inside, file), make_point(root, "/etc/" + file, os.path.join(inside, file)), None, BIND | REC)
        else:
            mount(inside, make_point(root, "/" + name, inside), None, BIND | REC)
    home = pwd.getpwuid(os.getuid()).pw_dir
    for path in ["/dev", "/sys", "/tmp", "/var/tmp", "/etc/hosts", "/etc/passwd", "/etc/group", home, given["pwd"]]:
        if os.path.exists(path):
            mount(path, make_point(root, path, path), None, BIND | REC)
    for bind in given["binds"]:
        source, _, rest = bind.partition(":")
        if not os.path.exists(source):
            fatal(f"container creation failed: mount {source} error: mount source {source} doesn't exist")
        mount(source, make_point(root, rest.partition(":")[0] or source, source), None, BIND | REC)


def environment_of(given):
    own = {name: text for name, text in os.environ.items() if name not in ("PATH", "LD_LIBRARY_PATH")}
    own["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    for name, text in os.environ.items():
        if name.startswith("APPTAINERENV_"):
            own[name.removeprefix("APPTAINERENV_")] = text
    return own | given["env"] | {"APPTAINER_CONTAINER": given["image"], "APPTAINER_BIND": ",".join(given["binds"])}


CAUGHT = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def hold():
    folder = os.path.dirname(os.path.abspath(__file__))
    if os.path.exists(os.path.join(folder, "hold")):
        open(os.path.join(folder, f"making.{os.uname().nodename}.{os.getpid()}"), "w").close()
        while os.path.exists(os.path.join(folder, "hold")):
            time.sleep(0.02)


def run(given, root):
    """In the container: becomes the command."""
    for number in CAUGHT:
        signal.signal(number, signal.SIG_DFL)
    if given["spaces"] & NEWPID:
        mount("proc", make_point(root, "/proc", "/proc"), "proc")
    else:
        mount("/proc", make_point(root, "/proc", "/proc"), None, BIND | REC)
    os.chroot(root)
    os.chdir(given["pwd"])
    try:
        os.execvpe(given["command"][0], given["command"], environment_of(given))
    except OSError:
        fatal(f'"{given["command"][0]}": executable file not found in $PATH')


def pass_on(child, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def wait_for(child, is_init=False):
    """As the command ended so does this process."""
    for number in CAUGHT:
        signal.signal(number, lambda got, frame: pass_on(child, got))
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    if is_init:
        os._exit(128 + os.WTERMSIG(status))
    signal.signal(os.WTERMSIG(status), signal.SIG_DFL) if os.WTERMSIG(status) != signal.SIGKILL else None
    os.kill(os.getpid(), os.WTERMSIG(status))


def main():
    given = read_arguments(sys.argv[1:])
    if not os.path.exists(given["image"]):
        fatal(f'could not open image {given["image"]}: no such file or directory')
    user, group = os.getuid(), os.getgid()
    checked(libc.prctl(PR_SET_NAME, b"starter"), "prctl")
    for number in CAUGHT:
        signal.signal(number, lambda got, frame: None)
    hold()
    checked(libc.unshare(given["spaces"]), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "session")
    build_root(root, given)
    child = os.fork()
    if child != 0:
        wait_for(child)
    if given["spaces"] & NEWPID:
        command = os.fork()
        if command != 0:
            wait_for(command, is_init=True)
    run(given, root)


main()
