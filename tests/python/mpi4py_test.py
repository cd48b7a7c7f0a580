# Communicators of mpi4py as worlds and process sets: those of a Split, in another order, and of some ranks.
# ranks: 2 3 4
import check

try:
    import torch
    from mpi4py import MPI
except ImportError:
    check.skip("torch or mpi4py is not installed")

import muster
import muster.torch as hvd

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()


def total(process_set=hvd.global_process_set):
    return hvd.allreduce(torch.tensor([float(rank)]), op=hvd.Sum, process_set=process_set).item()


def test_process_sets_of_a_split():
    alike = list(range(rank % 2, size, 2))
    mine = hvd.ProcessSet(world.Split(rank % 2, rank))
    hvd.init(comm=world, process_sets=[mine])
    assert (hvd.rank(), hvd.size()) == (rank, size)
    assert mine.ranks == alike and mine.included() and mine.process_set_id == 1 + rank % 2
    assert total(mine) == sum(alike)
    hvd.shutdown()


def test_a_process_set_of_some_ranks():
    some = hvd.ProcessSet(world.Create(world.Get_group().Incl([0])))  # MPI.COMM_NULL on the others
    hvd.init(process_sets=[some])
    assert some.ranks == [0] and some.included() == (rank == 0)
    if some.included():
        assert total(some) == 0
    hvd.shutdown()


def test_a_process_set_that_is_there_already():
    check.raises(ValueError, lambda: hvd.init(process_sets=[hvd.ProcessSet(world.Dup())]), "in use already", "global_process_set")
    assert not hvd.is_initialized()


def test_process_sets_added_later():
    hvd.init(process_sets="dynamic")
    halves = hvd.add_process_set(world.Split(rank % 2, rank))
    assert total(halves) == sum(range(rank % 2, size, 2))
    hvd.shutdown()


def test_worlds_of_a_split():
    part = world.Split(rank % 2, -rank)
    hvd.init(comm=part)
    assert (hvd.rank(), hvd.size()) == (part.Get_rank(), part.Get_size())
    assert total() == sum(range(rank % 2, size, 2))
    hvd.shutdown()


def test_the_world_in_another_order():
    hvd.init(comm=world.Split(0, -rank))
    assert (hvd.rank(), hvd.size()) == (size - 1 - rank, size)
    assert hvd.broadcast(torch.tensor([rank]), 0).item() == size - 1
    hvd.shutdown()


def test_no_world_of_no_ranks():
    check.raises(ValueError, lambda: hvd.init(comm=MPI.COMM_NULL), "COMM_NULL")
    hvd.init()
    assert total() == sum(range(size))


check.run(globals())
assert muster.is_initialized()
