#!/usr/bin/env python3
"""What a run of the engine remote costs its launcher and its starter, against the number of hosts.

  measure.py [--muster PATH] made-up --agents PATH [--ranks R] [--exchange BYTES] HOSTS...     agents that are made up (made_up_agents): no program runs
  measure.py [--muster PATH] namespaces [--ranks R] [--beside mpirun] [--repeats N] HOSTS...   real agents, shims and ranks of /bin/true; as root

In both all is on this one machine. A host of `namespaces` is a UTS and IPC namespace that a stand-in for ssh makes; all share a network. Times are those of
a machine that does the work of all hosts: they say what grows, and how. Printed for each number of hosts: seconds until all ranks run (made-up) or until
the run has ended (namespaces); of the launcher (`muster run`) and the starter (`muster remote`) processor seconds, peak memory and open files; bytes that
each sends to one host. Exit code 1 if a run failed.
"""
import argparse
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
STAND_IN = """#!/bin/bash
# A stand-in for ssh: the command runs on a host that is a UTS and an IPC namespace.
while [[ $1 == -* ]]; do [[ $1 != -[lpiob] ]] || shift; shift; done
host=$1
shift
exec unshare --uts --ipc --fork bash -c 'hostname "$0" && exec bash -c "$1"' "$host" "$*"
"""
NETWORK = """ip link set lo up && ip link add eth0 type veth peer name eth1 && ip addr add 10.88.0.1/16 dev eth0 && ip link set eth0 up && ip link set eth1 up
mount --bind "$1" /etc/hosts && mount -t tmpfs tmpfs /dev/shm && hostname login && shift && exec "$@"
"""


def processes(root):
    """All below the process `root`, it too, by what their command lines say."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                children.setdefault(int(stat.read().rsplit(")", 1)[1].split()[1]), []).append(int(pid))
        except OSError:
            pass
    found, left = [], [root]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


def words(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line:
            return line.read().decode(errors="replace").split("\0")
    except OSError:
        return []


def look(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/status") as status:
        peak = int(re.search(r"VmHWM:\s*(\d+)", status.read()).group(1))
    return {"cpu_s": (int(fields[11]) + int(fields[12])) / TICK, "peak_MiB": peak / 1024, "files": len(os.listdir(f"/proc/{pid}/fd"))}


def launcher_and_starter(run):
    """The launcher is the child of `muster run`, which guards it, and the starter the launcher's."""
    ours = [(pid, words(pid)) for pid in processes(run)]
    starter = next((pid for pid, line in ours if line[1:2] == ["remote"]), None)
    if starter is None:
        return {}
    with open(f"/proc/{starter}/stat") as stat:
        launcher = int(stat.read().rsplit(")", 1)[1].split()[1])
    return {"launcher": look(launcher), "starter": look(starter)}


def show(row):
    print("  ".join(f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()), flush=True)


def flat(costs):
    return {f"{who}_{what}": value for who, one in costs.items() for what, value in one.items()}


def made_up(options, hosts):
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/agents"
        variables = {**os.environ, "MADE_UP_AGENTS": socket, "MADE_UP_EXCHANGE": str(options.exchange)}
        agents = subprocess.Popen([options.agents, "serve", socket], stdout=subprocess.PIPE, text=True, env=variables)
        agents.stdout.readline()
        variables.pop("MUSTER_REMOTE_SHELL", None)
        started = time.monotonic()
        run = subprocess.Popen([options.muster, "run", "-q", "--engine", "remote", "--remote-shell", options.agents, "-H", f"m[1-{hosts}]:{options.ranks}", "--network-interface", "lo",
                                "--", "/bin/true"], env=variables, stdin=subprocess.DEVNULL)
        said = ""
        for line in agents.stdout:
            said += line
            if line.startswith("all run"):
                break
        row = {"hosts": hosts, "ranks": hosts * options.ranks, "all_run_s": time.monotonic() - started}
        if "all run" in said:
            time.sleep(options.hold)
            row.update(flat(launcher_and_starter(run.pid)))
            agents.send_signal(signal.SIGUSR1)
        code = run.wait(timeout=600)
        said += agents.communicate(timeout=60)[0]
        for who in ("starter", "launcher"):
            if found := re.search(rf"from the {who}: (\d+) bytes", said):
                row[f"{who}_sends_each_B"] = int(found.group(1)) / hosts
        if found := re.search(r"start message of (\d+) bytes", said):
            row["start_message_B"] = int(found.group(1))
        row["code"] = code
        show(row)
        return code == 0


def in_namespaces(options, hosts, engine):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shell, names, network = f"{folder}/stand-in", f"{folder}/hosts", f"{folder}/network"
        for path, text in ((shell, STAND_IN), (network, NETWORK), (names, "127.0.0.1 localhost\n10.88.0.1 login\n" + "".join(f"10.88.0.1 h{i + 1}\n" for i in range(hosts)))):
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o755)
        listed = ",".join(f"h{i + 1}:{options.ranks}" for i in range(hosts))
        if engine == "muster":
            command = [options.muster, "run", "-q", "--engine", "remote", "--remote-shell", shell, "-H", listed, "--", *options.command]
        else:
            command = ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", shell, "--mca", "orte_keep_fqdn_hostnames", "1", "--bind-to", "none", "--oversubscribe",
                       "-H", listed, *options.command]
        here = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", network, names]
        started = time.monotonic()
        run = subprocess.Popen([*here, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        costs = {}
        while run.poll() is None and time.monotonic() - started < options.limit:
            time.sleep(0.1)
            try:
                if engine == "muster":
                    now = launcher_and_starter(run.pid)
                else:
                    first = next(pid for pid in processes(run.pid) if words(pid)[0:1] == ["mpirun"])
                    now = {"mpirun": look(first)}
                for who, one in now.items():
                    costs[who] = {what: max(value, costs.get(who, {}).get(what, 0)) for what, value in one.items()}
            except (OSError, StopIteration, AttributeError):
                pass
        if run.poll() is None:
            run.kill()
        code = run.wait()
        row = {"engine": engine, "hosts": hosts, "ranks": hosts * options.ranks, "ended_s": time.monotonic() - started, "load": os.getloadavg()[0], **flat(costs), "code": code}
        show(row)
        return row


def namespaces(options, hosts):
    engines = ["muster"] + ([options.beside] if options.beside else [])
    rows = [in_namespaces(options, hosts, engine) for _ in range(options.repeats) for engine in engines]
    if options.repeats > 1:
        for engine in engines:
            mine = [row for row in rows if row["engine"] == engine and row["code"] == 0]
            keys = [key for key in mine[0] if key not in ("engine", "code")] if mine else []
            show({"median of": engine, "runs": len(mine), **{key: statistics.median(row.get(key, float("nan")) for row in mine) for key in keys}})
    return all(row["code"] == 0 for row in rows if row["engine"] == "muster")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", default=shutil.which("muster"))
    kinds = parser.add_subparsers(required=True)
    of_agents = kinds.add_parser("made-up")
    of_agents.add_argument("--agents", required=True)
    of_agents.add_argument("--exchange", type=int, default=0)
    of_agents.add_argument("--hold", type=float, default=0, help="seconds that ranks run, with pings and their answers")
    of_agents.set_defaults(measure=made_up)
    of_hosts = kinds.add_parser("namespaces")
    of_hosts.add_argument("--beside", choices=["mpirun"])
    of_hosts.add_argument("--repeats", type=int, default=1)
    of_hosts.add_argument("--limit", type=float, default=300)
    of_hosts.add_argument("--command", nargs="+", default=["/bin/sleep", "1"])
    of_hosts.set_defaults(measure=namespaces)
    for kind in (of_agents, of_hosts):
        kind.add_argument("--ranks", type=int, default=1)
        kind.add_argument("hosts", type=int, nargs="+")
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return 0 if all([options.measure(options, hosts) for hosts in options.hosts]) else 1


if __name__ == "__main__":
    sys.exit(main())
