"""Datasets by the C interface, from ctypes alone. Usage: dataset.py LIBRARY FILE"""
import ctypes
import sys

io = ctypes.CDLL(sys.argv[1])
io.muster_io_last_error.restype = ctypes.c_char_p
io.muster_loader_why.restype = ctypes.c_char_p
u64, pointer = ctypes.c_uint64, ctypes.c_void_p


class Facts(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [
        (name, u64) for name in ("samples", "channels", "height", "width", "sample_bytes", "label_bytes", "classes")
    ]


class Options(ctypes.Structure):
    _fields_ = (
        [("struct_size", ctypes.c_size_t), ("batch", u64)]
        + [(name, ctypes.c_int) for name in ("rank", "world", "local_rank", "local_size", "memory", "prefetch", "workers", "readers")]
        + [("transform", pointer)]
    )


class Transform(ctypes.Structure):
    _fields_ = (
        [("struct_size", ctypes.c_size_t), ("mean", ctypes.POINTER(ctypes.c_float)), ("deviation", ctypes.POINTER(ctypes.c_float))]
        + [(name, u64) for name in ("channels", "crop_height", "crop_width", "pad")]
        + [("random", ctypes.c_int), ("flip", ctypes.c_int)]
    )


class Batch(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("images", ctypes.POINTER(ctypes.c_uint8)),
        ("values", ctypes.POINTER(ctypes.c_float)),
        ("labels", ctypes.POINTER(ctypes.c_uint8)),
        ("samples", ctypes.POINTER(u64)),
        ("count", u64),
        ("global_count", u64),
        ("resume_at", u64),
    ]


def check(code):
    if code != 0:
        sys.exit(f"code {code}: {io.muster_io_last_error().decode()}")


data, sampler, loader = pointer(), pointer(), pointer()
check(io.muster_dataset_open(sys.argv[2].encode(), None, ctypes.byref(data)))
facts = Facts(struct_size=ctypes.sizeof(Facts))
check(io.muster_dataset_describe(data, ctypes.byref(facts)))
check(io.muster_sampler_create(u64(facts.samples), None, ctypes.byref(sampler)))
transform = Transform(struct_size=ctypes.sizeof(Transform))
options = Options(struct_size=ctypes.sizeof(Options), batch=50, transform=ctypes.addressof(transform))
check(io.muster_loader_create(data, sampler, ctypes.byref(options), ctypes.byref(loader)))
check(io.muster_dataset_close(data))
check(io.muster_loader_epoch(loader, u64(0), u64(0), None))
batch = Batch(struct_size=ctypes.sizeof(Batch))
seen, values = [], 0
while (code := io.muster_loader_next(loader, ctypes.byref(batch))) == 0:
    seen += batch.samples[: batch.count]
    assert not batch.images
    assert all(0 <= value <= 1 for value in batch.values[: batch.count * facts.sample_bytes])
assert code == 1 and sorted(seen) == list(range(facts.samples)) and seen != sorted(seen)
print("why:", io.muster_loader_why(loader).decode())
check(io.muster_loader_free(loader))
check(io.muster_sampler_free(sampler))
print(len(seen), "samples once each")
