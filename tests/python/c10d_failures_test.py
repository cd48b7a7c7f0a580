# What the ranks of a process group are told when one of them fails, stops or does not come, and that nothing is left hanging.
# ranks: 1
import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback

import check

try:
    import torch
except ImportError as error:
    check.skip(f"no PyTorch: {error}")
import kill_trial

FIRST = """
    import datetime, os, signal, sys, time
    import torch, torch.distributed as dist
    import muster, muster.distributed
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    seconds = datetime.timedelta(seconds=4)
    def raised(call):
        try:
            call()
        except muster.CollectiveError as error:
            assert isinstance(error, RuntimeError)
            return error
        raise AssertionError("nothing was raised")
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def places(count):
    """The variables of each rank, as torchrun sets them: none of muster's."""
    port = free_port()
    return [{"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "MUSTER_LOG": "off"} for rank in range(count)]


def is_of_launcher(name):
    return name.startswith(("MUSTER_", "PMI", "OMPI_", "SLURM_"))


def run_forked(program, place, output):
    """In a child of fork(), which has torch already: runs the program, and ends as an interpreter does."""
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    for name in [name for name in os.environ if is_of_launcher(name)]:
        del os.environ[name]
    os.environ.update(place)
    code = 0
    try:
        exec(program, {"__name__": "__main__"})
    except BaseException as error:
        code, sys.last_value = 1, error
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def ranks(count, text, limit=60):
    """Runs a program on so many ranks. [(exit code or -signal, what it wrote)]."""
    program = textwrap.dedent(FIRST) + textwrap.dedent(text)
    outputs = [tempfile.TemporaryFile("w+") for _ in range(count)]
    pids = []
    sys.stdout.flush()
    for place, output in zip(places(count), outputs):
        pids.append(os.fork())
        if pids[-1] == 0:
            run_forked(program, place, output)
    until, codes = time.monotonic() + limit, [None] * count
    while None in codes and time.monotonic() < until:
        for i, pid in enumerate(pids):
            if codes[i] is None:
                ended, status = os.waitpid(pid, os.WNOHANG)
                codes[i] = os.waitstatus_to_exitcode(status) if ended else None
        time.sleep(0.02)
    for i, pid in enumerate(pids):
        if codes[i] is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    texts = []
    for output in outputs:
        output.seek(0)
        texts.append(output.read())
    assert None not in codes, f"ranks hang: {codes}, {texts}"
    return list(zip(codes, texts))


def test_a_killed_and_a_stopped_rank_are_named():
    for program in ("ddp", "hvd"):
        for kill in (True, False):
            took, fault = kill_trial.trial(program, 3, kill, 1, 0.05)
            assert not fault, (program, kill, fault)


def test_a_rank_that_does_not_come_is_named():
    for code, output in ranks(
        3,
        """
        dist.init_process_group("muster", timeout=seconds)
        pair = dist.new_group([0, 2])
        dist.all_reduce(torch.ones(1))
        if rank == 1:
            time.sleep(8)  # past the others' deadline; they must not hear that it has ended
        else:
            if rank == 0:
                error = raised(lambda: dist.all_reduce(torch.ones(3)))
            else:
                error = raised(lambda: dist.all_reduce(torch.ones(3), async_op=True).wait(seconds))
            assert error.ranks == (1,) and "rank 1" in str(error), (error.ranks, error)
            # another group of these two goes on
            tensor = torch.ones(1)
            dist.all_reduce(tensor, group=pair)
            assert tensor == 2
            dist.destroy_process_group(pair)
        """,
    ):
        assert code == 0, output


def test_a_group_of_some_ranks_names_them_by_their_numbers_in_the_world():
    for code, output in ranks(
        3,
        """
        dist.init_process_group("muster", timeout=seconds)
        pair = dist.new_group([0, 2], timeout=seconds)
        if rank == 0:
            error = raised(lambda: dist.all_reduce(torch.ones(3), group=pair))
            assert error.ranks == (2,) and "the ranks [0, 2]" in str(error), (error.ranks, error)
        """,
    ):
        assert code == 0, output


def test_collectives_that_never_meet_end_with_what_each_rank_waits_in():
    for code, output in ranks(
        3,
        """
        dist.init_process_group("muster")   # whose deadline, 30 minutes, is not waited for
        pair = dist.new_group([0, 2])
        last = rank == size - 1
        group = dist.distributed_c10d._get_default_group()
        cases = [
            lambda: dist.all_reduce(torch.ones(4 + last)),
            lambda: dist.all_reduce(torch.ones(4, dtype=torch.float64 if last else torch.float32)),
            lambda: dist.barrier() if last else dist.broadcast(torch.ones(4), 0),
            lambda: group.monitored_barrier(datetime.timedelta(seconds=900)) if last else dist.all_reduce(torch.ones(4)),
            lambda: dist.broadcast_object_list([None] * (2 + last), 0),
            lambda: [dist.all_reduce(torch.ones(7 + last), async_op=True), dist.all_reduce(torch.ones(70 + last), async_op=True)][last].wait(),
        ]
        for call in cases:
            error = raised(call)
            assert error.ranks == (2,), error.ranks
            for part in ("rank 0 (", "rank 1 (", "rank 2 (", " waits in ", " since ", " UTC"):
                assert part in str(error), (part, error)
            tensor = torch.ones(4)
            dist.all_reduce(tensor)   # what all call goes on
            assert (tensor == 3).all()
        if rank != 1:
            error = raised(lambda: dist.all_reduce(torch.ones(3 + last), group=pair))
            assert error.ranks == (2,) and "rank 2 (" in str(error) and "rank 1 (" not in str(error), (error.ranks, error)
        """,
    ):
        assert code == 0, output


def test_a_monitored_barrier_names_who_is_missing():
    for code, output in ranks(
        3,
        """
        dist.init_process_group("muster")
        for _ in range(2):
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=60))
        group = dist.distributed_c10d._get_default_group()
        assert "timed out" in str(raised(lambda: group.monitored_barrier(datetime.timedelta(0))))
        if rank == 1:
            time.sleep(3)
        else:
            error = raised(lambda: dist.monitored_barrier(timeout=datetime.timedelta(seconds=1), wait_all_ranks=rank == 0))
            assert error.ranks == (1,) and "timed out" in str(error), (error.ranks, error)
            assert ("Ranks 1 failed to pass monitoredBarrier" if rank == 0 else "Rank 2 successfully reached monitoredBarrier") in str(error), error
        """,
    ):
        assert code == 0, output


def test_begin_again_after_a_failure():
    for code, output in ranks(
        2,
        """
        dist.init_process_group("muster", timeout=seconds)
        port = int(os.environ["MASTER_PORT"])
        error = raised(lambda: dist.all_reduce(torch.ones(3)) if rank == 0 else dist.all_reduce(torch.ones(4)))
        try:
            muster.distributed.reform(error)   # the run is not elastic
            raise AssertionError("nothing was raised")
        except muster.CollectiveError as same:
            assert same is error
        former, model = dist.distributed_c10d._get_default_group(), torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        dist.destroy_process_group()
        for call in lambda: former.allreduce([torch.ones(1)]), lambda: model(torch.ones(1, 2)).sum().backward():
            try:
                call()
                raise AssertionError("a group that has been destroyed is used")
            except (ValueError, RuntimeError) as refused:
                assert "make DistributedDataParallel objects" in str(refused), refused
        del model
        time.sleep(0.1 * rank)
        dist.init_process_group("muster", init_method=f"file:///tmp/muster-again-{port}", rank=rank, world_size=size)
        tensor = torch.ones(5)
        dist.all_reduce(tensor)
        assert (tensor == 2).all()
        """,
    ):
        assert code == 0, output


def test_begin_again_while_works_groups_and_messages_of_before_are_kept():
    for code, output in ranks(
        2,
        """
        kept = []
        for turn in range(3):
            dist.init_process_group("muster", timeout=datetime.timedelta(seconds=20))
            kept += [dist.distributed_c10d._get_default_group(), dist.new_group([0, 1]), dist.all_reduce(torch.ones(1), async_op=True)]
            kept[-1].wait()
            dist.all_reduce(torch.ones(1), group=kept[-2])
            kept.append(dist.isend(torch.ones(1), 1) if rank == 0 else dist.irecv(torch.ones(1), 0))
            kept[-1].wait()
            dist.barrier()
            time.sleep(0.3 if rank == 0 else 0)   # its store is the others'
            dist.destroy_process_group()
            time.sleep(0.6 - 0.3 * (rank == 0))
        """,
    ):
        assert code == 0, output


def test_a_group_is_reconfigured_without_a_rank_that_is_lost():
    results = ranks(
        3,
        """
        import types
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
        from torch.nn.parallel import DistributedDataParallel
        dist.init_process_group("muster", timeout=datetime.timedelta(seconds=20))
        group = dist.distributed_c10d._get_default_group()
        follows = hasattr(dist, "_reconfigure")   # so does DistributedDataParallel; in older torch a group in Python has one size for C++
        def reconfigure(uuid, handles, seconds=None):
            timeout = None if seconds is None else datetime.timedelta(seconds=seconds)
            assert group.supports_reconfigure == follows
            assert group.reconfigure(types.SimpleNamespace(uuid=uuid, handles=handles, timeout=timeout, hints={})).wait()
        def refused(call):
            try:
                call()
            except (RuntimeError, ValueError) as error:
                assert not isinstance(error, muster.CollectiveError)
                return str(error)
            raise AssertionError("nothing was raised")
        def mean(model):
            model.zero_grad()
            model(torch.full((1, 1), rank + 1.0)).sum().backward()
            return model.module.weight.grad.item()
        handles = [None] * 3
        dist.all_gather_object(handles, group.get_reconfigure_handle())
        reconfigure(3, handles)
        module = torch.nn.Linear(1, 1, bias=False)
        model, hooked = DistributedDataParallel(module), DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
        hooked.register_comm_hook(None, allreduce_hook)
        assert mean(model) == 2 and mean(hooked) == 2
        reconfigure(4, handles)   # the same members: nothing changes
        assert mean(model) == 2 and mean(hooked) == 2
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        assert "rank 1" in refused(lambda: mean(model)), "torch makes a RuntimeError of it"
        assert "not among the 1 handles" in refused(lambda: reconfigure(5, handles[1:2]))
        assert "already used" in refused(lambda: reconfigure(4, handles))
        assert "no handle" in refused(lambda: reconfigure(5, ["gloo:0", handles[rank]]))
        assert "two are of the same process" in refused(lambda: reconfigure(5, [handles[rank]] * 2))
        error = raised(lambda: reconfigure(5, handles, 2))   # one that is lost does not come
        assert "has no members yet" in refused(lambda: dist.all_reduce(torch.ones(1)))
        reconfigure(6, {handles[0], handles[2]})
        assert (dist.get_rank(), dist.get_world_size()) == (rank // 2, 2)
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        assert tensor == 2
        assert "in an earlier generation" in refused(lambda: mean(model))
        assert mean(hooked) == 2   # of 1 and 3
        assert not follows or mean(DistributedDataParallel(module)) == 2
        dist.send(tensor, 1) if rank == 0 else dist.recv(tensor, 0)
        group.reconfigure(types.SimpleNamespace(uuid=7, handles=[group.get_reconfigure_handle()], timeout=None, hints={}))
        assert dist.get_world_size() == 1 and (not follows or mean(DistributedDataParallel(module)) == rank + 1)
        reconfigure(8, [handles[2], handles[0]])
        assert dist.get_rank() == (0 if rank == 2 else 1)
        dist.all_reduce(tensor)
        assert tensor == 4
        """,
    )
    assert [code for code, _ in results] == [0, -signal.SIGKILL, 0], results


def test_an_error_on_one_rank_ends_the_others():
    results = ranks(
        3,
        """
        dist.init_process_group("muster")
        dist.all_reduce(torch.ones(1))
        if rank == 1:
            raise KeyError("a fault of the program")
        future = dist.all_reduce(torch.ones(3), async_op=True).get_future()
        dist.all_reduce(torch.ones(2))
        """,
    )
    for rank, (code, output) in enumerate(results):
        assert code == 1, output
        assert ("a fault of the program" if rank == 1 else "rank 1") in output, output


def test_messages_of_a_rank_that_ends():
    results = ranks(
        3,
        """
        dist.init_process_group("muster", timeout=seconds)
        if rank == 1:
            dist.recv(torch.empty(1), 0)
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == 0:
            dist.send(torch.ones(1), 1)
            assert raised(lambda: dist.recv(torch.empty(1), 1)).ranks == (1,)
            dist.send(torch.ones(1), 2)
        else:
            dist.recv(torch.empty(1), 0)
            assert raised(lambda: dist.recv(torch.empty(1), 0)).ranks == (0,)   # it sends no more: in time
        """,
    )
    assert [code for code, _ in results] == [0, -signal.SIGKILL, 0], results


def test_ctrl_c_is_heard():
    for code, output in ranks(
        2,
        """
        dist.init_process_group("muster")
        if rank == 0:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
            try:
                dist.all_reduce(torch.ones(1))
            except KeyboardInterrupt:
                print("heard")
                raise
        error = raised(lambda: dist.all_reduce(torch.ones(2)))
        assert error.ranks == (0,), error.ranks
        """,
    ):
        assert code == 0 or "heard" in output and code == 1, (code, output)


def test_the_end_of_the_interpreter():
    """Really: programs of their own, one that ends well without destroying its groups, and one where a rank ends by an exception."""
    text = """
        dist.init_process_group("muster")
        dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
        dist.new_group([0, 1])
        if len(sys.argv) > 1:
            if rank == 1:
                raise KeyError("a fault of the program")
            dist.all_reduce(torch.ones(1))
    """
    clean = {name: value for name, value in os.environ.items() if not is_of_launcher(name)}
    for more in ([], ["fails"]):
        command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(FIRST) + textwrap.dedent(text), *more]
        started = [subprocess.Popen(command, env={**clean, **place}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for place in places(2)]
        for rank, process in enumerate(started):
            output, _ = process.communicate(timeout=100)
            if more:
                assert process.returncode == 1 and ("a fault of the program" if rank == 1 else "rank 1") in output, (process.returncode, output)
            else:
                assert process.returncode == 0 and not output, (process.returncode, output)


def test_torchrun_over_several_nodes_goes_by_tcp():
    for code, output in ranks(
        3,
        """
        from muster.distributed import communicators
        communicators.place = lambda: "a node" if rank == 1 else "another node"
        dist.init_process_group("muster", timeout=seconds)
        pair = dist.new_group([0, 1])
        for count in 1, 100000:
            tensor = torch.ones(count)
            dist.all_reduce(tensor)
            assert (tensor == 3).all()
        if rank < 2:
            dist.all_reduce(tensor, group=pair)
            assert (tensor == 6).all()
        dist.barrier()
        if rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        error = raised(lambda: dist.all_reduce(torch.ones(100000)))
        assert error.ranks == (2,) and "rank 2 " in str(error), (error.ranks, error)
        """,
    ):
        assert code in (0, -9), output


check.run(globals())
