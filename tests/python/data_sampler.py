"""Tests muster.data.Sampler: every sample once, whatever the number of ranks, also when they change in the middle of an epoch."""
import collections
import copy
import json
import os
import pickle
import unittest
import unittest.mock
import warnings

import data_files  # noqa: F401  first: it may skip
import torch
from torch.utils.data import DataLoader, TensorDataset

import muster.data
from muster.data import Sampler


def deal(samplers, steps):
    """Each of the samplers gives out so many samples, in turn; fewer where it has fewer. Returns all of them."""
    passes = [iter(sampler) for sampler in samplers]
    return [index for _ in range(steps) for each in passes for index in [next(each, None)] if index is not None]


class Orders(unittest.TestCase):
    def test_every_sample_once(self):
        for size in (1, 2, 3, 7):
            for shuffle in (True, False):
                parts = [list(Sampler(100, rank, size, shuffle)) for rank in range(size)]
                self.assertEqual(sorted(sum(parts, [])), list(range(100)))
                self.assertEqual([len(Sampler(100, rank, size)) for rank in range(size)], [len(part) for part in parts])

    def test_the_order_does_not_depend_on_the_ranks(self):
        alone = list(Sampler(100, 0, 1, seed=5))
        dealt = [0] * 100
        for rank in range(3):
            dealt[rank::3] = list(Sampler(100, rank, 3, seed=5))
        self.assertEqual(dealt, alone)
        self.assertNotEqual(alone, list(Sampler(100, 0, 1, seed=6)))
        self.assertNotEqual(alone, sorted(alone))
        self.assertEqual(list(Sampler(100, 0, 1, shuffle=False)), list(range(100)))

    def test_more_than_a_block(self):
        self.assertEqual(sorted(Sampler(10_001, 0, 1)), list(range(10_001)))

    def test_tails(self):
        for tail, counts, repeated in (("exact", [4, 3, 3], 0), ("pad", [4, 4, 4], 2), ("drop", [3, 3, 3], 0)):
            parts = [list(Sampler(10, rank, 3, tail=tail)) for rank in range(3)]
            self.assertEqual([len(part) for part in parts], counts)
            self.assertEqual(len(sum(parts, [])) - len(set(sum(parts, []))), repeated)

    def test_weights(self):
        weights = [0.0] * 5 + [1.0] * 5
        drawn = [i for rank in range(2) for i in Sampler(10, rank, 2, weights=weights, draws=1000)]
        self.assertEqual((len(drawn), min(drawn)), (1000, 5))
        self.assertEqual(sorted(Sampler(10, 0, 1, weights=weights, draws=5, replacement=False)), [5, 6, 7, 8, 9])

    def test_spreads_and_windows(self):
        sharded = [sorted(Sampler(12, rank, 3, spread="sharded")) for rank in range(3)]
        self.assertEqual(sharded, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
        windowed = list(Sampler(100, 0, 1, window=(10, 2)))
        self.assertEqual(sorted(windowed), list(range(100)))
        self.assertEqual(len({i // 10 for i in windowed[:20]}), 2)

    def test_wrong_arguments(self):
        for arguments, text in (
            (dict(rank=2, size=2), "rank 2 of 2"),
            (dict(rank=0), "give both, or neither"),
            (dict(tail="cut"), "tail is 'cut'; give one of exact, pad, drop"),
            (dict(spread="all"), "spread is 'all'"),
            (dict(seed=-1), "seed is -1"),
            (dict(draws=3), "without weights"),
            (dict(weights=[1.0]), "1 weights for 10 samples"),
            (dict(weights=[0.0] * 10), "weight"),
            (dict(window=(0, 3)), "window"),
        ):
            with self.subTest(arguments), self.assertRaisesRegex(ValueError, text):
                list(Sampler(10, **arguments))
        with self.assertRaises(ValueError):
            Sampler(-1)


class Epochs(unittest.TestCase):
    def test_epochs_follow_each_other(self):
        sampler, other = Sampler(50, 0, 1), Sampler(50, 0, 1)
        first, second = list(sampler), list(sampler)
        self.assertNotEqual(first, second)
        other.set_epoch(1)
        self.assertEqual(list(other), second)
        other.set_epoch(0)
        self.assertEqual(list(other), first)
        other.set_epoch(0)  # again, as torch's DistributedSampler does
        self.assertEqual((list(other), other.epoch), (first, 0))

    def test_a_pass_that_is_broken_off_is_begun_again(self):
        sampler = Sampler(50, 0, 1)
        looked_at = [index for index, _ in zip(iter(sampler), range(10))]
        self.assertEqual(list(sampler)[:10], looked_at)
        self.assertEqual(sampler.epoch, 0)

    def test_an_old_pass_counts_no_more(self):
        sampler = Sampler(50, 0, 1)
        old = iter(sampler)
        next(old)
        new = iter(sampler)
        next(new), next(new)
        list(old)
        self.assertEqual(sampler.taken, 2)


class Resuming(unittest.TestCase):
    def test_from_one_rank_to_three(self):
        """And back to two: of an epoch nothing comes twice and nothing is missed."""
        for shuffle in (True, False):
            one = Sampler(100, 0, 1, shuffle, seed=3)
            had = deal([one], 31)
            three = [Sampler(100, rank, 3, shuffle, seed=3) for rank in range(3)]
            for each in three:
                each.load_state_dict(json.loads(json.dumps(one.state_dict())))
            self.assertEqual(sum(len(each) for each in three), 69)
            had += deal(three, 10)
            self.assertEqual({each.taken for each in three}, {61})
            two = [Sampler(100, rank, 2, shuffle, seed=3) for rank in range(2)]
            for each in two:
                each.load_state_dict(three[0].state_dict())
                each.set_epoch(0)  # of the same epoch: keeps the place
            had += sum((list(each) for each in two), [])
            self.assertEqual(sorted(had), list(range(100)))
            rest = [list(each) for each in two]  # the next epoch is whole
            self.assertEqual((sorted(sum(rest, [])), two[0].epoch), (list(range(100)), 1))

    def test_the_rest_is_in_the_same_order(self):
        whole = list(Sampler(40, 0, 1))
        sampler = Sampler(40, 0, 1)
        deal([sampler], 15)
        other = Sampler(40, 0, 1)
        other.load_state_dict(sampler.state_dict())
        self.assertEqual(list(other), whole[15:])

    def test_a_state_of_the_end(self):
        sampler = Sampler(40, 0, 1)
        list(sampler)
        other = Sampler(40, 0, 1)
        other.load_state_dict(sampler.state_dict())
        self.assertEqual((list(other), len(other)), ([], 40))
        self.assertEqual(sorted(other), list(range(40)))
        self.assertEqual(other.epoch, 1)

    def test_another_order_is_refused(self):
        state = Sampler(40, 0, 1, seed=1).state_dict()
        for other, told in ((Sampler(40, 0, 1, seed=2), "seed 1 .here 2."), (Sampler(41, 0, 1, seed=1), "samples 40 .here 41."), (Sampler(40, 0, 1, False, 1), "shuffle")):
            with self.assertRaisesRegex(ValueError, told):
                other.load_state_dict(state)
        for wrong in ({}, {"epoch": 0, "processed_num": 3}, None, {**state, "taken": 41}):
            with self.assertRaises(ValueError):
                Sampler(40, 0, 1, seed=1).load_state_dict(wrong)

    def test_recorded_batches_count_alone(self):
        """A DataLoader with workers asks for indices long before they are trained on."""
        samplers = [Sampler(60, rank, 2) for rank in range(2)]
        trained = []
        for sampler in samplers:
            loader = DataLoader(TensorDataset(torch.arange(60)), 5, sampler=sampler, num_workers=2, prefetch_factor=3)
            for number, (batch,) in enumerate(loader):
                trained += batch.tolist()
                sampler.record_batch(number, len(batch))
                if number == 2:
                    break
            self.assertEqual(sampler.taken, 30)
        rest = Sampler(60, 0, 1)
        rest.load_state_dict(samplers[0].state_dict())
        self.assertEqual(sorted(trained + list(rest)), list(range(60)))

    def test_what_workers_are_ahead_is_warned_of(self):
        """Without record_batch() a state of the middle would miss what waits in the DataLoader; it is said once, and only where it is so."""

        def states_of(samples, at, **options):
            sampler, told = Sampler(samples, 0, 1), []
            loader = DataLoader(TensorDataset(torch.arange(samples)), 5, sampler=sampler, **options)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for number, _ in enumerate(loader):
                    if number in at:
                        sampler.state_dict()
                        told.append(len(caught))
                    if number == max(at, default=samples):
                        break
                sampler.state_dict()
            self.assertTrue(all("sampler.record_batch(i, len(batch))" in str(one.message) for one in caught), caught)
            return told, len(caught)

        self.assertEqual(states_of(60, (2, 3), num_workers=2), ([1, 1], 1))
        self.assertEqual(states_of(15, (0, 1), num_workers=2), ([1, 1], 1))  # all is asked for at once
        self.assertEqual(states_of(60, (), num_workers=2), ([], 0))  # an epoch's end
        self.assertEqual(states_of(60, (), num_workers=2, persistent_workers=True), ([], 0))
        self.assertEqual(states_of(60, (11,), num_workers=2), ([0], 0))  # the last batch is out
        self.assertEqual(states_of(60, (2, 3), num_workers=0), ([0, 0], 0))

    def test_as_elastic_training_uses_it(self):
        """What TorchState does: a copy of the state at commit, its loading at restore; the number of ranks is asked anew."""
        world = [0, 1]
        sampler = Sampler(40, rank=lambda: world[0], size=lambda: world[1])
        trained = []
        for number, index in enumerate(sampler):
            trained.append(index)
            sampler.record_batch(number, 1)
            if number == 9:
                break
        committed = copy.deepcopy(sampler.state_dict())
        sampler.record_batch(10, 1)  # lost in the failure
        world[:] = [0, 2]
        sampler.load_state_dict(committed)
        mine = list(sampler)
        self.assertEqual(len(mine), 15)
        world[:] = [1, 2]
        sampler.load_state_dict(committed)
        self.assertEqual(sorted(trained + mine + list(sampler)), list(range(40)))

    def test_reset_goes_on(self):
        world = [0, 1]
        sampler = Sampler(40, rank=lambda: world[0], size=lambda: world[1])
        had = deal([sampler], 7)
        world[:] = [0, 3]
        sampler.on_reset()
        self.assertEqual(len(sampler), 11)
        mine = list(sampler)
        self.assertFalse(set(had) & set(mine))

    def test_loading_while_a_pass_runs(self):
        sampler = Sampler(40, 0, 1)
        deal([sampler], 5)
        state = sampler.state_dict()
        running = iter(sampler)
        next(running)
        sampler.load_state_dict(state)
        next(running)
        self.assertEqual(sampler.state_dict(), state)


class Ranks(unittest.TestCase):
    def with_variables(self, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.endswith(("RANK", "WORLD_SIZE", "LOCAL_SIZE"))}
        return unittest.mock.patch.dict(os.environ, {**kept, **variables}, clear=True)

    def test_from_the_environment(self):
        with self.with_variables():
            self.assertEqual(Sampler(10).place()[:2], (0, 1))
        with self.with_variables(RANK="3", WORLD_SIZE="4"):
            self.assertEqual(Sampler(10).place()[:2], (3, 4))
            self.assertEqual(Sampler(10, 0, 1).place()[:2], (0, 1))
        with self.with_variables(RANK="3", WORLD_SIZE="4", MUSTER_RANK="1", MUSTER_WORLD_SIZE="2", MUSTER_LOCAL_RANK="1", MUSTER_LOCAL_SIZE="2"):
            self.assertEqual(Sampler(10).place(), (1, 2, 1, 2))
        with self.with_variables(RANK="x", WORLD_SIZE="4"), self.assertRaisesRegex(ValueError, "RANK is 'x'"):
            list(Sampler(10))

    def test_from_torch_distributed(self):
        import torch.distributed

        with self.with_variables():
            store = torch.distributed.HashStore()
            torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
            try:
                with unittest.mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "2"}):
                    self.assertEqual(Sampler(10).place()[:2], (0, 1))
            finally:
                torch.distributed.destroy_process_group()


class Uses(unittest.TestCase):
    def test_in_a_data_loader(self):
        sampler = Sampler(40, 1, 2)
        loader = DataLoader(TensorDataset(torch.arange(40)), 8, sampler=sampler)
        self.assertEqual(len(loader), 3)
        got = [batch.tolist() for batch, in loader]
        self.assertEqual(sum(got, []), list(Sampler(40, 1, 2)))

    def test_pickling_and_forking(self):
        sampler = Sampler(40, 0, 1)
        wanted = list(sampler)
        sampler.set_epoch(0)
        self.assertEqual(list(pickle.loads(pickle.dumps(sampler))), wanted)
        child = os.fork()
        if child == 0:
            os._exit(0 if list(sampler) == wanted else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_counts(self):
        """Over many epochs, by position: every sample comes everywhere."""
        sampler, first = Sampler(8, 0, 1), collections.Counter()
        for epoch in range(400):
            sampler.set_epoch(epoch)
            first[next(iter(sampler))] += 1
        self.assertEqual(len(first), 8)


if __name__ == "__main__":
    unittest.main()
