# All inputs through the C interface: type x collective x reduction x shape x in place or not, compared with NumPy.
# ranks: 1 2 3
import ctypes
import itertools
import os

import check

try:
    import numpy as np
except ImportError:
    check.skip("NumPy is not installed")

library = ctypes.CDLL(os.path.join(os.environ["MUSTER_BUILD_DIR"], "comm", "libmuster_comm.so"))
library.muster_last_error.restype = ctypes.c_char_p
rank, size = int(os.environ["MUSTER_RANK"]), int(os.environ["MUSTER_WORLD_SIZE"])
everyone = range(size)
TYPES = {"f4": 0, "f8": 1, "f2": 2, "bf16": 3, "i4": 4, "i8": 5, "u1": 6, "i1": 7, "?": 8, "i2": 9, "u2": 10}
REDUCED = list(TYPES)[:8]
REDUCTIONS = {"sum": 0, "average": 1, "min": 2, "max": 3, "product": 4}
SHAPES = ((), (1,), (7,), (2, 3), (0, 3), (3, 2, 1, 1, 2, 1, 1, 2), (40001,))
E_USAGE = 2


class Tensor(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("input", ctypes.c_void_p), ("out", ctypes.c_void_p), ("out_elements", ctypes.c_size_t),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("dimensions", ctypes.c_int), ("type", ctypes.c_int), ("memory", ctypes.c_int)]  # fmt: skip


class Call(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("prescale", ctypes.c_double), ("postscale", ctypes.c_double), ("set", ctypes.c_int), ("root", ctypes.c_int),
                ("splits", ctypes.POINTER(ctypes.c_int64)), ("compression", ctypes.c_int), ("error_feedback", ctypes.c_int), ("stream", ctypes.c_void_p)]  # fmt: skip


comm = ctypes.c_void_p()
assert library.muster_comm_create(ctypes.byref(comm)) == 0, library.muster_last_error()


def to_bf16(values):
    return (np.ascontiguousarray(values, "f4").view("u4") >> 16).astype("u2")


def stored(values, name):
    return to_bf16(values) if name == "bf16" else values.astype(name)


def values_of(array, name):
    return (array.astype("u4") << 16).view("f4") if name == "bf16" else array


def given(of, name, shape):
    """Rank `of`'s array, of small numbers whose sums and products every type but the smallest holds exactly; those wrap."""
    count = int(np.prod(shape))
    return stored((np.arange(count) % 5 + 1 + of).reshape(shape), name)


def submit(kind, name, array, shape=None, reduction=None, out=None, **call):
    """(code, result's bytes or None). Waits."""
    shape = array.shape if shape is None else shape
    extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    address = None if out is None else out.ctypes.data
    tensor = Tensor(ctypes.sizeof(Tensor), b"t", array.ctypes.data, address, 0 if out is None else out.size, extents, len(shape), TYPES[name], 0)
    if "splits" in call:
        call["splits"] = (ctypes.c_int64 * size)(*call["splits"])
    more, handle = Call(struct_size=ctypes.sizeof(Call), **call), ctypes.c_void_p()
    arguments = [comm, ctypes.byref(tensor), *([] if reduction is None else [ctypes.c_int(reduction)]), ctypes.byref(more), ctypes.byref(handle)]
    code = getattr(library, f"muster_{kind}_async")(*arguments)
    if code != 0:
        return code, None
    code = library.muster_wait(handle, ctypes.c_double(0))
    data, count = ctypes.c_void_p(), ctypes.c_size_t()
    result = None
    if code == 0 and library.muster_handle_result(handle, ctypes.byref(data), ctypes.byref(count)) == 0 and out is None:
        result = np.frombuffer(ctypes.string_at(data, count.value) if count.value else b"", array.dtype)
    library.muster_handle_free(handle)
    return code, result


def same(got, wanted, *where):
    assert np.array_equal(np.asarray(got).reshape(-1), np.asarray(wanted).reshape(-1)), (where, got, wanted)


def reduced(every, name, how):
    numbers = [values_of(one, name) for one in every]
    with np.errstate(over="ignore"):
        of = {"sum": np.add, "average": np.add, "min": np.minimum, "max": np.maximum, "product": np.multiply}[how]
        total = numbers[0]
        for one in numbers[1:]:
            total = of(total, one)
    return stored(np.asarray(total / size if how == "average" else total), name)


def close(got, wanted, name, *where):
    """An average is rounded once here and may be rounded in another order there."""
    got, wanted = values_of(np.asarray(got).reshape(-1), name), values_of(np.asarray(wanted).reshape(-1), name)
    assert np.allclose(got.astype("f8"), wanted.astype("f8"), rtol=1e-2 if name == "bf16" else 2e-3 if name == "f2" else 1e-6), (where, got, wanted)


def test_reductions():
    for name, (how, number), shape in itertools.product(REDUCED, REDUCTIONS.items(), SHAPES):
        every = [given(of, name, shape) for of in everyone]
        for in_place in (True, False):
            mine = every[rank].copy()
            out = mine if in_place else np.empty_like(mine)
            code, _ = submit("allreduce", name, mine, reduction=number, out=out)
            if how == "average" and name not in ("f4", "f8", "f2", "bf16"):
                assert code == E_USAGE, code
                continue
            assert code == 0, (name, how, shape, library.muster_last_error())
            compare = close if how == "average" else same
            compare(out, reduced(every, name, how), *([name] if how == "average" else []), (name, how, shape, in_place))


def test_reductions_that_are_scattered():
    for name, how, rows in itertools.product(REDUCED, ("sum", "max"), (0, 1, size, 2 * size + 1)):
        every = [given(of, name, (rows, 3)) for of in everyone]
        code, result = submit("reducescatter", name, every[rank], reduction=REDUCTIONS[how])
        assert code == 0, (name, rows, library.muster_last_error())
        same(result, np.array_split(reduced(every, name, how), size)[rank], name, how, rows)


def test_moves():
    for name, shape in itertools.product(TYPES, SHAPES):
        every = [given(of, name, shape) for of in everyone]
        for root in everyone:
            mine = every[rank].copy()
            code, _ = submit("broadcast", name, mine, out=mine, root=root)
            assert code == 0, (name, shape, library.muster_last_error())
            same(mine, every[root], name, shape, root)
        if not shape:
            continue
        uneven = [np.concatenate([one] * of) if of else one[:0] for of, one in enumerate(every)]
        code, result = submit("allgather", name, uneven[rank])
        assert code == 0, (name, shape, library.muster_last_error())
        same(result, np.concatenate(uneven), name, shape)
        out = np.empty_like(np.concatenate(every))
        assert submit("allgather", name, every[rank], out=out)[0] == 0
        same(out, np.concatenate(every), name, shape)
        splits = [(of + to) % 3 for of in everyone for to in everyone]
        sent = [[given(of, name, (splits[of * size + to], *shape[1:])) for to in everyone] for of in everyone]
        code, result = submit("alltoall", name, np.concatenate(sent[rank]), splits=splits[rank * size : (rank + 1) * size])
        assert code == 0, (name, shape, library.muster_last_error())
        same(result, np.concatenate([sent[of][rank] for of in everyone]), name, shape)


def test_what_is_not_reduced_is_refused():
    for name in list(TYPES)[8:]:
        mine = given(rank, name, (3,))
        assert submit("allreduce", name, mine, reduction=0, out=mine)[0] == E_USAGE, name


def test_end():
    assert library.muster_comm_destroy(comm) == 0


check.run(globals())
