"""Makes dataset files for the tests of muster.data, with the real muster-stage. MUSTER_BIN is the folder of muster's programs. Imported first: it ends a test
with code 77 where a package is lacking."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import numpy
    import torch  # noqa: F401  the tests need it
except ImportError as lacking:
    print(f"skipped: {lacking}")
    sys.exit(77)

BIN = pathlib.Path(os.environ["MUSTER_BIN"])


def convert(folder, name, *arguments, **arrays):
    """folder/NAME.h5 of arrays, as an .npz file names them."""
    source = folder / f"{name}.npz"
    numpy.savez(source, **arrays)
    out = folder / f"{name}.h5"
    subprocess.run([BIN / "muster-stage", "convert", source, "-o", out, "--progress", "none", *arguments], check=True, stdout=subprocess.DEVNULL)
    return out


def images(samples, channels=3, height=8, width=10, seed=1, dtype=numpy.uint8):
    return numpy.random.default_rng(seed).integers(0, 256, (samples, channels, height, width)).astype(dtype)


def labels(samples, classes=5, seed=2):
    return numpy.random.default_rng(seed).integers(0, classes, samples).astype(numpy.uint16 if classes > 256 else numpy.uint8)


def colour_file(folder, samples=50, **options):
    """50 training and 9 test images of 3 x 8 x 10 bytes, 5 classes; contiguous."""
    return convert(
        folder, "colour", "--order", "chw", "--classes", "5",
        x_train=images(samples), y_train=labels(samples), x_test=images(9, seed=3), y_test=labels(9, seed=4), **options,
    )


def content(path, split="train"):
    """(images, labels) as h5py reads them."""
    with h5py.File(path) as file:
        group = file[split]
        return group["images"][:], group["labels"][:] if "labels" in group else None


def run_python(text, **environment):
    """Runs a program in a fresh interpreter of this Python; returns what it printed. The test fails if it does."""
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, **environment}, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
    )
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class FileTest(unittest.TestCase):
    """A test with a folder of its own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-data."))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
