# Every pattern of ranks that give or get nothing, in every collective that takes counts, on every backend that serves these ranks, compared with NumPy.
# ranks: 1 2 3 4 5
import itertools
import os
import random

import check

try:
    import numpy as np
except ImportError:
    check.skip("NumPy is not installed")

import muster
from muster import arrays

rank, size = int(os.environ["MUSTER_RANK"]), int(os.environ["MUSTER_WORLD_SIZE"])
BACKENDS = ("shm", "tcp", "mpi") if size > 1 else ("self", "shm", "tcp", "mpi")
os.environ["MUSTER_KEEP_MPI"] = "1"  # MPI cannot begin twice in a process
MOST = 512  # patterns of one kind


def patterns(length):
    """Every list of `length` zeros and ones; where those are too many, the extreme ones and some drawn by chance, the same on every rank."""
    if 2**length <= MOST:
        return list(itertools.product((0, 1), repeat=length))
    drawn = random.Random(length)
    single = [tuple(int(at == one) for at in range(length)) for one in range(length)]
    all_but_one = [tuple(1 - each for each in pattern) for pattern in single]
    by_chance = [tuple(int(drawn.random() < share) for _ in range(length)) for share in (0.1, 0.3, 0.6) for _ in range(40)]
    return [(0,) * length, (1,) * length] + single + all_but_one + by_chance


def rows_of(source, target, count):
    """What one rank sends to another: rows of three that no other pair sends."""
    return np.full((count, 3), 100 * source + target, np.int32) + np.arange(count, dtype=np.int32)[:, None] * 10000


def joined(parts):
    return np.concatenate([np.empty((0, 3), np.int32)] + parts)


def same(got, wanted, *case):
    assert got.shape == wanted.shape and np.array_equal(got, wanted), (case, got, wanted)


def every_alltoall(rows):
    for pattern in patterns(size * size):
        table = np.array(pattern).reshape(size, size) * rows
        sent = joined([rows_of(rank, target, table[rank, target]) for target in range(size)])
        got, counts = arrays.alltoall(sent, table[rank].tolist())
        same(got, joined([rows_of(source, rank, table[source, rank]) for source in range(size)]), "alltoall", table)
        assert list(counts) == table[:, rank].tolist(), (table, counts)


def every_allgather(rows):
    for pattern in patterns(size):
        got, counts = arrays.gather_rows(rows_of(rank, 0, pattern[rank] * rows))
        same(got, joined([rows_of(source, 0, pattern[source] * rows) for source in range(size)]), "allgather", pattern)
        assert list(counts) == [each * rows for each in pattern], (pattern, counts)


def every_reducescatter():
    for rows in range(2 * size + 2):  # fewer rows than ranks: the last ranks get none
        given = [np.arange(rows * 3, dtype=np.int32).reshape(rows, 3) * (source + 1) for source in range(size)]
        same(arrays.reducescatter(given[rank], op=arrays.Sum), np.array_split(sum(given), size)[rank], "reducescatter", rows)


def every_reduction_and_broadcast():
    for rows in (0, 1, 2):
        given = [rows_of(source, 0, rows) for source in range(size)]
        same(arrays.allreduce(given[rank], op=arrays.Sum), sum(given), "allreduce", rows)
        for root in range(size):
            same(arrays.broadcast(given[rank], root), given[root], "broadcast", rows, root)


def on_backend(name):
    os.environ["MUSTER_COMM_BACKEND"] = name
    muster.init()
    try:
        every_alltoall(1)
        every_allgather(1)
        every_allgather(5000)
        every_reducescatter()
        every_reduction_and_broadcast()
        arrays.alltoall(np.zeros((size, 3), np.int32))  # the ranks still agree on what comes next
    finally:
        muster.shutdown()


def served(name):
    """The backend serves these ranks, and if not, says so on all of them."""
    os.environ["MUSTER_COMM_BACKEND"] = name
    try:
        muster.init()
    except (muster.CollectiveError, RuntimeError, ValueError) as error:
        print(f"not on {name}: {error}")
        return False
    muster.shutdown()
    return True


def test_patterns_of_zeros():
    tried = [name for name in BACKENDS if served(name)]
    for name in tried:
        on_backend(name)
    if rank == 0:
        print(f"{size} ranks: {', '.join(tried)}")
    assert "tcp" in tried and "shm" in tried or size == 1


check.run(globals())
