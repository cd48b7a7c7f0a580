#!/usr/bin/env python3
"""Runs a training again and again, hits it with faults at random, and judges how each run ends.

    random_faults.py --way in-place --where node --runs 30 --seed 1      # ways: in-place, spare, warm-spare, restart, kept, kept-in-place
    random_faults.py --way kept --where namespaces --seed 1 --only 17    # one of them again, alone

A run has one to three faults: SIGKILL, SIGSTOP, SIGSEGV and SIGABRT on ranks, launcher, guardian, keepers and agents; over hosts also cut power and links. It is red if it
hangs, ends with a wrong result, gives up without need, blames who was not hit, or leaves processes or files; then its story and output are printed, and how to run it alone.
Timing is not drawn, so a second run of a story may end otherwise. Hosts are namespaces (`namespaces`), or nodes of the tests' own Slurm cluster (`slurm`, needs root).
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import judge as judging
import places
import story as stories

LEFT_S = 45  # until nothing of the run may be left: a host that is cut off ends its ranks after --heartbeat and 10 s


class Lines:
    """The lines of a pipe, as they come."""

    def __init__(self, pipe):
        self.all = []
        self.came = threading.Condition()
        self.over = False
        self.thread = threading.Thread(target=self.read, args=(pipe,), daemon=True)
        self.thread.start()

    def read(self, pipe):
        for line in iter(pipe.readline, b""):
            with self.came:
                self.all.append(line.decode(errors="replace").rstrip("\n"))
                self.came.notify_all()
        with self.came:
            self.over = True
            self.came.notify_all()

    def wait_for(self, holds, until):
        """Whether a line for which it holds has come by then."""
        at = 0
        with self.came:
            while True:
                if any(holds(line) for line in self.all[at:]):
                    return True
                at = len(self.all)
                if self.over or time.monotonic() >= until:
                    return False
                self.came.wait(until - time.monotonic())


def has_told(step):
    def holds(line):
        told = judging.STEP.search(line)
        return bool(told) and int(told[1]) >= step

    return holds


def own_number(pid):
    """In its namespace."""
    found = re.search(rb"^NSpid:.*?(\d+)$", places.read(f"/proc/{pid}/status"), re.MULTILINE)
    return int(found[1]) if found else pid


def target_of(place, fault, run):
    """The process or the host that the fault meets; None: there is none yet, or none any more."""
    if fault.target == "host":
        return place.hosts[fault.which % len(place.hosts)]
    living = [one for one in place.ours().get(fault.target, []) if one.state != "T"]
    return living[fault.which % len(living)] if living else None


def do_fault(place, fault, run, lines, began, mending):
    target = target_of(place, fault, run)
    while target is None and run.poll() is None and time.monotonic() - began < 60:
        time.sleep(0.02)
        target = target_of(place, fault, run)
    if target is None or run.poll() is not None:
        return None
    hit = judging.Hit(fault, round(time.monotonic() - began, 2), lines=len(lines.all))
    if fault.target != "host":
        hit.pid, hit.host = own_number(target.pid), place.host_of(target)
        try:
            os.kill(target.pid, getattr(signal, "SIG" + fault.what))
        except ProcessLookupError:
            return None
        return hit
    hit.host = target
    if fault.what == "power":
        place.cut_power(target)
    else:
        place.set_link(target, "down")
        if fault.mended_s:
            timer = threading.Timer(fault.mended_s, place.set_link, (target, "up"))
            timer.daemon = True
            timer.start()
            mending.append(timer)
    return hit


def do_faults(place, story, run, out, began, limit, hits, mending):
    for fault in story.faults:
        if fault.after.startswith("step"):
            if not out.wait_for(has_told(int(fault.after.split()[1])), began + 2 * limit):
                continue
        if fault.after == "start":
            time.sleep(max(began + fault.delay_s - time.monotonic(), 0))
        else:
            time.sleep(fault.delay_s)
        hit = do_fault(place, fault, run, out, began, mending)
        if hit is None and run.poll() is not None:
            return
        if hit is not None:
            hits.append(hit)


def end_all(place, run):
    """A run that hangs: what it says of itself, then nothing of it lives on."""
    for role in ("launcher", "guardian"):
        for one in place.ours().get(role, []):
            os.kill(one.pid, signal.SIGUSR2)
    time.sleep(5)
    told = "; ".join(f"{one.words[0].split('/')[-1]} {one.words[1] if len(one.words) > 1 else ''} {one.pid} ({one.state})" for some in place.ours().values() for one in some)
    for some in place.ours().values():
        for one in some:
            try:
                os.kill(one.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    try:
        run.wait(30)
    except subprocess.TimeoutExpired:
        run.kill()
    return told


def run_story(place, story, python, expected):
    """One run: what happened, as a dictionary that JSON can hold."""
    program = [python, str(HERE / "ledger.py"), stories.LOOP[story.way]]
    limit, hits, mending, began = judging.most_seconds(story), [], [], time.monotonic()
    run = place.start(story, program, subprocess.PIPE, subprocess.PIPE)
    out, err = Lines(run.stdout), Lines(run.stderr)
    doing = threading.Thread(target=do_faults, args=(place, story, run, out, began, limit, hits, mending), daemon=True)
    doing.start()
    hung = ""
    out.wait_for(has_told(1), began + limit)  # a busy machine takes its time to start them
    try:
        code = run.wait(limit)
    except subprocess.TimeoutExpired:
        hung = f"hang: not over {limit:.0f} s after the first step: {end_all(place, run)}"
        code = run.wait()
    took = time.monotonic() - began
    doing.join(70)
    for timer in mending:
        timer.join()
    until = time.monotonic() + LEFT_S
    left = place.left()
    while left and time.monotonic() < until:
        time.sleep(0.3)
        left = place.left()
    for lines in (out, err):
        lines.thread.join(10)
    ending = judging.Ending(code, out.all, err.all, hits, hung, left)
    faults, how = judging.judge(story, ending, expected)
    return {"faults": faults, "how": how, "code": code, "took_s": round(took, 1), "out": ending.out, "err": ending.err,
            "hits": [f"{hit.fault}: at {hit.at_s} s, pid {hit.pid} on {hit.host or 'this node'}" for hit in hits]}


def run_isolated(options, index):
    """One run in namespaces of its own: nothing of it outlives the call."""
    with tempfile.TemporaryDirectory(prefix="muster-trial-") as folder:
        words = [sys.executable, str(HERE / "random_faults.py"), *options.words, "--inside", folder, "--only", str(index)]
        users = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        inside = 'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && ip link set lo up && exec "$@"'
        command = ["unshare", *users, "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside, "sh", *words]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        try:
            return json.loads((pathlib.Path(folder) / "result.json").read_text())
        except (OSError, ValueError):
            return {"faults": [f"the trial itself failed: {done.stdout[-3000:]}"], "how": "failed", "code": -1, "took_s": 0, "out": [], "err": [], "hits": []}


def run_inside(options):
    story = stories.draw_story(options.way, options.where, options.seed, options.only)
    folder = pathlib.Path(options.inside)
    place = places.make_place(options.where, options.muster, folder, story.hosts)
    (folder / "result.json").write_text(json.dumps(run_story(place, story, options.python, options.expected)))


def tell(options, index, result, counts):
    story = stories.draw_story(options.way, options.where, options.seed, index)
    how = "RED" if result["faults"] else result["how"]
    counts[how] += 1
    if not result["faults"]:
        print(f"{index}: {how}, code {result['code']}, {result['took_s']} s; {len(result['hits'])} of {len(story.faults)} faults", flush=True)
        return
    print(f"{index}: RED, code {result['code']}, {result['took_s']} s\n{story}\ndone:")
    for one in result["hits"]:
        print(f"    {one}")
    for one in result["faults"]:
        print(f"  {one}")
    for name in ("out", "err"):
        lines = [line for line in result[name] if "is not set" not in line and "neither --hostfile" not in line]
        lines = lines if len(lines) < 120 else lines[:50] + ["…"] + lines[-70:]
        print("".join(f"    {name}: {line}\n" for line in lines), end="")
    print(f"again: {sys.executable} {sys.argv[0]} --way {options.way} --where {options.where} --seed {options.seed} --only {index}", flush=True)


def why_not(options):
    """What is lacking here; empty: nothing."""
    try:
        options.expected = subprocess.run([options.python, str(HERE / "ledger.py"), "expected"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, universal_newlines=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return f"{options.python} has no NumPy"
    if subprocess.run([str(options.muster), "run", "-q", "-n", "1", "--", options.python, "-c", "import muster"], stderr=subprocess.DEVNULL).returncode:
        return f"{options.python} cannot import muster"
    if options.way == "kept-in-place" and subprocess.run([options.python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode != 0:
        return f"{options.python} has no PyTorch"
    if options.where == "slurm":
        missing = subprocess.run([str(places.TESTS / "cluster" / "slurm_cluster.sh"), "missing"], stdout=subprocess.PIPE, universal_newlines=True)
        return f"lacking for a Slurm cluster: {missing.stdout.strip()}" if missing.returncode else ""
    users = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    if subprocess.run(["unshare", *users, "--net", "--mount", "--pid", "--fork", "--mount-proc", "ip", "link"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        return "this user cannot make namespaces here"
    return ""


def run_all(options):
    indices = [options.only] if options.only is not None else range(options.first, options.first + options.runs)
    counts = collections.Counter()
    if options.where == "slurm":
        place = places.make_place("slurm", options.muster, None, stories.HOSTS)
        try:
            for index in indices:
                story = stories.draw_story(options.way, options.where, options.seed, index)
                tell(options, index, run_story(place, story, options.python, options.expected), counts)
        finally:
            place.close()
    else:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for index, result in zip(indices, pool.map(lambda index: run_isolated(options, index), indices)):
                tell(options, index, result, counts)
    print(f"{options.way} on {options.where}, seed {options.seed}: {sum(counts.values())} runs: " + ", ".join(f"{number} {how}" for how, number in sorted(counts.items())), flush=True)
    return counts["RED"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", choices=[*stories.WAYS, "all"], default="all")
    parser.add_argument("--where", choices=[*stories.PLACES], default="node")
    parser.add_argument("--runs", type=int, default=30, help="of each way")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--only", type=int, help="this run alone")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once; in Slurm always 1")
    parser.add_argument("--muster", type=pathlib.Path, default=os.environ.get("MUSTER", HERE.parents[1] / "build/release/bin/muster"))
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--expected", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.muster = pathlib.Path(options.muster).resolve()
    if options.inside:
        return run_inside(options)
    red = ran = 0
    lacking = []
    for way in stories.WAYS if options.way == "all" else [options.way]:
        options.way = way
        why = why_not(options)
        if why:
            lacking.append(f"{way} on {options.where}: {why}")
            continue
        options.words = ["--way", way, "--where", options.where, "--seed", options.seed, "--muster", str(options.muster), "--python", options.python, "--expected", options.expected]
        red += run_all(options)
        ran += 1
    for one in lacking:
        print(f"skipped: {one}")
    return 1 if red else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
