# The programs in examples/ as a user starts them; rank 0 of the test starts them with as many ranks.
# ranks: 1 2
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import check

RANKS = os.environ["MUSTER_WORLD_SIZE"]
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "OMPI_", "PMI", "MPI", "HOROVOD_", "PYTHONPATH"))}


def run(program, *options, by=(), ranks=RANKS, **variables):
    """Its output; "" where it said that it lacks something."""
    path = os.path.join(os.environ["MUSTER_SOURCE_DIR"], "examples", program)
    if os.environ["MUSTER_RANK"] != "0":
        return ""
    words = [os.environ["MUSTER"], "run", "-q", "-n", ranks, "--slots-per-node", ranks, "--timeout", "150s", *by, "--", sys.executable, path, *options]
    done = subprocess.run(words, env={**OUTSIDE, **variables}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode == 77:
        print("left out:", done.stdout.strip().splitlines()[0])
        return ""
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_that_it_learns(program, *options):
    output = run(program, *options, "--samples", "4096", "--epochs", "2")
    if output:
        lines = re.findall(r"accuracy (0\.\d+) of the test images, (\d+) ranks", output)
        assert lines and float(lines[-1][0]) > 0.6 and lines[-1][1] == RANKS, output


def has(package):
    from importlib import util

    return util.find_spec(package) is not None


def has_part(part):
    version = subprocess.run([os.environ["MUSTER"], "--version"], capture_output=True, text=True).stdout
    return part in re.search(r"^parts +([^(\n]*)", version, re.MULTILINE)[1].replace(",", " ").split()


def has_datasets():
    return os.path.exists(os.path.join(os.environ["MUSTER_BUILD_DIR"], "python", "_muster_data.abi3.so"))


def test_horovods_calls():
    if has("torch"):
        check_that_it_learns("mnist_hvd.py")


def test_distributed_data_parallel():
    if has("torch"):
        check_that_it_learns("mnist_ddp.py")


def test_fully_sharded():
    if has("torch"):
        check_that_it_learns("mnist_fsdp.py")


def test_fully_sharded_from_memory():
    if has("torch") and has_part("keep"):
        undisturbed = run("fsdp_kept.py")
        output = run("fsdp_kept.py", by=("--max-restarts", "1", "--keep-state", "node"), KILL=f"{int(RANKS) - 1}:7")
        assert sorted(re.findall(r"rank \d+ ends with .*", undisturbed)) == sorted(re.findall(r"rank \d+ ends with .*", output)), output
        assert not output or len(re.findall(r" begins at step [67]$", output, re.MULTILINE)) == int(RANKS), output


# Runs a program whose os.kill waits until two wait: it, and another or what the test waits for.
BEHIND_A_GATE = """
import os, runpy, sys, time
kill = os.kill
def kill_behind_the_gate(*arguments):
    open(os.path.join(os.environ["GATE"], str(os.getpid())), "w").close()
    while len(os.listdir(os.environ["GATE"])) < 2:
        time.sleep(0.01)
    kill(*arguments)
os.kill = kill_behind_the_gate
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def run_behind_a_gate(program, victims, *options):
    """Its output on four ranks. The first line of stderr that says that a spare waits opens the gate, too."""
    path = os.path.join(os.environ["MUSTER_SOURCE_DIR"], "examples", program)
    words = [os.environ["MUSTER"], *"run --verbose -n 4 --slots-per-node 5 --min-np 2 --timeout 150s".split(), *options, "--", sys.executable, "-c", BEHIND_A_GATE, path]
    with tempfile.TemporaryDirectory(prefix="muster-gate.") as gate:
        variables = {**OUTSIDE, "KILL": victims, "GATE": gate}
        with subprocess.Popen(words, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
            faults = ""
            for line in job.stderr:
                faults += line
                if "waits for the place of a lost rank" in line:
                    open(os.path.join(gate, "spare"), "w").close()
            output = job.stdout.read()
    assert job.returncode == 0, (job.returncode, output, faults)
    return output


def test_replicas_of_shards_in_place():
    """A warm spare takes the place of rank 0: the others go on in their processes, and the shards are those of a run without a loss, bit for bit. Where each of two
    replicas has lost another shard, their remains become one."""
    if RANKS != "2" or os.environ["MUSTER_RANK"] != "0" or not has("torch"):
        return

    def shards(output):
        return sorted(re.findall(r"ends with (replica \d, shard \d: \w+)", output))

    def pids(generation, output):
        return set(re.findall(rf"generation {generation}: pid (\d+) goes on", output))

    undisturbed = run("hsdp_elastic.py", ranks="4")
    if not undisturbed:
        return
    output = run_behind_a_gate("hsdp_elastic.py", "0:7", "--spares", "1", "--warm-spares")
    assert len(shards(undisturbed)) == 4 and shards(output) == shards(undisturbed), (undisturbed, output)
    assert len(pids(1, output)) == 4 and len(pids(0, output) & pids(1, output)) == 3, output
    output = run_behind_a_gate("hsdp_elastic.py", "0:7,3:7")
    assert len(shards(output)) == 2 and len(pids(1, output)) == 2 and pids(1, output) < pids(0, output), output


def test_elastic():
    if has("torch"):
        output = run("elastic.py", "--samples", "1024", "--epochs", "1")
        assert not output or "epoch 0: loss " in output and output.count(" steps, weights ") == int(RANKS), output


def test_the_published_table():
    """Both networks, and both ways to the ranks, say what `muster-bench scale` reads; the generated images are learnt."""
    if not has("torch"):
        return
    for options in ("--api hvd", "--api ddp", "--api ddp --backend gloo"):
        output = run("published_table.py", *options.split(), "--images", "3840,500", "--epochs", "2", "--lr", "0.02", "--momentum", "0.9")
        if output:
            values = dict(re.findall(r"muster-metric: (\S+) (\S+)", output))
            assert float(values["accuracy"]) > 0.8, output
            assert float(values["steps"]) == 2 * 3840 / 64 / int(RANKS), output
            parts = [float(values[name]) for name in ("compute_s", "allreduce_wait_s", "loader_wait_s")]
            assert min(parts) > 0 and sum(parts) < 1.5 * float(values["train_s"]), output
            assert output.count("muster-metric: compute_s") == int(RANKS), output
    output = run("published_table.py", "--net", "cifar10", "--images", "64,32", "--global-batch", "32", "--average-loss")
    assert not output or f"cifar10 with 23272266 parameters on {RANKS} ranks by hvd over muster" in output, output


def test_going_on_in_another_job():
    """Asked by SIGUSR1 it saves and ends with 75; what goes on from there, with another number of ranks, trains on each sample as often as it would have."""
    if os.environ["MUSTER_RANK"] != "0" or not has("torch") or not has_datasets():
        return
    with tempfile.TemporaryDirectory(prefix="muster-resume.") as folder:
        words = [os.environ["MUSTER"], "run", "-q", "--timeout", "150s", "-n"]
        program = [sys.executable, os.path.join(os.environ["MUSTER_SOURCE_DIR"], "examples", "resume.py"), "--folder", folder, "--samples", "1001", "--every", "3"]
        first = [*words, RANKS, "--slots-per-node", RANKS, "--", *program, "--pause", "0.05"]
        with subprocess.Popen(first, env=OUTSIDE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
            while not os.listdir(folder) and job.poll() is None:
                time.sleep(0.01)  # its first checkpoint
            job.send_signal(signal.SIGUSR1)
            said, fault = job.communicate()
        assert job.returncode == 75 and "life 0:" in said, (job.returncode, said, fault)
        more = str(int(RANKS) + 1)
        last = subprocess.run([*words, more, "--slots-per-node", more, "--", *program], env={**OUTSIDE, "MUSTER_CHAIN_LINK": "2"}, capture_output=True, text=True)
        assert last.returncode == 0 and "all 1001 samples 2 times" in last.stdout, (last.returncode, last.stdout, last.stderr)
        assert re.search(rf"life 1: {more} ranks begin at step [1-9]", last.stdout), last.stdout


def test_keras():
    check_that_it_learns("keras3_mnist.py")


check.run(globals())
