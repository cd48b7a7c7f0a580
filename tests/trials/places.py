"""Where random_faults.py runs muster: on one node, over namespaces as nodes, or in a Slurm cluster of namespaces. Each place starts a run, tells its processes, cuts
nodes off, and finds what a run has left."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
NET = "10.79.0"


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class Process:
    """One of /proc, with its role in the run: rank, launcher, guardian, keeper, leader, agent; none of these: another one."""

    def __init__(self, pid):
        self.pid = pid
        stat = read(f"/proc/{pid}/stat").decode(errors="replace")
        self.words = read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")[:-1]
        comm, _, rest = stat.partition("(")[2].rpartition(")")
        self.comm = comm
        self.state, self.parent = (rest.split() + ["X", "0"])[:2]
        self.began = (rest.split() + ["0"] * 20)[19]
        try:
            self.net = os.readlink(f"/proc/{pid}/ns/net")
        except OSError:
            self.net = ""

    def variables(self):
        return dict(one.split("=", 1) for one in read(f"/proc/{self.pid}/environ").decode(errors="replace").split("\0") if "=" in one)

    def lives(self):
        return self.state not in "ZX"


def processes():
    return [one for one in (Process(int(name)) for name in os.listdir("/proc") if name.isdigit()) if one.words and one.lives()]


def role_of(process, all_of):
    words = process.words
    if process.comm.startswith("python") and any(word.endswith("ledger.py") for word in words):
        return "rank"
    if process.comm == "muster-keeper":
        return "keeper"
    if process.comm == "muster-keepers":
        return "leader"
    if process.comm == "muster-agent":
        return "agent"
    if process.comm == "muster" and words[1:2] == ["run"]:
        above = all_of.get(int(process.parent))
        return "launcher" if above is not None and above.comm == "muster" and above.words[1:2] == ["run"] else "guardian"
    return ""


class Node:
    """This machine alone, in namespaces of processes, network and /dev/shm that the run has for itself."""

    hosts = ()

    def __init__(self, muster, folder):
        self.muster, self.folder = muster, folder
        self.spared = set()
        os.makedirs(folder / "tmp", exist_ok=True)

    def command(self, story):
        return ["-n", str(story.ranks), "--slots-per-node", str(story.slots)]

    def start(self, story, program, out, err):
        words = [str(self.muster), "run", *self.command(story), *story.options(), "--", *program]
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("MUSTER", "SLURM"))}
        variables.update(self.variables(story))
        self.spared = {one.pid for one in processes()}
        return subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=variables)

    def variables(self, story):
        return {"TMPDIR": str(self.folder / "tmp"), "MUSTER_COMM_DEADLINE": "8s", "LEDGER_FOLDER": str(self.folder), "OMP_NUM_THREADS": "1"}

    def ours(self):
        """The run's processes by role, in the order of their numbers."""
        seen = [one for one in processes() if one.pid not in self.spared]
        all_of = {one.pid: one for one in seen}
        by_role = {}
        for one in sorted(seen, key=lambda one: one.pid):
            by_role.setdefault(role_of(one, all_of), []).append(one)
        return by_role

    def host_of(self, process):
        return ""

    def left(self):
        """What should not be there when the run is over, as words."""
        found = [f"process {one.pid}: {' '.join(one.words)[:150]} ({one.state})" for one in processes() if one.pid not in self.spared and one.pid != os.getpid()]
        return found + self.files_left()

    def files_left(self):
        return [f"file {path}" for folder in ("/dev/shm", self.folder / "tmp") for path in pathlib.Path(folder).rglob("*") if self.is_left(path)]

    @staticmethod
    def is_left(path):  # torch makes a folder for a module when it is imported, and removes it where it ends by itself
        return not any(part.startswith(("tmp", "_remote_module", "__pycache__")) for part in path.parts[-2:] if part != "tmp")

    def close(self):
        pass


class Namespaces(Node):
    """Hosts that are namespaces, joined by a bridge; muster reaches them by node_rsh.py."""

    def __init__(self, muster, folder, hosts):
        super().__init__(muster, folder)
        self.shell = TESTS / "cluster" / "node_rsh.py"
        self.sockets = folder / "rsh"
        self.sockets.mkdir()
        self.hosts = tuple(f"node{at}" for at in range(1, hosts + 1))
        names = ["127.0.0.1 localhost", f"{NET}.1 head", *(f"{NET}.{10 + at} {name}" for at, name in enumerate(self.hosts, 1))]
        (folder / "names").write_text("\n".join(names) + "\n")
        self.call("mount", "--bind", folder / "names", "/etc/hosts")
        self.call("hostname", "head")
        for words in ("link add br0 type bridge", f"addr add {NET}.1/24 dev br0", "link set br0 up"):
            self.call("ip", *words.split())
        self.inits, self.nets = {}, {}
        for at, name in enumerate(self.hosts, 1):
            self.boot(at, name)

    @staticmethod
    def call(*words):
        subprocess.run([str(word) for word in words], check=True)

    def boot(self, at, name):
        script = 'hostname "$0"; mount -t tmpfs tmpfs /dev/shm; ip link set lo up; "$1" "$2" serve "$3" & while :; do sleep 1000000 & wait; done'
        unshare = subprocess.Popen(
            ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "bash", "-c", script, name, sys.executable, str(self.shell), str(self.sockets)], stdin=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not (self.sockets / name).exists():
            assert time.monotonic() < end and unshare.poll() is None, f"{name} did not start"
            time.sleep(0.02)
        init = int(subprocess.run(["pgrep", "-P", str(unshare.pid)], stdout=subprocess.PIPE, check=True).stdout.split()[0])
        self.call("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", init)
        self.call("ip", "link", "set", name, "master", "br0", "up")
        inside = ["nsenter", "-t", init, "-n", "ip"]
        self.call(*inside, "addr", "add", f"{NET}.{10 + at}/24", "dev", "eth0")
        self.call(*inside, "link", "set", "eth0", "up")
        self.inits[name] = init
        self.nets[os.readlink(f"/proc/{init}/ns/net")] = name

    def command(self, story):
        return ["-H", ",".join(f"{name}:{story.slots}" for name in self.hosts)] + (["-n", str(story.ranks)] if story.spares else [])

    def variables(self, story):
        return {**super().variables(story), "NODE_RSH_FOLDER": str(self.sockets), "MUSTER_REMOTE_SHELL": str(self.shell)}

    def host_of(self, process):
        return self.nets.get(process.net, "")

    def ours(self):
        by_role = super().ours()
        by_role.pop("", None)
        return by_role

    def set_link(self, name, state):
        subprocess.run(["ip", "link", "set", name, state], check=False)

    def cut_power(self, name):
        self.set_link(name, "down")
        os.kill(self.inits[name], signal.SIGKILL)

    def left(self):
        found = [f"process {one.pid} on {self.host_of(one) or 'head'}: {' '.join(one.words)[:150]} ({one.state})" for one in processes()
                 if one.pid not in self.spared and not ("serve" in one.words and str(self.shell) in one.words) and one.words[0] != "sleep"]
        for name, init in self.inits.items():
            folder = pathlib.Path(f"/proc/{init}/root/dev/shm")
            found += [f"file {path.relative_to(folder)} in /dev/shm of {name}" for path in (folder.rglob("*") if folder.exists() else ())]
        return found + self.files_left()


class Slurm(Node):
    """Nodes of slurm_cluster.sh; each run has an allocation of its own."""

    def __init__(self, muster, folder, hosts):
        self.script = TESTS / "cluster" / "slurm_cluster.sh"
        self.settings = {**os.environ, "CLUSTER_DIR": f"/tmp/muster-trial.{os.getpid()}", "CLUSTER_PREFIX": f"mt{os.getpid()}",
                         "CLUSTER_NODES": str(hosts), "CLUSTER_GPUS": "0", "CLUSTER_CPUS": "2"}
        self.hosts = tuple(f"node{at}" for at in range(1, hosts + 1))
        self.built = pathlib.Path(muster).resolve().parent.parent
        self.dirty = set()
        self.up()
        super().__init__(self.work / "prefix" / "bin" / "muster", self.work)

    def cluster(self, *words, check=True, **more):
        return subprocess.run([str(self.script), *words], env=self.settings, check=check, stdin=subprocess.DEVNULL, **more)

    def up(self):
        self.cluster("up")
        self.work = pathlib.Path(self.settings["CLUSTER_DIR"]) / "work"
        for part in ("launcher", "libraries", "python"):
            subprocess.run(["cmake", "--install", str(self.built), "--prefix", str(self.work / "prefix"), "--component", part], check=True, stdout=subprocess.DEVNULL)
        shutil.copy(HERE / "ledger.py", self.work / "ledger.py")
        subprocess.run(["chmod", "-R", "a+rX", str(self.work / "prefix"), str(self.work / "ledger.py")], check=True)
        self.nets = {}
        for name in ("head", *self.hosts):
            init = int(read(f"{self.settings['CLUSTER_DIR']}/run/{name}.init"))
            self.nets[os.readlink(f"/proc/{init}/ns/net")] = name

    def start(self, story, program, out, err):
        for name in self.dirty:
            self.cluster("link", name, "up", check=False, stderr=subprocess.DEVNULL)
        if self.dirty:  # nodes that Slurm has lost come back by and by: another cluster is there sooner
            self.cluster("down")
            self.up()
            self.dirty = set()
        for path in (self.work / "run").glob("*"):
            path.unlink()
        (self.work / "run").mkdir(exist_ok=True, mode=0o777)
        os.chmod(self.work / "run", 0o777)
        self.before = ()
        self.before = set(self.left())  # folders of agents that an earlier run's faults have killed
        variables = {**self.settings, "MUSTER_COMM_DEADLINE": "8s", "LEDGER_FOLDER": str(self.work / "run"), "OMP_NUM_THREADS": "1"}
        program = [program[0], str(self.work / "ledger.py"), *program[2:]]
        by_shell = ["sh", "-c", '"$@"; exit $?', "sh"]  # salloc itself ends with 0 or 1 if a signal has ended its command
        words = [str(self.script), "run", "salloc", "-Q", "-K", f"-N{story.hosts}", f"--ntasks-per-node={story.slots}", "--no-kill", *by_shell, "prefix/bin/muster",
                 "run", "--ranks-per-node", str(story.slots), *story.options(), "--", *program]
        return subprocess.Popen(words, cwd=self.work, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=variables)

    def ours(self):
        seen = [one for one in processes() if one.net in self.nets]
        all_of = {one.pid: one for one in seen}
        by_role = {}
        for one in sorted(seen, key=lambda one: one.pid):
            by_role.setdefault(role_of(one, all_of), []).append(one)
        by_role.pop("", None)
        return by_role

    def host_of(self, process):
        return self.nets.get(process.net, "")

    def set_link(self, name, state):
        self.dirty.add(name)
        self.cluster("link", name, state, check=False)

    def cut_power(self, name):
        self.dirty.add(name)
        self.cluster("crash", name, check=False)

    def left(self):
        done = self.cluster("left", check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
        return [line for line in done.stdout.splitlines() if "file /tmp/tmp" not in line and line not in self.before]

    def close(self):
        self.cluster("down", check=False)
        shutil.rmtree(self.settings["CLUSTER_DIR"], ignore_errors=True)


def make_place(where, muster, folder, hosts):
    if where == "slurm":
        return Slurm(muster, folder, hosts)
    return Node(muster, folder) if where == "node" else Namespaces(muster, folder, hosts)
