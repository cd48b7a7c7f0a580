"""Deals the samples of an epoch out to the ranks, and knows which were processed: `ElasticSampler`."""

from __future__ import annotations

import random
from typing import Any, Dict, Iterator, List

import torch.utils.data
from muster import world


class ElasticSampler(torch.utils.data.Sampler):
    """Samples not processed yet in this epoch, shuffled alike on all ranks and dealt out in turn; where they do not go round, the epoch's first ones are dealt twice.

    Give it to the DataLoader and to `TorchState`; call `record_batch` after each batch and `set_epoch` at the END of each epoch.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        """
        Args:
            dataset: anything with len(); the same on all ranks.
            shuffle: whether each epoch has an order of its own.
            seed: the same on all ranks.
        """
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
        self.rank = 0
        self.num_replicas = 1
        self.remaining_indices: List[int] = []
        self.num_samples = 0
        self.total_size = 0
        self._dealt: List[int] = []
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch: nothing of it is processed. To be called when the former one has ended, so that a restart in between repeats nothing."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Notes that every rank has processed one more batch of so many samples."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> Dict[str, int]:
        """The epoch and how many of its samples all ranks together have processed."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: Dict[str, int]) -> None:
        """Goes on from there, with the ranks there are now."""
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Deals the remaining samples out anew, among the ranks there are now."""
        self.rank = world.rank()
        self.num_replicas = world.size()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices = order[self.processed_num :]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        # The same ones wherever the epoch goes on from: as many ranks as before end with the parameters of a run that lost none.
        self._dealt = self.remaining_indices + [order[i % len(order)] for i in range(self.total_size - len(self.remaining_indices))]

    def __iter__(self) -> Iterator[int]:
        return iter(self._dealt[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
