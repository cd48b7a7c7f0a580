"""Tests that tables arrive in muster.data as rows: float targets as float32 and classes as int64, by Loader, Dataset and DataLoader."""
import pickle
import subprocess
import unittest

from data_files import BIN, FileTest, content, run_python  # first: it may skip

import numpy
import torch
from torch.utils.data import DataLoader

import muster.data


def table(folder, name, header, rows, *arguments):
    source = folder / f"{name}.csv"
    source.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    out = folder / f"{name}.h5"
    subprocess.run([BIN / "muster-stage", "convert", source, "-o", out, "--progress", "none", *arguments], check=True, stdout=subprocess.DEVNULL)
    return out


class Tables(FileTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rows = [(i, -i, i * 1.37) for i in range(30)]
        cls.path = table(cls.folder, "prices", "a,b,price", cls.rows, "--label-column", "price")
        cls.wanted = numpy.array([row[2] for row in cls.rows], numpy.float32)

    def test_the_file_has_rows(self):
        rows, prices = content(self.path)
        numpy.testing.assert_array_equal(rows, numpy.array([row[:2] for row in self.rows], numpy.float32))
        numpy.testing.assert_array_equal(prices, self.wanted)
        self.assertEqual((rows.shape, prices.dtype), ((30, 2), numpy.float32))
        self.assertEqual(muster.data.Dataset(self.path).columns, ["a", "b"])

    def test_loader(self):
        for kind, dtype in (("torch", torch.float32), ("numpy", numpy.float32)):
            with muster.data.Loader(self.path, batch_size=8, as_=kind) as loader:
                self.assertEqual(loader.shape, (2,))
                for batch in loader:
                    rows, prices = batch
                    self.assertEqual((tuple(rows.shape), prices.dtype, tuple(prices.shape)), ((batch.count, 2), dtype, (batch.count,)))
                    numpy.testing.assert_array_equal(numpy.asarray(prices), self.wanted[batch.samples])
                    numpy.testing.assert_array_equal(numpy.asarray(rows)[:, 0], batch.samples)
        with muster.data.Loader(self.path, batch_size=8, as_="buffer", shuffle=False) as loader:
            rows, prices = next(iter(loader))
            self.assertEqual((rows.shape, prices.format, prices.tolist()), ((8, 2), "f", self.wanted[:8].tolist()))

    def test_what_only_images_have_is_refused(self):
        small = table(self.folder, "small", "a,b,label", [(1, 2, 0), (3, 4, 1)], "--type", "uint8")
        for options in ({"crop": 2}, {"flip": True}, {"channels_last": True}):
            with self.assertRaisesRegex(ValueError, "rows"):
                muster.data.Loader(small, **options)
        rows, _ = next(iter(muster.data.Loader(small, shuffle=False, normalize=(0, 1))))
        self.assertEqual((tuple(rows.shape), rows.dtype), ((2, 2), torch.float32))

    def test_dataset_and_data_loader(self):
        for kind in ("numpy", "torch"):
            data = muster.data.Dataset(self.path, as_=kind)
            self.assertEqual((data.shape, data.classes, data.has_labels, data.has_targets), ((2,), 0, True, True))
            self.assertIn("30 samples of 2 float32, targets", repr(data))
            self.assertEqual((tuple(data[5][0].shape), float(data[5][1])), ((2,), self.wanted[5]))
            for workers in (0, 1):
                batches = list(DataLoader(pickle.loads(pickle.dumps(data)), batch_size=8, num_workers=workers))
                self.assertEqual((batches[0][0].shape, batches[0][1].dtype), ((8, 2), torch.float32))
                numpy.testing.assert_array_equal(torch.cat([prices for _, prices in batches]).numpy(), self.wanted)
            rows, prices = data.read(3, 4)
            self.assertEqual(numpy.asarray(prices).dtype, numpy.float32)
            numpy.testing.assert_array_equal(numpy.asarray(prices), self.wanted[3:7])
        self.assertEqual(muster.data.Dataset(self.path, as_="buffer")[5][1], self.wanted[5])

    def test_a_regression_learns(self):
        program = (
            "import torch, muster.data\n"
            f"loader = muster.data.Loader({str(self.path)!r}, batch_size=30, shuffle=False)\n"
            "rows, prices = next(iter(loader))\n"
            "print(torch.nn.functional.mse_loss(rows[:, 0] * 1.37, prices).item() < 1e-9)"
        )
        self.assertEqual(run_python(program).strip(), "True")

    def test_compressed(self):
        packed = table(self.folder, "packed", "a,b,price", self.rows, "--label-column", "price", "--gzip", "1", "--chunk", "7")
        self.assertEqual(muster.data.Dataset(packed).read(0, 30)[1].tolist(), self.wanted.tolist())
        muster.data.Dataset(packed).verify()

    def test_classes(self):
        classes = table(self.folder, "classes", "a,label", [(i, f"{i % 3}.0") for i in range(9)])
        data = muster.data.Dataset(classes)
        self.assertEqual((data.classes, data.has_targets, data[4]), (3, False, (numpy.array([4], numpy.float32), 1)))
        self.assertEqual(next(iter(muster.data.Loader(classes, batch_size=9, shuffle=False)))[1].dtype, torch.int64)


if __name__ == "__main__":
    unittest.main()
