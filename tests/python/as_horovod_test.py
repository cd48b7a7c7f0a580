# The package `horovod` that muster serves, its variables, horovodrun and horovod.run: programs as they were written for Horovod.
# ranks: 1 2
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading

import check
import muster

MUSTER = os.environ["MUSTER"]
SERVED = os.path.join(os.environ["MUSTER_BUILD_DIR"], "as_horovod")
HOROVODRUN = os.path.join(SERVED, "bin", "horovodrun")
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "OMPI_", "PMI", "MPI", "HOROVOD_"))}
try:
    import torch  # noqa: F401
except ImportError:
    torch = None


def test_nothing_is_served_unasked():
    assert importlib.util.find_spec("horovod") is None


def test_names_are_musters_own_objects():
    sys.path.insert(0, SERVED)
    from horovod.common.exceptions import HorovodInternalError
    from horovod.common.process_sets import ProcessSet
    from horovod.common.elastic import ObjectState, run_fn  # noqa: F401
    from horovod.common.util import num_rank_is_power_2, split_list, is_version_greater_equal_than
    import horovod

    assert horovod.__version__ == "0.28.1" and HorovodInternalError is muster.CollectiveError and ProcessSet is muster.ProcessSet
    assert num_rank_is_power_2(4) and not num_rank_is_power_2(6)
    from horovod.common.util import _cache, ccl_built, ddl_built, gloo_built, mpi_built, nccl_built
    from horovod.runner.util.threads import execute_function_multithreaded, in_thread, on_event

    assert gloo_built(verbose=True) and mpi_built() in (True, False) and nccl_built() >= 0 and not ddl_built() and not ccl_built()
    calls = []
    once = _cache(lambda of: calls.append(of))
    once(1), once(1)
    in_thread(calls.append, (2,)).join()
    begin = threading.Event()
    waiting = on_event(begin, calls.append, (3,), stop=threading.Event(), check_stop_interval_s=0.01)
    begin.set()
    waiting.join()
    assert calls == [1, 2, 3] and execute_function_multithreaded(lambda a, b: a + b, [(1, 2), (3, 4)]) == {0: 3, 1: 7}
    assert split_list([1, 2, 3, 4, 5], 2) == [[1, 2, 3], [4, 5]] and split_list([1], 3) == [[1]]
    assert is_version_greater_equal_than("2.15.0+cu13", "2.2.0") and not is_version_greater_equal_than("1.13", "2.0.1")


def test_what_is_not_served_is_not_found():
    sys.path.insert(0, SERVED)
    for name in ("horovod.mxnet", "horovod.torch.none_such", "horovod.common.none_such"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            assert name in str(error) or torch is None
        else:
            raise AssertionError(name)


def test_torch_names():
    if torch is None:
        return
    import horovod.torch as hvd
    import muster.torch
    from horovod.torch.compression import Compression
    from horovod.torch.elastic import ElasticSampler, TorchState, run  # noqa: F401
    from horovod.torch.elastic.state import get_handler_registry  # noqa: F401
    from horovod.torch.functions import broadcast_object
    from horovod.torch.mpi_ops import allreduce

    assert allreduce is muster.torch.allreduce is hvd.allreduce and Compression is hvd.Compression and hvd.elastic.run is run
    assert broadcast_object is muster.torch.broadcast_object
    assert hvd is muster.torch and muster.torch.__spec__.name == "muster.torch", "one module under two names"
    names = """init shutdown is_initialized rank size local_rank local_size cross_rank cross_size is_homogeneous mpi_threads_supported mpi_enabled mpi_built
        gloo_enabled gloo_built nccl_built ddl_built ccl_built cuda_built rocm_built start_timeline stop_timeline allreduce allreduce_ allreduce_async
        allreduce_async_ grouped_allreduce grouped_allreduce_ grouped_allreduce_async grouped_allreduce_async_ sparse_allreduce_async allgather allgather_async
        grouped_allgather grouped_allgather_async broadcast broadcast_ broadcast_async broadcast_async_ alltoall alltoall_async reducescatter
        reducescatter_async grouped_reducescatter grouped_reducescatter_async join barrier poll synchronize Average Sum Adasum Min Max Product Compression
        ProcessSet global_process_set add_process_set remove_process_set broadcast_parameters broadcast_optimizer_state broadcast_object allgather_object
        DistributedOptimizer SyncBatchNorm elastic HorovodInternalError mpi_ops""".split()
    missing = [name for name in names if not hasattr(hvd, name)]
    assert not missing, missing
    hvd.init()
    assert hvd.allreduce(torch.ones(3), op=hvd.Sum).tolist() == [hvd.size()] * 3


def test_timeline_of_a_variable():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "timeline.json")
        os.environ.update(HOROVOD_TIMELINE=file, HOROVOD_TIMELINE_MARK_CYCLES="1")
        muster.shutdown()
        muster.init()
        del os.environ["HOROVOD_TIMELINE"], os.environ["HOROVOD_TIMELINE_MARK_CYCLES"]
        if torch is not None:
            import muster.torch as hvd

            hvd.allreduce(torch.ones(3), name="of_the_timeline")
        muster.shutdown()
        if int(os.environ["MUSTER_RANK"]) == 0:
            names = [event["name"] for event in json.load(open(file))]
            assert torch is None or {"NEGOTIATE_ALLREDUCE", "QUEUE", "ALLREDUCE", "CYCLE_START"} <= set(names), names
        muster.init()
        muster.shutdown()
        muster.init()  # a meeting before the folder goes


def horovodrun(*words, **variables):
    return subprocess.run([HOROVODRUN, *words], env={**OUTSIDE, **variables}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100)


def of_first_rank(test):
    """Programs start ranks of their own; once is enough."""

    def run():
        if muster.rank() == 0:
            test()

    return run


@of_first_rank
def test_horovodrun_starts_ranks_that_find_horovod():
    program = "import horovod, os; from horovod.common import util; print(horovod.__version__, os.environ['HOROVOD_FUSION_THRESHOLD'], os.environ['RANK'])"
    done = horovodrun("-np", "2", "--gloo", "--fusion-threshold-mb=1", "-p", "22", sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
    lines = sorted(line.split("] ")[-1] for line in done.stdout.splitlines())
    assert lines == ["0.28.1 1048576 0", "0.28.1 1048576 1"], done.stdout
    assert "--gloo has no effect" in done.stderr


@of_first_rank
def test_words_for_ssh_reach_ssh():
    with tempfile.TemporaryDirectory() as folder:
        ssh = os.path.join(folder, "ssh")
        with open(ssh, "w") as file:
            file.write('#!/bin/sh\necho "called with: $*" >&2\nexit 255\n')
        os.chmod(ssh, 0o755)
        done = horovodrun("-np", "2", "-p", "2222", "-i", "a key", "-H", "no-host-1:1,no-host-2:1", "hostname", PATH=f"{folder}:{os.environ['PATH']}")
    assert "called with: -x -T -o BatchMode=yes -o ConnectTimeout=10 -p 2222 -i a key" in done.stderr, done.stderr


@of_first_rank
def test_horovodrun_prints_what_words_for_mpirun_ask_for():
    done = horovodrun("-np", "2", "--mpi-args", "--mca a b --tag-output --display-map", "echo", "here")
    assert done.returncode == 0 and sorted(line.split(":")[1] for line in done.stdout.splitlines()) == ["0] here", "1] here"], (done.stdout, done.stderr)
    assert "--mca a b has no effect" in done.stderr and "rank" in done.stderr, done.stderr


@of_first_rank
def test_horovodrun_refuses_in_clear_words():
    for words, parts in (
        ((), ("number of ranks is missing",)),
        (("-np", "2"), ("program is missing",)),
        (("-np", "two", "x"), ("-np two", "whole number")),
        (("-np", "2", "--hots", "a:1", "x"), ("no option --hots", "did you mean --hosts?", "muster run --as-horovod has more")),
        (("-np",), ("-np needs a value",)),
        (("-np", "2", "--gloo=1", "x"), ("--gloo takes no values",)),
        (("-np", "2", "--config-file", "a.yaml", "x"), ("--config-file", "options")),
        (("-np", "2", "--host-discovery-script", "/nowhere/hosts.sh", "x"), ("/nowhere/hosts.sh ended with code 127",)),
        (("-np", "2", "--blacklist-cooldown-range", "1", "x"), ("--blacklist-cooldown-range x", "whole number")),
    ):
        done = horovodrun(*words)
        assert done.returncode == 2 and all(part in done.stderr for part in parts), (words, done.returncode, done.stderr)


@of_first_rank
def test_options_become_those_of_muster_run():
    from horovod.runner.launch import muster_command

    def words(*given, variables=()):
        command, variables, to = muster_command(list(given), dict(variables))
        return command[4:], variables, to.notes

    assert words("-np", "4", "python", "a.py", "-np", "9")[0] == ["-n", "4", "--slots-per-node", "4", "--", "python", "a.py", "-np", "9"]
    assert words("-np", "4", "-H", "a:2,b:2", "x")[0] == ["-n", "4", "--hosts", "a:2,b:2", "--", "x"]
    assert words("x", variables={"SLURM_JOB_ID": "7"}.items())[0] == ["--", "x"]
    given, variables, notes = words("--min-np", "2", "--max-np", "4", "--timeline-filename", "t.json", "--cycle-time-ms", "2.5", "-i", "key", "-p", "7", "x")
    assert given == ["-n", "2", "--slots-per-node", "2", "--remote-shell", "ssh -x -T -o BatchMode=yes -o ConnectTimeout=10 -i key -p 7", "--min-np", "2", "--", "x"] and len(notes) == 1
    assert variables == {"HOROVOD_TIMELINE": "t.json", "HOROVOD_CYCLE_TIME": "2.5"}
    assert words("-np", "1", "--network-interfaces", "ib0,eth0", "--start-timeout", "9", "--output-filename", "out", "--log-level", "FATAL", "x")[0][4:] == [
        "--network-interface", "ib0", "--start-timeout", "9s", "--output-dir", "out", "-x", "MUSTER_LOG=critical", "--", "x"]  # fmt: skip
    for given in ("--mca orte_keep_fqdn_hostnames t --allow-run-as-root --display-map --tag-output --timestamp-output -x A=b", "-timestamp-output -display-map -x A=b"):
        command, _, to = muster_command(["-np", "2", "--mpi-args", given, "x"], {})
        assert to.shows_map and "--timestamp-output" in command and command[command.index("-x") + 1] == "A=b", command
        assert [("orte_keep_fqdn_hostnames" in note and "display" not in note) for note in to.notes] == ([True] if "mca" in given else []), to.notes
    script = ("--host-discovery-script", "./hosts.sh")
    assert words("-np", "3", *script, "x")[0] == ["-n", "3", *script, "--", "x"]
    assert words("--min-np", "2", "--max-np", "4", *script, "--slots-per-host", "4", "--reset-limit", "3", "--elastic-timeout", "60", "--blacklist-cooldown-range", "1", "60", "x")[0] == [
        "-n", "2", "--slots-per-node", "4", *script, "--min-np", "2", "--max-np", "4", "--reset-limit", "3", "--elastic-timeout", "60s", "--blacklist-cooldown-range", "1,60", "--", "x"]  # fmt: skip
    assert words("-np", "4", "-H", "a:2,b:2", "--min-np", "2", "--reset-limit", "3", "x")[0] == [
        "-n", "4", "--hosts", "a:2,b:2", "--min-np", "2", "--", "x"]  # fmt: skip
    own = ("--ranks-per-gpu", "2", "--scheduler", "hostfile", "--keep-state", "node")
    assert words("-np", "4", "-H", "a:2", "--slots-per-node", "4", *own, "x")[0] == ["-n", "4", "--hosts", "a:2", "--slots-per-node", "4", *own, "--", "x"]
    assert words("-np", "2", "--reset-limit", "3", "x")[0] == ["-n", "2", "--slots-per-node", "2", "--", "x"]


@of_first_rank
def test_horovodrun_tells_about_itself():
    assert horovodrun("--version").stdout == "0.28.1\n"
    said = horovodrun("--help").stdout
    assert "--num-proc" in said and "muster --version prints muster's" in said, said
    done = horovodrun("--check-build")
    assert "libmuster_comm" in done.stdout, done.stderr


PROGRAM = """
import horovod, muster
def work(base, scale=1):
    muster.init()
    return base + scale * muster.rank(), muster.size()
def fail():
    raise ValueError("on purpose")
if __name__ == "__main__":
    assert horovod.run(work, args=(10,), kwargs={"scale": 2}, np=2) == [(10, 2), (12, 2)]
    assert horovod.run(work, (1,), num_proc=1) == [(1, 1)]
    try:
        horovod.run(fail, np=2)
    except RuntimeError as error:
        assert "code 1" in str(error), error
    try:
        import cloudpickle
    except ImportError:
        try:
            horovod.run(lambda: 0)
        except ValueError as error:
            assert "ranks cannot find the function <lambda> of __main__: without cloudpickle it must stand in a file" in str(error), error
    print("well")
"""


@of_first_rank
def test_horovod_run_gives_the_results_of_all_ranks():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "program.py")
        with open(file, "w") as program:
            program.write(PROGRAM)
        without = os.path.join(folder, "without")  # a cloudpickle that cannot be imported
        os.mkdir(without)
        with open(os.path.join(without, "cloudpickle.py"), "w") as module:
            module.write("raise ImportError('hidden')\n")
        package = os.path.join(os.environ["MUSTER_BUILD_DIR"], "python")
        for path in (f"{SERVED}:{package}", f"{without}:{SERVED}:{package}", SERVED):
            done = subprocess.run([sys.executable, file], env={**OUTSIDE, "PYTHONPATH": path}, capture_output=True, text=True, timeout=100)
            assert done.returncode == 0 and done.stdout.endswith("well\n"), done.stderr


@of_first_rank
def test_muster_run_serves_it_first_and_the_package_last():
    code = "import os, sys; print(os.environ['PYTHONPATH'], os.environ['PATH'].split(':')[0])"
    for words, expected in (
        ((), f"/mine:{os.environ['MUSTER_BUILD_DIR']}/python"),
        (("--as-horovod",), f"{SERVED}:/mine:{os.environ['MUSTER_BUILD_DIR']}/python {SERVED}/bin"),
        (("--as-horovod", "-x", "PYTHONPATH=/other"), f"{SERVED}:/other:{os.environ['MUSTER_BUILD_DIR']}/python {SERVED}/bin"),
    ):
        done = subprocess.run([MUSTER, "run", "-q", "-n", "1", *words, "--", sys.executable, "-c", code], env={**OUTSIDE, "PYTHONPATH": "/mine"},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100)  # fmt: skip
        assert done.stdout.startswith(expected), (words, done.stdout, done.stderr)


check.run(globals())
