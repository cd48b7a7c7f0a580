"""Tests muster.data.Dataset: values against h5py, DataLoader with workers, pickling, files that are wrong."""
import os
import pickle
import unittest

from data_files import FileTest, colour_file, content, convert, images, labels, run_python  # first: it may skip

import numpy
import torch
from torch.utils.data import DataLoader

import muster.data

MADE_HERE = os.getpid()


def halve(image):
    assert image.flags.writeable
    return image // 2


def is_worker(image):
    return numpy.array([os.getpid() != MADE_HERE or torch.utils.data.get_worker_info() is not None])


class Values(FileTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = colour_file(cls.folder)

    def test_samples_are_those_of_h5py(self):
        for split, count in (("train", 50), ("test", 9)):
            pixels, numbers = content(self.path, split)
            data = muster.data.Dataset(self.path, split)
            self.assertEqual((len(data), data.shape, data.dtype, data.classes, data.class_names), (count, (3, 8, 10), "uint8", 5, None))
            self.assertTrue(data.has_labels)
            for i in range(count):
                image, label = data[i]
                numpy.testing.assert_array_equal(image, pixels[i])
                self.assertEqual(image.dtype, numpy.uint8)
                self.assertEqual((type(label), label), (int, numbers[i]))
            numpy.testing.assert_array_equal([image for image, _ in data], pixels)

    def test_an_image_is_the_callers_own(self):
        data = muster.data.Dataset(self.path)
        data[7][0][:] = 0
        numpy.testing.assert_array_equal(data[7][0], content(self.path)[0][7])

    def test_numbers(self):
        data = muster.data.Dataset(self.path)
        pixels, _ = content(self.path)
        numpy.testing.assert_array_equal(data[-1][0], pixels[49])
        numpy.testing.assert_array_equal(data[numpy.int64(-50)][0], pixels[0])
        numpy.testing.assert_array_equal(data[torch.tensor(3)][0], pixels[3])
        for wrong in (50, -51):
            with self.assertRaisesRegex(IndexError, f"no sample {wrong} in split 'train', which has 50"):
                data[wrong]
        with self.assertRaises(IndexError):
            data[[1, 50]]
        with self.assertRaises(TypeError):
            data[1.5]

    def test_several(self):
        data = muster.data.Dataset(self.path)
        pixels, numbers = content(self.path)
        for index, wanted in ((slice(3, 9, 2), [3, 5, 7]), (slice(None, -48), [0, 1]), ([4, -1], [4, 49]), (numpy.array([2, 2]), [2, 2])):
            got = data[index]
            self.assertEqual([label for _, label in got], list(numbers[wanted]))
            numpy.testing.assert_array_equal([image for image, _ in got], pixels[wanted])
        self.assertEqual(data[5:5], [])

    def test_read(self):
        pixels, numbers = content(self.path)
        got, told = muster.data.Dataset(self.path).read(10, 5)
        numpy.testing.assert_array_equal(got, pixels[10:15])
        numpy.testing.assert_array_equal(told, numbers[10:15])
        got, told = muster.data.Dataset(self.path, as_="torch").read()
        self.assertEqual((told.dtype, told.tolist()), (torch.int64, numbers.tolist()))
        numpy.testing.assert_array_equal(got.numpy(), pixels)
        for wrong in ((-1, 2), (48, 3), (3, -1)):
            with self.assertRaises(IndexError):
                muster.data.Dataset(self.path).read(*wrong)

    def test_kinds_of_array(self):
        pixels, _ = content(self.path)
        tensor = muster.data.Dataset(self.path, as_="torch")[3][0]
        self.assertEqual((tensor.dtype, tuple(tensor.shape)), (torch.uint8, (3, 8, 10)))
        numpy.testing.assert_array_equal(tensor.numpy(), pixels[3])
        view = muster.data.Dataset(self.path, as_="buffer")[3][0]
        self.assertEqual((view.format, view.shape), ("B", (3, 8, 10)))
        self.assertEqual(view.tolist(), pixels[3].tolist())
        with self.assertRaisesRegex(ValueError, "as_ is 'jax'; give one of numpy, torch, buffer"):
            muster.data.Dataset(self.path, as_="jax")

    def test_transform(self):
        data = muster.data.Dataset(self.path, transform=halve)
        numpy.testing.assert_array_equal(data[3][0], content(self.path)[0][3] // 2)

    def test_other_types(self):
        wide = convert(self.folder, "wide", "--order", "chw", images=images(20, 2, 4, 5, dtype=numpy.uint16) * 200, labels=labels(20, 700))
        data = muster.data.Dataset(wide)
        pixels, numbers = content(wide)
        self.assertEqual((data.dtype, numbers.dtype), ("uint16", numpy.uint16))
        numpy.testing.assert_array_equal([image for image, _ in data], pixels)
        self.assertEqual([label for _, label in data], numbers.tolist())
        if not hasattr(torch, "uint16"):
            with self.assertRaisesRegex(ValueError, "has no type uint16"):
                muster.data.Dataset(wide, as_="torch")[0]

        vectors = convert(self.folder, "vectors", images=numpy.random.default_rng(1).standard_normal((30, 6)).astype(numpy.float32))
        for as_ in ("numpy", "torch"):
            data = muster.data.Dataset(vectors, as_=as_)
            self.assertFalse(data.has_labels)
            self.assertEqual((data.classes, data.dtype, data.shape), (0, "float32", (6,)))
            numpy.testing.assert_array_equal(numpy.stack([numpy.asarray(image) for image in data]), content(vectors)[0])
            numpy.testing.assert_array_equal(numpy.asarray(data.read(28)), content(vectors)[0][28:])
        self.assertEqual(next(iter(DataLoader(data, 4))).shape, (4, 6))

    def test_names_of_classes(self):
        named = convert(self.folder, "named", "--class-names", "cat,dog,ému", images=images(6), labels=labels(6, 3))
        self.assertEqual(muster.data.Dataset(named).class_names, ["cat", "dog", "ému"])

    def test_a_file_that_cannot_be_mapped(self):
        packed = convert(self.folder, "packed", "--order", "chw", "--gzip", "1", "--chunk", "8", images=images(50), labels=labels(50))
        data = muster.data.Dataset(packed)
        self.assertEqual(data._facts.image_offset, 0)
        pixels, numbers = content(packed)
        numpy.testing.assert_array_equal([image for image, _ in data], pixels)
        self.assertEqual([label for _, label in data], numbers.tolist())
        numpy.testing.assert_array_equal(data.read(7, 9)[0], pixels[7:16])
        for context in ("fork", "spawn"):
            got = torch.cat([batch for batch, _ in DataLoader(data, 8, num_workers=2, multiprocessing_context=context)])
            numpy.testing.assert_array_equal(got.numpy(), pixels)


class Processes(FileTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = colour_file(cls.folder)

    def test_data_loader(self):
        pixels, numbers = content(self.path)
        for as_ in ("numpy", "torch"):
            data = muster.data.Dataset(self.path, as_=as_)
            data[0]  # open here already, before workers come
            for workers in (0, 1, 2):
                for context in ("fork", "spawn", "forkserver") if workers and as_ == "numpy" else ("fork",) if workers else (None,):
                    with self.subTest(as_=as_, workers=workers, context=context):
                        batches = list(DataLoader(data, batch_size=8, num_workers=workers, multiprocessing_context=context))
                        numpy.testing.assert_array_equal(torch.cat([x for x, _ in batches]).numpy(), pixels)
                        self.assertEqual(torch.cat([y for _, y in batches]).tolist(), numbers.tolist())

    def test_workers_do_the_work(self):
        data = muster.data.Dataset(self.path, transform=is_worker)
        flags = torch.cat([x for x, _ in DataLoader(data, 10, num_workers=2, multiprocessing_context="spawn")])
        self.assertTrue(flags.all())

    def test_a_worker_needs_no_library(self):
        data = pickle.dumps(muster.data.Dataset(self.path))
        wanted = content(self.path)[0][11].sum()
        program = (
            f"import sys; sys.modules['_muster_data'] = None\n"
            f"import pickle, muster.data._library as library; data = pickle.loads({data!r}); image, label = data[11]\n"
            "assert library._loaded is None and not any('libhdf5' in line or 'libmpi.' in line for line in open('/proc/self/maps'))\n"
            "print(image.sum())"
        )
        self.assertEqual(run_python(program).strip(), str(wanted))

    def test_another_working_directory(self):
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            data = muster.data.Dataset(self.path.name)
        finally:
            os.chdir(here)
        self.assertEqual(len(pickle.loads(pickle.dumps(data))[3]), 2)

    def test_import_is_light(self):
        run_python(
            "import sys, muster.data\n"
            "assert not {'torch', 'numpy', 'jax'} & set(sys.modules), sorted(sys.modules)\n"
            "assert not any('libhdf5' in line or 'libmpi.' in line for line in open('/proc/self/maps'))"
        )

    def test_without_numpy(self):
        program = (
            "import sys, warnings; sys.modules['numpy'] = None; warnings.simplefilter('ignore')\n"
            f"import muster.data\ndata = muster.data.Dataset({str(self.path)!r})\n"
            "assert isinstance(data[3][0], memoryview)\n"
            f"tensor, label = muster.data.Dataset({str(self.path)!r}, as_='torch')[3]\n"
            "assert tensor.tolist() == data[3][0].tolist() and label == data[3][1]\n"
            "images, labels = next(iter(muster.data.Loader(data, batch_size=50, shuffle=False, as_='torch')))\n"
            "assert images[3].tolist() == tensor.tolist() and labels[3] == label\n"
            "try:\n    muster.data.Loader(data, as_='numpy')\nexcept muster.data.UnavailableError as problem:\n    print(problem)"
        )
        self.assertIn('as_="numpy" needs the package numpy', run_python(program))


class Faults(FileTest):
    def setUp(self):
        self.path = colour_file(self.folder)
        self.addCleanup(self.path.unlink)

    def test_no_file_and_no_split(self):
        with self.assertRaisesRegex(FileNotFoundError, "/no/such/file.h5") as raised:
            muster.data.Dataset("/no/such/file.h5")
        self.assertIsInstance(raised.exception, muster.data.Error)
        with self.assertRaisesRegex(FileNotFoundError, "no split 'tset'; it has test, train; did you mean test"):
            muster.data.Dataset(self.path, "tset")
        with self.assertRaises(OSError):
            muster.data.Dataset(self.folder)

    def test_no_dataset(self):
        (self.folder / "text.h5").write_text("no HDF5 at all\n" * 100)
        with self.assertRaisesRegex(OSError, "text.h5"):
            muster.data.Dataset(self.folder / "text.h5")
        import h5py

        with h5py.File(self.folder / "other.h5", "w") as file:
            file["x"] = [1]
        with self.assertRaisesRegex(muster.data.DataError, "no muster dataset"):
            muster.data.Dataset(self.folder / "other.h5")

    def test_cut_short(self):
        data = muster.data.Dataset(self.path)
        end = data._facts.image_offset + 100
        os.truncate(self.path, end)
        with self.assertRaises(muster.data.Error):
            muster.data.Dataset(self.path)
        with self.assertRaises(muster.data.Error):  # not a signal
            data[49]
        with self.assertRaisesRegex(muster.data.DataError, "was cut short"):  # just before it is mapped
            muster.data.dataset._OpenFile(str(self.path), "train", data._facts)

    def test_damaged(self):
        data = muster.data.Dataset(self.path)
        data.verify()
        with open(self.path, "r+b") as file:
            file.seek(data._facts.image_offset + 1000)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
        with self.assertRaisesRegex(muster.data.DataError, "/train/images.*checksum") as raised:
            data.verify()
        self.assertIsInstance(raised.exception, ValueError)

    def test_replaced(self):
        data = pickle.loads(pickle.dumps(muster.data.Dataset(self.path)))
        self.path.unlink()
        with self.assertRaisesRegex(FileNotFoundError, "is gone"):
            data[0]
        colour_file(self.folder, samples=40)
        with self.assertRaisesRegex(muster.data.DataError, "make another"):
            data[0]
        self.path.unlink()
        colour_file(self.folder)
        numpy.testing.assert_array_equal(data[5][0], content(self.path)[0][5])

    def test_library_that_is_not_there(self):
        program = (
            "import sys; sys.modules['_muster_data'] = None\n"
            "import muster.data\ntry:\n    muster.data.Dataset('x')\nexcept muster.data.UnavailableError as problem:\n    print(problem)"
        )
        self.assertRegex(run_python(program), "could not load _muster_data, which reads datasets: .*; install muster built with HDF5 and MPI")

    def test_errors_pass_between_processes(self):
        for raised in (muster.data.NotFoundError("no such file"), muster.data.DataError("damaged")):
            back = pickle.loads(pickle.dumps(raised))
            self.assertEqual((type(back), str(back)), (type(raised), str(raised)))


if __name__ == "__main__":
    unittest.main()
