"""Reduces the gradients of torch's DistributedDataParallel by muster: `model.register_comm_hook(state, muster.torch.ddp_hook)`."""

import itertools
from typing import Any, List, Optional

import torch
import _muster_native as native
from muster import world
from muster.process_sets import ProcessSet, global_process_set, number_of
from muster.torch._reductions import Average
from muster.torch._tensors import TYPES, place_of
from muster.torch.compression import Compression, wire_of

# Annotations of ddp_hook itself are looked at by torch, which wants them to be its classes: there are none, so that torch may lack torch.distributed.

_numbers = itertools.count(1)
_NAMES = 64  # of the default state: more than can be under way at once, few enough for the ranks to remember them


class DDPState:
    """Says how `ddp_hook` reduces: one for each model, made in the same order on all ranks.

    Args:
        compression: Compression.bf16 or .fp16: f32 gradients travel in 16 bits; what rounding loses is kept (4 bytes an element) and added in the next step.
        process_set: the ranks over which the model was made; as many as DistributedDataParallel's process group has.
    """

    def __init__(self, compression: Any = Compression.none, process_set: ProcessSet = global_process_set) -> None:
        if compression not in (Compression.none, Compression.fp16, Compression.bf16):
            raise ValueError(f"DDPState: the compression {compression} is not one of Compression.none, .fp16, .bf16")
        self.compression = compression
        self.process_set = process_set
        self._prefix = f"ddp {next(_numbers)}"
        self._pending: List["_Reduced"] = []
        self._checked = -1  # world.generation in which the number of ranks was compared

    def _name(self, bucket: Any) -> str:
        return f"{self._prefix}, bucket {bucket.index()}"

    def _check(self) -> None:
        ranks = torch.distributed.get_world_size()
        size = self.process_set.size()
        if ranks != size and self.process_set.process_set_id == 0:
            raise ValueError(f"ddp_hook: torch.distributed has {ranks} ranks and muster {size}; start both with the same ranks, or give DDPState a process set")
        self._checked = world.generation


class _AnyModel(DDPState):
    """Stands for None: several models share it, so that names are numbered by the calls, whose order is the same on all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = itertools.count()

    def _name(self, bucket: Any) -> str:
        return f"ddp bucket {next(self._calls) % _NAMES}"


_any_model: Optional[_AnyModel] = None
_any_model_of = -1  # world.generation: its numbers begin anew with each


def _state_for_any_model() -> _AnyModel:
    global _any_model, _any_model_of
    if _any_model is None or _any_model_of != world.generation:
        _any_model, _any_model_of = _AnyModel(), world.generation
    return _any_model


class _Reduced(torch.futures.Future):
    """A bucket under way. It is completed when its model's last bucket is, which is when torch waits for it; or when somebody waits in Python."""

    def __init__(self, handle: native.Handle, buffer: torch.Tensor) -> None:
        super().__init__()
        self._handle: Optional[native.Handle] = handle
        self._buffer: Optional[torch.Tensor] = buffer

    def complete(self) -> None:
        """Blocks until the bucket is reduced. Raises what it failed of."""
        handle, buffer = self._handle, self._buffer
        if handle is None:
            return
        self._handle = self._buffer = None
        try:
            handle.wait()
        except Exception as error:
            self.set_exception(error)
            raise
        self.set_result(buffer)

    def wait(self) -> torch.Tensor:
        """The bucket, reduced. Blocks."""
        self.complete()
        return super().wait()

    def done(self) -> bool:
        """Returns whether `wait` would return at once."""
        if self._handle is not None and self._handle.poll():
            self.complete()
        return super().done()


def ddp_hook(state, bucket):
    """A communication hook of DistributedDataParallel: averages a bucket over the ranks by muster, where it lies.

    `muster.torch.init()` must have been called; torch's process group may be any, and is used for what DistributedDataParallel does at its start.
    Collective, as the backward pass of DistributedDataParallel is.

    Args:
        state: a DDPState, or None for one without compression.
        bucket: torch.distributed.GradBucket.

    Returns:
        torch.futures.Future of the reduced buffer. The hook of a model's last bucket waits for all of them, since nothing is left to compute then.

    Raises:
        ValueError: muster and torch.distributed have different numbers of ranks.
        CollectiveError: from backward(): ranks have died, hang, or their models differ. torch 1.13 makes a RuntimeError with its text of it.
    """
    if state is None:
        state = _state_for_any_model()
    comm = world.comm()
    if state._checked != world.generation:
        state._check()
    buffer = bucket.buffer()
    kind = TYPES.get(buffer.dtype)
    if kind is None:
        raise ValueError(f"ddp_hook: the gradients are {buffer.dtype}, which cannot be reduced")
    wire = wire_of(state.compression, Average, buffer)
    memory, stream = place_of(buffer)
    address = buffer.data_ptr()
    handle = comm.submit(
        native.ALLREDUCE, native.AVERAGE, (state._name(bucket), address, address, (buffer.numel(),), kind),
        set=number_of(state.process_set), compression=wire, error_feedback=2 if wire else 0, memory=memory, stream=stream, keep=buffer,
    )  # fmt: skip
    future = _Reduced(handle, buffer)
    pending = state._pending
    pending.append(future)
    if bucket.is_last():
        state._pending = []
        for one in pending:
            one.complete()
    return future
