"""Peer of muster-bench-dev io: converts a folder of PNG, or a pair of IDX files, to HDF5 as one writes it by hand, and waits until it is on disk.
Prints its seconds as JSON, without the start of the interpreter.

usage: io_convert_peer.py pictures FOLDER OUT | idx IMAGES,LABELS OUT; without arguments it says what it lacks.
"""
import os
import sys
import time

try:
    import h5py
    import numpy
    from PIL import Image
except ImportError as problem:
    print(f"{problem.name} is not there; on Debian: apt install python3-h5py python3-numpy python3-pil")
    sys.exit(0 if len(sys.argv) == 1 else 1)
if len(sys.argv) == 1:
    sys.exit(0)


def pictures(folder):
    import pathlib

    files = sorted(pathlib.Path(folder).glob("*/*.png"))
    classes = sorted({file.parent.name for file in files})
    labels = numpy.array([classes.index(file.parent.name) for file in files], "u1")
    return numpy.stack([numpy.asarray(Image.open(file)).transpose(2, 0, 1) for file in files]), labels


def idx(names):
    images, labels = names.split(",")
    sizes = numpy.fromfile(images, ">u4", 4)
    return numpy.fromfile(images, "u1", offset=16).reshape(sizes[1], 1, sizes[2], sizes[3]), numpy.fromfile(labels, "u1", offset=8)


began = time.perf_counter()
images, labels = {"pictures": pictures, "idx": idx}[sys.argv[1]](sys.argv[2])
with h5py.File(sys.argv[3], "w") as file:
    file["train/images"] = images
    file["train/labels"] = labels
with open(sys.argv[3], "rb") as file:
    os.fsync(file.fileno())
print('{"seconds": %r}' % (time.perf_counter() - began))
