"""Tests muster.data in the ranks of `muster run`: who they are is found out, together they have every sample once, also where 2 ranks become 1."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from data_files import FileTest, colour_file


class Ranks(FileTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = colour_file(cls.folder)

    def run_ranks(self, ranks, **options):
        """What each of so many ranks wrote."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        program = pathlib.Path(__file__).with_name("data_rank_program.py")
        done = subprocess.run(
            [os.environ["MUSTER"], "run", "-q", "-n", str(ranks), "--slots-per-node", str(ranks), "--timeout", "60s", "--", sys.executable, program, self.path, folder, json.dumps(options)],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=90,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)  # not "came up as a singleton", though HDF5 brought MPI
        self.assertEqual(done.stdout.count("is done"), ranks)
        return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]

    def test_every_sample_once(self):
        for use in ("sampler", "loader"):
            for ranks in (1, 2):
                wrote = self.run_ranks(ranks, use=use)
                self.assertEqual(sorted(sum((each["seen"] for each in wrote), [])), list(range(50)))
                self.assertEqual(len({json.dumps(each["counts"]) for each in wrote}), 1)

    def test_two_ranks_become_one(self):
        for use, steps in (("sampler", 9), ("loader", 3)):
            two = self.run_ranks(2, use=use, steps=steps)
            self.assertEqual(two[0]["state"], two[1]["state"])
            one = self.run_ranks(1, use=use, state=two[0]["state"])
            self.assertEqual(sorted(two[0]["seen"] + two[1]["seen"] + one[0]["seen"]), list(range(50)))

    def test_one_copy_a_node(self):
        wrote = self.run_ranks(2, use="loader", memory="shared")
        self.assertIn("memory mode shared", wrote[0]["why"])
        self.assertEqual(sorted(wrote[0]["seen"] + wrote[1]["seen"]), list(range(50)))


if __name__ == "__main__":
    unittest.main()
