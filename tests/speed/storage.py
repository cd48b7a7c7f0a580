#!/usr/bin/env python3
"""Measures how fast a dataset is read and loaded, samples are converted and files staged, compared with pread, dd, tar, cp, h5py and Pillow in the same run.

    TMPDIR=/local python3 tests/speed/storage.py --size 4GiB --json storage.json

Files are made in TMPDIR, whose disk is measured. One repetition runs every row once, in turns. MB/s is 1e6 file bytes a second. "cold": the file's
pages were dropped from the page cache before (posix_fadvise); a note says if some stayed. What is staged is read warm and written without fsync. The last columns
are a row's median as a part of its bound's: of the disk's, which is pread of the whole file in pieces of 4 MiB, or writing from memory; or of memcpy.
What the loader delivers and each file that a row has made are compared with what they should be, with the clock stopped; what is only read is not.
What is converted is read warm, and written until it is on disk. Programs start within the time. Last, training is imitated
by sleeping each step. Needs NumPy; data_loader.py beside it compares the loader with torch's.
"""
import argparse
import ctypes
import importlib
import json
import mmap
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

import numpy

import turns

PIECE = 4 << 20
SMALL, IN_A_FOLDER, SIDE, CLASSES, RECORD = 4096, 200, 64, 10, 28
COLD, MEMORY = "pread, sequential, cold", "memcpy"
FILE, FILES = "write of the file from memory", "write of the small files from memory"


class Rows:
    """A table: ways that take turns, each with what it is compared with."""

    def __init__(self, title):
        self.title, self.ways, self.rates, self.missing = title, {}, {}, []
        self.warm = 0  # the most of the file that has stayed in the page cache where it was to be cold

    def add(self, name, bound, size, work, prepare=None, check=None):
        """`work` handles `size` bytes and is timed; `prepare` and `check` are not."""
        self.ways[name], self.rates[name] = (bound, size, work, prepare, check), []

    def add_program(self, name, bound, size, command, prepare, check=None, needs=None):
        program = needs or command[0]
        if shutil.which(program):
            self.add(name, bound, size, lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), prepare, check)
        else:
            self.missing.append(f"not measured: {name}: {program} is not there; install it")

    def measure(self, repetitions):
        names = list(self.ways)
        for turn in range(repetitions):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                _, size, work, prepare, check = self.ways[name]
                if prepare:
                    prepare()
                began = time.perf_counter()
                work()
                self.rates[name].append(size / 1e6 / (time.perf_counter() - began))
                if check:
                    check()

    def part(self, name):
        bound = self.ways[name][0]
        return statistics.median(self.rates[name]) / statistics.median(self.rates[bound]) if bound else None

    def show(self):
        parts = {name: self.part(name) for name in self.ways}
        turns.print_table([[self.title, "MB/s", "smallest", "largest", "part", "of"],
                           *([name, *turns.short(self.rates[name], ".0f"), f"{parts[name]:.2f}" if parts[name] else "", self.ways[name][0]] for name in self.ways)])  # fmt: skip
        if self.warm > 0.05:
            print(f"warm: {100 * self.warm:.0f} % of the file stayed in the page cache where it was to be cold")
        print("".join(each + "\n" for each in self.missing))


def cached_part(path):
    """The part of a file's pages that is in the page cache."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        pages = numpy.zeros(-(-len(mapped) // mmap.PAGESIZE), "u1")
        address = numpy.frombuffer(mapped, "u1").ctypes.data
        if ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(mapped)), ctypes.c_void_p(pages.ctypes.data)) != 0:
            sys.exit(f"{path}: mincore failed: {os.strerror(ctypes.get_errno())}; without it nobody knows whether the file was cold")
    return float((pages & 1).mean())


def flat(data):
    return data.reshape(-1) if isinstance(data, numpy.ndarray) else numpy.frombuffer(data, "u1")


def same(found, wanted, what):
    if not numpy.array_equal(flat(found), flat(wanted)):
        sys.exit(f"{what} does not hold what was to be brought there; its row means nothing")


def write_pieces(path, data):
    with open(path, "wb", buffering=0) as file:
        for at in range(0, len(data), PIECE):
            file.write(data[at : at + PIECE])


def write_idx(path, values):
    with open(path, "wb") as file:
        file.write(bytes([0, 0, 8, values.ndim]) + numpy.array(values.shape, ">u4").tobytes() + values.tobytes())


def stage(command, *words):
    return [str(turns.PROGRAMS / "muster-stage"), command, "--progress", "none", *map(str, words)]


def reading_rows(folder, size, batch, workers):
    """Returns the rows, and what begins an epoch in each mode of memory."""
    side = 2 * RECORD
    images = numpy.random.default_rng(1).integers(0, 256, (max(1, size // side**2), side, side), "u1")
    write_idx(folder / "records-images", images)
    write_idx(folder / "records-labels", numpy.zeros(len(images), "u1"))
    path, copy = folder / "records.h5", folder / "copy"
    subprocess.run(stage("convert", "--no-digests", "-o", path, f"{folder}/records-images,{folder}/records-labels"), check=True, capture_output=True)
    whole, record = path.stat().st_size, side**2
    known, chunk = {zlib.crc32(each) for each in images}, max(1, PIECE // record)
    window = (chunk, max(2, len(images) // chunk // 8))  # an eighth is mixed at a time, as where the set is larger than memory
    source, target, order = images.reshape(-1), numpy.ones(images.size, "u1"), numpy.random.default_rng(2).permutation(len(images))

    def drop():
        with open(path, "rb") as file:
            os.fdatasync(file.fileno())  # only what is on disk can be dropped
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        rows.warm = max(rows.warm, cached_part(path))

    def pread_all():
        with open(path, "rb", buffering=0) as file:
            piece = bytearray(PIECE)
            while file.readinto(piece):
                pass

    def pread_shuffled():
        with open(path, "rb", buffering=0) as file:
            for i in order:
                os.pread(file.fileno(), record, int(i) * record)

    def loader(memory):
        sampler = muster.data.Sampler(len(images), 0, 1, window=window if memory == "windowed" else None)
        return muster.data.Loader(str(path), "train", batch, sampler=sampler, memory=memory, as_="numpy", workers=workers)

    def epoch(of):
        return sum(len(got) for got, _ in of)

    def check_epoch(of):
        got = [zlib.crc32(numpy.ascontiguousarray(each)) for some, _ in of for each in some]
        if len(got) != len(images) or set(got) != known:
            sys.exit("the loader delivered other samples than the dataset has; its row means nothing")

    def check_copy():
        same(copy.read_bytes(), path.read_bytes(), copy)
        copy.unlink()

    rows = Rows("reading")
    rows.add(COLD, "", whole, pread_all, drop)
    rows.add_program("dd, sequential, cold", COLD, whole, ["dd", f"if={path}", "of=/dev/null", "bs=4M", "status=none"], drop)
    rows.add_program("tar, sequential, cold", COLD, whole, ["sh", "-c", 'tar -C "$0" -cf - records.h5 | cat', str(folder)], drop, needs="tar")
    rows.add_program("cp to the same disk, cold", COLD, whole, ["cp", "--reflink=never", str(path), str(copy)], drop, check_copy)
    rows.add(MEMORY, "", images.size, lambda: numpy.copyto(target, source))
    rows.add("pread, sequential, warm", MEMORY, whole, pread_all, pread_all)
    rows.add("pread a sample, shuffled, warm", MEMORY, images.size, pread_shuffled, pread_all)
    kept, windows = loader("whole"), loader("windowed")
    rows.add("loader whole, shuffled", MEMORY, images.size, lambda: epoch(kept), None, lambda: check_epoch(kept))
    rows.add("loader windowed, shuffled, cold", COLD, images.size, lambda: epoch(windows), drop, lambda: check_epoch(windows))
    rows.add("loader windowed, shuffled, warm", MEMORY, images.size, lambda: epoch(windows), pread_all, lambda: check_epoch(windows))
    # Made anew: pages that are mapped are not dropped where others want them cold.
    rows.add("loader mapped, shuffled, warm", MEMORY, images.size, lambda: epoch(loader("mapped")), pread_all, lambda: check_epoch(loader("mapped")))
    if h5py := module("h5py", rows):

        def h5py_shuffled():
            with h5py.File(path) as file:
                for i in order:
                    file["train/images"][int(i)]

        rows.add("h5py, a sample at a time, shuffled", MEMORY, images.size, h5py_shuffled, pread_all)
    return rows, {"whole": lambda: (None, loader("whole")), "windowed": lambda: (drop(), loader("windowed"))}


def train(begin, step_s):
    """Returns DLIO's summary of a training whose steps take a given time."""
    _, loader = begin()
    began = time.perf_counter()
    for _ in loader:
        time.sleep(step_s)
    seconds, spent = time.perf_counter() - began, loader.report()
    return {"train_au_percentage": 100 * (1 - spent.waited), "train_throughput_samples_per_second": spent.samples / seconds,
            "train_io_mean_MB_per_second": spent.bytes / 1e6 / seconds}  # fmt: skip


def module(name, rows):
    try:
        return importlib.import_module(name)
    except ImportError:
        rows.missing.append(f"not measured: what needs {name}, which {sys.executable} does not have")


def staging_rows(folder, size, files):
    random, target, rows = numpy.random.default_rng(3), folder / "target", Rows("staging and converting")
    one, small = folder / "one", [random.bytes(SMALL) for _ in range(files)]
    data = random.bytes(size)
    write_pieces(one, data)
    names = [f"{i // IN_A_FOLDER:03}/{i:06}" for i in range(files)]

    def write_small(into):
        for i, name in enumerate(names):
            if i % IN_A_FOLDER == 0:
                os.makedirs(into / name[:3])
            write_pieces(into / name, small[i])

    def clear():
        shutil.rmtree(target, ignore_errors=True)
        target.unlink(missing_ok=True)
        os.sync()  # what earlier runs have left to write is not written during the next

    def check_one(at=target):
        same(at.read_bytes(), data, at)

    def check_small():
        for name, wanted in zip(names, small):
            same((target / "many" / name).read_bytes(), wanted, target)

    many, bytes_of_many = folder / "many", SMALL * files
    write_small(many)
    rows.add(FILE, "", size, lambda: write_pieces(target, data), clear, check_one)
    rows.add_program("muster-stage copy, one file", FILE, size, stage("copy", one, target), clear, lambda: check_one(target / "one"))
    rows.add_program("cp, one file", FILE, size, ["cp", "--reflink=never", str(one), str(target)], clear, check_one)
    rows.add_program("dd, one file", FILE, size, ["dd", f"if={one}", f"of={target}", "bs=4M", "status=none"], clear, check_one)
    rows.add(FILES, "", bytes_of_many, lambda: write_small(target / "many"), clear, check_small)
    rows.add_program("muster-stage copy, small files", FILES, bytes_of_many, stage("copy", many, target), clear, check_small)
    rows.add_program("cp -r, small files", FILES, bytes_of_many, ["sh", "-c", 'mkdir "$1" && cp -r "$0" "$1"', str(many), str(target)], clear, check_small)
    pipe = ["sh", "-c", 'mkdir "$1" && tar -C "$0" -cf - many | tar -C "$1" -xf -', str(folder), str(target)]
    rows.add_program("tar | tar, small files", FILES, bytes_of_many, pipe, clear, check_small, needs="tar")
    add_conversions(folder, target, clear, rows)
    return rows


def add_conversions(folder, target, clear, rows):
    records = numpy.random.default_rng(4).integers(0, 256, (40_000, RECORD, RECORD), "u1")
    numbers = (numpy.arange(len(records)) % CLASSES).astype("u1")
    write_idx(folder / "images", records)
    write_idx(folder / "labels", numbers)

    def read():
        if not h5py:
            got = list(muster.data.Loader(str(target), "train", 1000, shuffle=False, rank=0, size=1, as_="numpy", copy=True))
            return [numpy.concatenate(each) for each in zip(*got)]
        with h5py.File(target) as file:
            return [file[name][()] for name in ("train/images", "train/labels")]

    def check(images, labels):
        def compare():
            for found, wanted in zip(read(), (images, labels)):
                same(found, wanted, target)

        return compare

    def idx_by_hand():
        numbers_of_file = numpy.fromfile(folder / "labels", "u1", offset=8)
        by_hand(numpy.fromfile(folder / "images", "u1", offset=16).reshape(records.shape), numbers_of_file)

    def by_hand(images, labels):
        with h5py.File(target, "w") as file:
            file["train/images"], file["train/labels"] = images, labels
        with open(target, "rb") as file:
            os.fsync(file.fileno())  # as muster-stage convert waits for the disk

    h5py, image = module("h5py", rows), module("PIL.Image", rows)
    source = f"{folder}/images,{folder}/labels"
    rows.add_program("muster-stage convert, IDX", FILE, records.size, stage("convert", "--no-digests", "-o", target, source), clear, check(records, numbers))
    if h5py:
        rows.add("NumPy and h5py, IDX", FILE, records.size, idx_by_hand, clear, check(records, numbers))
    if not image:
        return
    pictures, row = [], numpy.arange(SIDE * SIDE * 3) // 96
    for i in range(1000):  # slopes with some noise, as in photographs
        noise = numpy.random.default_rng(i).integers(0, 8, row.size)
        pictures.append(((row + i + noise) % 256).astype("u1").reshape(SIDE, SIDE, 3))
        file = folder / "pictures" / str(i * CLASSES // 1000) / f"{i:06}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(pictures[-1]).save(file)
    planes, classes = numpy.stack(pictures).transpose(0, 3, 1, 2), numpy.arange(1000) * CLASSES // 1000
    rows.add_program("muster-stage convert, PNG", FILE, planes.size, stage("convert", "--no-digests", "-o", target, folder / "pictures"), clear, check(planes, classes))
    if h5py:

        def pillow():
            files = sorted((folder / "pictures").glob("*/*.png"))
            by_hand(numpy.stack([numpy.asarray(image.open(each)).transpose(2, 0, 1) for each in files]), numpy.array([int(each.parent.name) for each in files], "u1"))

        rows.add("Pillow and h5py, PNG", FILE, planes.size, pillow, clear, check(planes, classes))


def size_of(text):
    for unit, factor in ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30):
        if text.endswith(unit):
            return int(text[: -len(unit)]) * factor
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    turns.add_launcher(parser)
    parser.add_argument("--only", choices=("reading", "staging"), help="default: both")
    parser.add_argument("--size", type=size_of, default=256 << 20, help="of the made-up set; the one file to stage has half of it [256MiB]")
    parser.add_argument("--files", type=int, default=2000, help="small files to stage, of 4 KiB [2000]")
    parser.add_argument("--batch", type=int, default=64, help="samples a batch [64]")
    parser.add_argument("--workers", type=int, default=1, help="threads of the loader that put batches together [1]")
    parser.add_argument("--step-ms", type=float, default=1, help="time of a step where training is imitated [1]")
    parser.add_argument("--repetitions", type=int, default=3, help="of every row [3]")
    parser.add_argument("--json", help="a file for every time")
    given = parser.parse_args()
    turns.PROGRAMS = given.muster.resolve().parent
    sys.path.insert(0, str(turns.PROGRAMS.parent / "python"))  # the loader of the build under test
    global muster
    import muster.data
    others, tables, trained = turns.OtherWork(given.strict), [], {}
    with tempfile.TemporaryDirectory(prefix="muster-storage") as name:
        folder = pathlib.Path(name)
        if given.only != "reading":
            tables.append(staging_rows(folder, max(1, given.size // 2), given.files))
            tables[-1].measure(given.repetitions)
        if given.only != "staging":
            table, modes = reading_rows(folder, given.size, given.batch, given.workers)
            table.measure(given.repetitions)
            tables.append(table)
            trained = {memory: train(begin, given.step_ms / 1e3) for memory, begin in modes.items()}
    for table in tables:
        table.show()
    for memory, found in trained.items():
        print(f"training with steps of {given.step_ms} ms, memory {memory}: " + ", ".join(f"{what} {value:.1f}" for what, value in found.items()))
    print(f"medians of {given.repetitions} interleaved repetitions; columns: --help\n{others.note()}", end="")
    if given.json:
        rows = [{"group": table.title, "name": name, "bound": table.ways[name][0], "of_bound": table.part(name), "mb_per_s": rates}
                for table in tables for name, rates in table.rates.items()]  # fmt: skip
        with open(given.json, "w") as file:
            json.dump({**others.facts(), "warm_part": max(table.warm for table in tables), "rows": rows, "metric": trained}, file, indent=1)


if __name__ == "__main__":
    main()
