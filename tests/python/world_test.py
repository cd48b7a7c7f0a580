# Membership in the world, process sets, handles of the extension, without torch or NumPy.
# ranks: 1 2 3
import ctypes
import gc
import multiprocessing
import os
import signal
import subprocess
import sys

import check
import muster
from muster import world
import _muster_native as native


def muster_rank():
    return int(os.environ["MUSTER_RANK"])


def muster_size():
    return int(os.environ["MUSTER_WORLD_SIZE"])


def submit(name, array, set=0, kind=native.ALLREDUCE, how=native.SUM):
    address = ctypes.addressof(array)
    return world.comm().submit(kind, how, (name, address, address, (len(array),), native.F32), set=set, keep=array)


def test_nothing_is_imported_or_begun_by_import():
    assert not {"torch", "numpy", "mpi4py"} & set(sys.modules)
    if not world.is_initialized():
        check.raises(ValueError, muster.rank, "use hvd.init()")
    text = open("/proc/self/maps").read()
    assert "libmpi" not in text and "libpmix" not in text


def test_init_is_idempotent_and_may_be_repeated():
    for _ in range(5):
        muster.init()
        muster.init()
        assert muster.rank() == int(os.environ["MUSTER_RANK"]) and muster.size() == int(os.environ["MUSTER_WORLD_SIZE"])
        assert (muster.local_rank(), muster.local_size()) == (muster.rank(), muster.size())
        assert (muster.cross_rank(), muster.cross_size(), muster.is_homogeneous()) == (0, 1, True)
        muster.shutdown()
        muster.shutdown()
        assert not muster.is_initialized()


def test_counters_count_what_was_done():
    muster.init()
    before = muster.counters()
    submit("counted", (ctypes.c_float * 4)()).wait()
    after = muster.counters()
    assert after["rank"] == muster.rank() and after["operations"]["allreduce"] == before["operations"]["allreduce"] + 1
    assert after["bytes"]["allreduce"] == before["bytes"]["allreduce"] + 16
    text = muster.counters("prometheus")
    assert f'muster_comm_operations_total{{rank="{muster.rank()}",kind="allreduce"}} {after["operations"]["allreduce"]}\n' in text, text
    assert "# TYPE muster_comm_errors_total counter" in text
    check.raises(ValueError, lambda: muster.counters("xml"), "prometheus")


def test_a_wrong_call_is_refused():
    muster.init()
    comm = world.comm()
    array = (ctypes.c_float * 3)()
    tensor = ("wrong", ctypes.addressof(array), ctypes.addressof(array), (3,), native.F32)
    check.raises(TypeError, lambda: comm.submit(native.ALLREDUCE, native.SUM, tensor, streem=0), "streem")
    check.raises(TypeError, lambda: comm.submit(native.ALLREDUCE, native.SUM, tensor, 1.0), "3 arguments")
    check.raises(TypeError, lambda: comm.submit(native.ALLREDUCE, native.SUM, tensor[:4]), "(name, in, out, shape, type)")
    check.raises(TypeError, lambda: comm.submit(native.ALLREDUCE, native.SUM, tensor, prescale="1"))
    check.raises(ValueError, lambda: comm.submit(native.ALLREDUCE, native.SUM, None), "tensor")
    check.raises(ValueError, lambda: comm.submit(99, 0, tensor), "99")
    comm.submit(native.ALLREDUCE, native.SUM, tensor, **{"".join(["pre", "scale"]): 1.0}).wait()


def test_submit_and_wait():
    muster.init()
    array = (ctypes.c_float * 3)(1, 2, 3)
    handle = submit("sum", array)
    handle.wait()
    handle.wait()
    assert handle.poll() and handle.wait_for(0)
    assert list(array) == [muster.size() * x for x in (1, 2, 3)]


def test_a_dropped_handle_keeps_its_memory():
    class array(ctypes.c_float * 1000):
        pass

    for turn in range(20):
        handle = submit(f"dropped{turn}", array(*([1.0] * 1000)))
        del handle
        gc.collect()
    submit("after", (ctypes.c_float * 1)(1)).wait()


def test_a_name_in_flight_is_refused():
    if muster.size() == 1:
        return
    first = (ctypes.c_float * 1)(1)
    if muster.rank() == 0:
        handle = submit("twice", first)
        check.raises(ValueError, lambda: submit("twice", (ctypes.c_float * 1)(1)), "in flight")
        submit("go on", (ctypes.c_float * 1)(1)).wait()
    else:
        submit("go on", (ctypes.c_float * 1)(1)).wait()
        handle = submit("twice", first)
    handle.wait()


def test_ranks_that_disagree_are_told():
    if muster.size() == 1:
        return
    array = (ctypes.c_float * (1 + muster.rank()))()
    error = check.raises(muster.CollectiveError, submit("differs", array).wait, "differs", "rank")
    assert error.tensor == "differs" and error.code == native.E_PEER and error.ranks


def test_prepared_group():
    memory = world.comm().alloc(4096)
    floats = (ctypes.c_float * 8).from_address(memory.address)
    tensors = [(f"part{i}", memory.address + 16 * i, memory.address + 16 * i, (4,), native.F32) for i in range(2)]
    group = world.comm().prepare(native.AVERAGE, "group", tensors, keep=memory)
    for turn in range(3):
        floats[:] = [muster.rank() + turn] * 8
        group.start().wait()
        assert floats[7] == turn + (muster.size() - 1) / 2


def test_groups_of_gathers():
    arrays = [(ctypes.c_int32 * 2)(muster.rank(), i) for i in range(3)]
    tensors = [(f"one{i}", ctypes.addressof(array), 0, (1, 2), native.I32) for i, array in enumerate(arrays)]
    gathered = world.comm().submit_group(native.ALLGATHER, 0, "gathers", tensors, keep=arrays)
    of_rows = [(n + "s", a, b, (2,), t) for n, a, b, _, t in tensors]
    scattered = world.comm().submit_group(native.REDUCESCATTER, native.SUM, "scatters", of_rows, keep=arrays)
    native.wait_many([gathered, scattered])
    for i in range(3):
        address, size = gathered.result(i)
        assert list((ctypes.c_int32 * (size // 4)).from_address(address)) == [x for rank in range(muster.size()) for x in (rank, i)]
        assert gathered.rows(i) == (1,) * muster.size()
        assert scattered.result(i)[1] == 4 * scattered.rows(i)[0]
    check.raises(TypeError, lambda: native.wait_many([1]))


def test_process_sets():
    muster.shutdown()
    muster.init(process_sets="dynamic")
    if muster.size() == 1:
        check.raises(ValueError, lambda: muster.add_process_set([0]), "in use already", "global_process_set")
        return
    alone = muster.add_process_set([muster.size() - 1])
    assert alone.size() == 1 and alone.included() == (muster.rank() == muster.size() - 1)
    check.raises(ValueError, lambda: muster.add_process_set([muster.size() - 1]), "in use already")
    check.raises(ValueError, lambda: muster.ProcessSet([0, 0]), "twice")
    if alone.included():
        array = (ctypes.c_float * 1)(5)
        submit("alone", array, set=alone.process_set_id).wait()
        assert array[0] == 5
    number = alone.process_set_id
    assert muster.remove_process_set(alone) and not muster.remove_process_set(alone)
    check.raises(ValueError, lambda: submit("removed", (ctypes.c_float * 1)(), set=number), "process set")
    assert muster.add_process_set(alone).process_set_id != number  # the number is not given again
    assert muster.remove_process_set(alone)
    assert not muster.remove_process_set(muster.global_process_set)
    muster.shutdown()
    muster.init()
    check.raises(ValueError, lambda: muster.add_process_set([0]), "dynamic")


def test_a_world_of_some_ranks():
    muster.shutdown()
    some = list(range(muster_size() - 1, 0, -1)) or [0]
    if muster_rank() in some:
        muster.init(comm=some)
        assert (muster.rank(), muster.size()) == (some.index(muster_rank()), len(some))
        array = (ctypes.c_float * 1)(muster_rank())
        submit("of some", array).wait()
        assert array[0] == sum(some)
        muster.shutdown()
    muster.init()


def test_a_child_of_fork_is_no_rank():
    child = os.fork()
    if child == 0:
        try:
            check.raises(ValueError, lambda: submit("child", (ctypes.c_float * 1)()), "forked")
            gc.collect()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    submit("parent", (ctypes.c_float * 1)()).wait()


def _square(number):
    return number * number


def test_worker_processes_by_fork_do_their_work():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_square, range(8)) == [n * n for n in range(8)]
        submit("meanwhile", (ctypes.c_float * 1)()).wait()
    worker = multiprocessing.get_context("fork").Process(target=sys.exit, args=(7,))
    worker.start()
    worker.join(20)
    assert worker.exitcode == 7, worker.exitcode


def test_ctrl_c_is_heard_while_waiting():
    if muster.size() == 1:
        return

    class interrupted(Exception):
        pass

    def handler(number, frame):
        raise interrupted

    array = (ctypes.c_float * 1)(1)
    if muster.rank() == 0:
        old = signal.signal(signal.SIGALRM, handler)
        handle = submit("late", array)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        check.raises(interrupted, handle.wait)
        signal.signal(signal.SIGALRM, old)
        submit("now", (ctypes.c_float * 1)()).wait()
    else:
        submit("now", (ctypes.c_float * 1)()).wait()
        handle = submit("late", array)
    handle.wait()


def test_check_build():
    text = subprocess.run([sys.executable, "-m", "muster"], stdout=subprocess.PIPE, check=True, text=True).stdout
    assert muster.__version__ in text and "libmuster_comm" in text and "PyTorch" in text and "NCCL" in text, text
    assert "tested by hand only, with Keras" in text, text


check.run(globals())
