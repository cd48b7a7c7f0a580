"""Tests muster.data.Loader: batches against the file and against torch, how long they are valid, resuming, closing, forks, exits."""
import gc
import os
import subprocess
import sys
import unittest
import warnings

from data_files import FileTest, colour_file, content, convert, images, labels, run_python  # first: it may skip

import numpy
import torch

import muster.data
from muster.data import Dataset, Loader, Sampler


class LoaderTest(FileTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = colour_file(cls.folder)
        cls.pixels, cls.labels = content(cls.path)

    def loader(self, *arguments, **options):
        made = Loader(self.path, *arguments, **options)
        self.addCleanup(made.close)
        return made


class Contents(LoaderTest):
    def test_batches_are_those_of_the_file(self):
        for prefetch in (0, 2):
            loader = self.loader(batch_size=8, prefetch=prefetch)
            self.assertEqual((len(loader), loader.shape, loader.rank, loader.size), (7, (3, 8, 10), 0, 1))
            seen = []
            for step, batch in enumerate(loader):
                pixels, numbers = batch
                self.assertEqual((pixels.dtype, numbers.dtype), (torch.uint8, torch.int64))
                self.assertEqual(tuple(pixels.shape), (batch.count, 3, 8, 10))
                numpy.testing.assert_array_equal(pixels.numpy(), self.pixels[batch.samples])
                self.assertEqual(numbers.tolist(), self.labels[batch.samples].tolist())
                self.assertEqual((batch.count, batch.global_count), (8, 8) if step < 6 else (2, 2))
                self.assertEqual(batch.resume_at, min(50, 8 * step + 8))
                self.assertIs(batch.images, batch[0])
                self.assertIs(batch.labels, batch[1])
                seen += batch.samples
            self.assertEqual(seen, list(Sampler(50, 0, 1)))
            self.assertIn("memory mode whole", loader.why)

    def test_splits_and_order(self):
        loader = self.loader("test", 4, shuffle=False)
        numpy.testing.assert_array_equal(torch.cat([x.clone() for x, _ in loader]).numpy(), content(self.path, "test")[0])
        given = Loader(Dataset(self.path, "test"), batch_size=9, shuffle=False)
        numpy.testing.assert_array_equal(next(iter(given))[0].numpy(), content(self.path, "test")[0])
        with self.assertRaisesRegex(ValueError, "with a Dataset of split 'test'"):
            Loader(Dataset(self.path, "test"), "train")

    def test_advice_is_in_the_words_of_python(self):
        for memory, words in (("shard", r'sampler=Sampler\(data, spread="sharded"\)'), ("windowed", r"sampler=Sampler\(data, window=\(SAMPLES, CHUNKS\)\)")):
            with self.assertRaisesRegex(ValueError, words):
                self.loader(memory=memory)
        data = Dataset(self.path)
        self.assertIn("shard", Loader(data, sampler=Sampler(data, 0, 2, spread="sharded"), memory="shard").why)
        with self.assertRaisesRegex(ValueError, "a dataset is one file, given by its path, not list; .* convert their sources into one file"):
            Loader([self.path, self.path])

    def test_epochs(self):
        loader = self.loader(batch_size=50)
        first, second = [next(iter(loader)).samples for _ in range(2)]  # begun again
        self.assertEqual(first, second)
        self.assertEqual([batch.samples for batch in loader], [first])
        self.assertNotEqual([batch.samples for batch in loader], [first])
        self.assertEqual(loader.epoch, 1)
        loader.set_epoch(0)
        self.assertEqual([batch.samples for batch in loader], [first])

    def test_memory_modes_deliver_the_same(self):
        wanted = [batch.samples for batch in self.loader(batch_size=7)]
        for memory in ("whole", "mapped"):
            loader = self.loader(batch_size=7, memory=memory)
            self.assertIn(f"memory mode {memory}", loader.why)
            for batch, samples in zip(loader, wanted):
                self.assertEqual(batch.samples, samples)
                numpy.testing.assert_array_equal(batch.images.numpy(), self.pixels[samples])
        windowed = self.loader(batch_size=7, memory="windowed", sampler=Sampler(50, 0, 1, window=(4, 3)))
        self.assertEqual(sorted(sum((batch.samples for batch in windowed), [])), list(range(50)))
        sharded = self.loader(batch_size=7, memory="shard", sampler=Sampler(50, 1, 2, spread="sharded"))
        self.assertEqual(sorted(sum((batch.samples for batch in sharded), [])), list(range(25, 50)))

    def test_kinds_of_array(self):
        for batch in self.loader(batch_size=8, as_="numpy"):
            self.assertEqual((batch.images.dtype, batch.labels.dtype), (numpy.uint8, numpy.uint8))
            numpy.testing.assert_array_equal(batch.images, self.pixels[batch.samples])
            numpy.testing.assert_array_equal(batch.labels, self.labels[batch.samples])
        for copy in (False, True):
            for batch in self.loader(batch_size=8, as_="buffer", copy=copy):
                self.assertEqual(batch.images.shape, (batch.count, 3, 8, 10))
                self.assertEqual(batch.images.tolist(), self.pixels[batch.samples].tolist())
                self.assertEqual(batch.labels.tolist(), self.labels[batch.samples].tolist())

    def test_other_types(self):
        wide = convert(self.folder, "wide", "--order", "chw", images=images(20, 2, 4, 5, dtype=numpy.uint16) * 200, labels=labels(20, 700))
        pixels, numbers = content(wide)
        for batch in Loader(wide, batch_size=6, as_="numpy"):
            numpy.testing.assert_array_equal(batch.images, pixels[batch.samples])
            numpy.testing.assert_array_equal(batch.labels, numbers[batch.samples])
        vectors = convert(self.folder, "vectors", images=numpy.random.default_rng(1).standard_normal((30, 6)).astype(numpy.float32))
        for dtype in (None, "f32", torch.float32):
            for batch in Loader(vectors, batch_size=7, dtype=dtype):
                self.assertEqual((len(batch), batch.labels), (1, None))
                (values,) = batch
                numpy.testing.assert_array_equal(values.numpy(), content(vectors)[0][batch.samples])
        many = convert(self.folder, "many", "--order", "chw", "--classes", "70000", images=images(20, 2, 4, 5), labels=labels(20, 700) + 40_000)
        for batch in Loader(many, batch_size=7):  # uint32, and below above 32767 as uint16
            self.assertEqual(batch.labels.tolist(), content(many)[1][batch.samples].tolist())
        high = convert(self.folder, "high", "--order", "chw", "--classes", "60000", images=images(20, 2, 4, 5), labels=labels(20, 700) + 40_000)
        for batch in Loader(high, batch_size=7):
            self.assertEqual(batch.labels.tolist(), content(high)[1][batch.samples].tolist())


class Preparation(LoaderTest):
    mean, deviation = (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)

    def as_torch_does(self, samples):
        pixels = torch.from_numpy(self.pixels[samples]).to(torch.float32) / 255
        return (pixels - torch.tensor(self.mean).view(3, 1, 1)) / torch.tensor(self.deviation).view(3, 1, 1)

    def test_normalize(self):
        for batch in self.loader(batch_size=8, normalize=(self.mean, self.deviation)):
            self.assertEqual(batch.images.dtype, torch.float32)
            torch.testing.assert_close(batch.images, self.as_torch_does(batch.samples), rtol=1e-5, atol=1e-6)
        for batch in self.loader(batch_size=8, normalize=(0.5, 0.25), as_="numpy"):
            numpy.testing.assert_allclose(batch.images, (self.pixels[batch.samples] / 255.0 - 0.5) / 0.25, atol=1e-5)
        for batch in self.loader(batch_size=8, dtype="f32"):
            numpy.testing.assert_allclose(batch.images.numpy(), self.pixels[batch.samples] / 255.0, atol=1e-6)

    def test_crop_in_the_middle(self):
        loader = self.loader(batch_size=8, crop=(4, 6), normalize=(self.mean, self.deviation))
        self.assertEqual(loader.shape, (3, 4, 6))
        for batch in loader:
            torch.testing.assert_close(batch.images, self.as_torch_does(batch.samples)[:, :, 2:6, 2:8], rtol=1e-5, atol=1e-6)

    def test_random_crop_and_flip(self):
        """Each image is one of the crops that torch can make of the padded image, and chance is the same in each run."""
        options = dict(batch_size=50, crop=8, padding=2, random_crop=True, flip=True)
        batch = next(iter(self.loader(**options)))
        self.assertEqual(tuple(batch.images.shape), (50, 3, 8, 8))
        padded = torch.nn.functional.pad(torch.from_numpy(self.pixels[batch.samples]).to(torch.float32) / 255, (2, 2, 2, 2))
        places = set()
        for image, whole in zip(batch.images, padded):
            for top in range(5):
                for left in range(7):
                    crop = whole[:, top : top + 8, left : left + 8]
                    for flipped, candidate in enumerate((crop, crop.flip(2))):
                        if torch.allclose(image, candidate, atol=1e-6):
                            places.add((top, left, flipped))
                            break
        self.assertGreater(len(places), 15)
        self.assertEqual({flipped for _, _, flipped in places}, {0, 1})
        torch.testing.assert_close(next(iter(self.loader(**options))).images, batch.images, rtol=0, atol=0)

    def test_channels_last(self):
        wanted = {i: self.pixels[i] for i in range(50)}
        for batch in self.loader(batch_size=8, channels_last=True):
            self.assertTrue(batch.images.is_contiguous(memory_format=torch.channels_last))
            numpy.testing.assert_array_equal(batch.images.numpy(), [wanted[i] for i in batch.samples])
        for batch in self.loader(batch_size=8, channels_last=True, as_="numpy"):
            numpy.testing.assert_array_equal(batch.images, [wanted[i].transpose(1, 2, 0) for i in batch.samples])
        with self.assertRaisesRegex(ValueError, "channels_last"):
            self.loader(channels_last=True, as_="buffer")

    def test_transform_of_a_batch(self):
        for batch in self.loader(batch_size=8, transform=lambda pixels: pixels.to(torch.int32) * 2):
            numpy.testing.assert_array_equal(batch.images.numpy(), self.pixels[batch.samples].astype(numpy.int32) * 2)

    def test_device(self):
        for batch in self.loader(batch_size=8, device="cpu", copy=True):
            numpy.testing.assert_array_equal(batch.images.numpy(), self.pixels[batch.samples])

    def test_wrong_arguments(self):
        for options, text in (
            (dict(batch_size=0), "batch_size is 0; give at least 1"),
            (dict(as_="tf"), "as_ is 'tf'; give one of torch, numpy, jax, buffer"),
            (dict(memory="disk"), "memory is 'disk'"),
            (dict(memory="windowed"), "sampler without a window"),
            (dict(memory="shard"), "draws from all samples"),
            (dict(dtype="f16"), "dtype is 'f16'; give one of f32, u8"),
            (dict(dtype="u8", flip=True), 'flip with dtype="u8"'),
            (dict(normalize=(0.5,)), "give .mean, standard deviation."),
            (dict(normalize=((0.5, 0.5), 1.0)), "the mean has 2 numbers for 3 channels"),
            (dict(normalize=(0.5, 0.0)), "deviation"),
            (dict(crop=9), "a crop of 9 rows from images of 8"),
            (dict(crop=(0, 4)), "crop is 0 x 4"),
            (dict(padding=-1), "padding is -1"),
            (dict(tail="x"), "tail is 'x'"),
            (dict(rank=1, size=1), "rank 1 of 1"),
            (dict(device="cpu", as_="numpy"), "device='cpu' with as_"),
            (dict(sampler=Sampler(50), seed=3), "beside a sampler"),
            (dict(sampler=Sampler(49)), "the sampler is for 49 samples"),
        ):
            with self.subTest(options), self.assertRaisesRegex(ValueError, text):
                self.loader(**options)
        with self.assertRaisesRegex(FileNotFoundError, "no split 'none'"):
            self.loader("none")
        with self.assertRaises(FileNotFoundError):
            Loader(self.folder / "no.h5")
        with self.assertRaisesRegex(ValueError, "the Dataset has a transform"):
            Loader(Dataset(self.path, transform=abs))
        packed = convert(self.folder, "packed", "--order", "chw", "--gzip", "1", images=images(50), labels=labels(50))
        with self.assertRaises(muster.data.UnavailableError):
            Loader(packed, memory="mapped")


class Validity(LoaderTest):
    def test_until_the_next_one(self):
        """Without a thread there is one buffer: the next batch is written where the last one was."""
        passing = iter(self.loader(batch_size=8, prefetch=0))
        first = next(passing)
        copy, numbers = first.images.clone(), first.samples
        second = next(passing)
        self.assertEqual(first.images.data_ptr(), second.images.data_ptr())
        self.assertFalse(torch.equal(first.images, copy))
        self.assertEqual(first.labels.tolist(), self.labels[numbers].tolist())  # labels are torch's own
        self.assertEqual(first.samples, numbers)

    def test_copy(self):
        for as_ in ("torch", "numpy", "buffer"):
            batches = list(self.loader(batch_size=8, as_=as_, copy=True))
            for batch in batches:
                self.assertEqual(numpy.asarray(batch.images).tolist(), self.pixels[batch.samples].tolist())
                self.assertEqual(list(batch.labels), self.labels[batch.samples].tolist())

    def test_a_batch_keeps_the_memory(self):
        for as_ in ("torch", "numpy", "buffer"):
            loader = Loader(self.path, batch_size=8, as_=as_)
            batch = next(iter(loader))
            wanted = self.pixels[batch.samples].tolist()
            part = batch.images[2:4] if as_ != "buffer" else batch.images
            loader.close()
            del loader, batch
            gc.collect()
            filler = [numpy.zeros(1 << 16, numpy.uint8) for _ in range(64)]
            self.assertEqual(part.tolist(), wanted[2:4] if as_ != "buffer" else wanted)
            del filler

    def test_memory_is_given_back(self):
        import weakref

        loader = Loader(self.path, batch_size=8)
        gone = weakref.ref(loader._native)
        batch = next(iter(loader))
        del loader
        self.assertIsNotNone(gone())  # the batch holds it
        del batch
        self.assertIsNone(gone())  # without the garbage collector

    def test_gradients_do_not_stay(self):
        """A batch is a tensor of its own: what is set on it is not on the next one."""
        loader = self.loader(batch_size=8, normalize=(0.5, 0.5), prefetch=0)
        for pixels, _ in loader:
            self.assertFalse(pixels.requires_grad)
            pixels.requires_grad_()
            pixels.sum().backward()
            self.assertEqual(float(pixels.grad.sum()), pixels.numel())


class Resuming(LoaderTest):
    def test_at_a_batch_with_other_ranks(self):
        """One rank stops after three batches; three go on, each with its own, and then two."""
        for prefetch in (0, 2):
            one = self.loader(batch_size=5, rank=0, size=1, prefetch=prefetch)
            had = [i for _, batch in zip(range(3), one) for i in batch.samples]
            state = one.state_dict()
            self.assertEqual(state["taken"], 15)
            three = [self.loader(batch_size=5, rank=rank, size=3) for rank in range(3)]
            for loader in three:
                loader.load_state_dict(state)
                self.assertEqual(len(loader), 3)
                had += next(iter(loader)).samples
            states = [loader.state_dict() for loader in three]
            self.assertEqual([s["taken"] for s in states], [30, 30, 30])
            for rank in range(2):
                loader = self.loader(batch_size=5, rank=rank, size=2)
                loader.load_state_dict(states[rank])
                loader.set_epoch(0)
                had += [i for batch in loader for i in batch.samples]
            self.assertEqual(sorted(had), list(range(50)))

    def test_a_sampler_takes_the_state(self):
        loader = self.loader(batch_size=5)
        had = [i for _, batch in zip(range(3), loader) for i in batch.samples]
        sampler = Sampler(50)
        sampler.load_state_dict(loader.state_dict())
        self.assertEqual(sorted(had + list(sampler)), list(range(50)))

    def test_a_state_within_the_last_step(self):
        loader = self.loader(batch_size=20)
        for batch in loader:
            state = loader.state_dict()
        self.assertEqual((state["epoch"], state["taken"]), (0, 50))
        other = self.loader(batch_size=20)
        other.load_state_dict(state)
        self.assertEqual((len(other), list(other)), (0, []))
        self.assertEqual((len(other), len(list(other)), other.epoch), (3, 3, 1))

    def test_loading_ends_a_pass(self):
        loader = self.loader(batch_size=5)
        passing = iter(loader)
        next(passing)
        loader.load_state_dict(loader.state_dict())
        with self.assertRaisesRegex(ValueError, "one pass at a time"):
            next(passing)
        old = iter(loader)
        iter(loader)
        with self.assertRaisesRegex(ValueError, "one pass at a time"):
            next(old)


class Ranks(LoaderTest):
    def test_equal_numbers_of_batches(self):
        for size, batch_size in ((3, 8), (4, 12), (7, 7), (49, 1)):
            for tail in ("exact", "pad", "drop"):
                loaders = [self.loader(batch_size=batch_size, rank=rank, size=size, tail=tail) for rank in range(size)]
                self.assertEqual(len({len(loader) for loader in loaders}), 1)
                seen = []
                for steps in zip(*map(list, loaders)):
                    self.assertEqual({batch.global_count for batch in steps}, {sum(batch.count for batch in steps)})
                    self.assertEqual(len({batch.resume_at for batch in steps}), 1)
                    seen += [i for batch in steps for i in batch.samples]
                if tail == "exact":
                    self.assertEqual(sorted(seen), list(range(50)))
                else:
                    self.assertEqual(len(seen), (50 + size - 1 if tail == "pad" else 50) // size * size)

    def test_an_empty_batch(self):
        for as_ in ("torch", "numpy", "buffer"):
            last = list(self.loader(batch_size=1, rank=3, size=4, as_=as_))[-1]
            self.assertEqual((last.count, last.global_count, last.samples), (0, 2, []))
            self.assertEqual((len(last.images), len(last.labels)), (0, 0))
        self.assertEqual(tuple(list(self.loader(batch_size=1, rank=3, size=4, normalize=(0.5, 0.5)))[-1].images.shape), (0, 3, 8, 10))


class Life(LoaderTest):
    def test_waited(self):
        loader = self.loader(batch_size=5)
        self.assertEqual(loader.waited, 0)
        for _ in loader:
            pass
        report = loader.report()
        self.assertEqual((report.steps, report.samples, report.bytes), (10, 50, 50 * 240))
        self.assertTrue(0 <= loader.waited <= 1 and report.waited_s <= report.total_s)
        self.assertRegex(f"waited {loader.waited:.1%}", r"^waited \d+\.\d%$")
        loader.close()
        self.assertEqual(loader.report(), report)

    def test_close(self):
        with Loader(self.path, batch_size=5) as loader:
            passing = iter(loader)
            next(passing)
        loader.close()
        for use in (lambda: iter(loader), lambda: next(passing)):
            with self.assertRaisesRegex(ValueError, "this Loader was closed"):
                use()

    def test_a_fork_is_refused_and_ends(self):
        loader = self.loader(batch_size=5, prefetch=2, normalize=(0.5, 0.5))
        passing = iter(loader)
        next(passing)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                next(passing)
            except ValueError as problem:
                os.write(writing, str(problem).encode())
            del passing, loader  # must not wait for threads that are not here
            self._cleanups.clear()
            gc.collect()
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertIn("forked from it", os.read(reading, 4096).decode())
        self.assertEqual(sum(batch.count for batch in passing), 45)

    def test_no_pickling(self):
        import pickle

        with self.assertRaisesRegex(TypeError, "make one in each process"):
            pickle.dumps(self.loader())

    def test_exits(self):
        """However an interpreter ends, with threads that gather and batches that are held, it ends."""
        start = (
            "import muster.data, sys, os\n"
            f"loader = muster.data.Loader({str(self.path)!r}, batch_size=5, prefetch=3, workers=2, normalize=(0.5, 0.5), as_=sys.argv[1])\n"
            "passing = iter(loader); batch = next(passing); held = batch[0]\n"
        )
        daemon = (
            "import threading\nbegun = threading.Event()\n"
            "def go():\n    while True:\n        for _ in loader: begun.set()\n"
            "threading.Thread(target=go, daemon=True).start(); begun.wait()"
        )
        endings = {"": 0, "sys.exit(3)": 3, "raise RuntimeError": 1, "loader.close()": 0, "del loader, passing": 0, daemon: 0}
        endings["import threading; threading.Thread(target=lambda: list(passing)).start()"] = 0
        for ending, code in endings.items():
            # Not torch with a daemon thread: CPython ends such threads at its own end, inside torch's C++, which then sometimes aborts.
            for as_ in ("torch", "buffer") if ending == "" else ("buffer",):
                with self.subTest(ending=ending, as_=as_):
                    done = subprocess.run([sys.executable, "-c", start + ending, as_], stderr=subprocess.PIPE, text=True, timeout=60)
                    self.assertEqual(done.returncode, code, done.stderr)

    def test_no_warnings(self):
        program = (
            "import warnings; warnings.simplefilter('error')\n"
            "import torch, muster.data\n"
            f"for images, labels in muster.data.Loader({str(self.path)!r}, batch_size=5): pass\n"
            f"muster.data.Dataset({str(self.path)!r}, as_='torch')[0]"
        )
        run_python(program)


if __name__ == "__main__":
    warnings.simplefilter("default")
    unittest.main()
