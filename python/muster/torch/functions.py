"""Spreads what training begins with: parameters, states of optimizers, any object that can be pickled.

Collective over the ranks of the process set.
"""

from __future__ import annotations

import ctypes
import pickle
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union

import torch
from muster import world
from muster._pickling import dumps
from muster.process_sets import ProcessSet, global_process_set, number_of
from muster.torch._allgather import allgather
from muster.torch._broadcast import broadcast_, broadcast_async_
from muster.torch._requests import synchronize


def _as_tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _as_data(tensor: torch.Tensor) -> bytes:
    return ctypes.string_at(tensor.data_ptr(), tensor.numel())


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Any:
    """Gives all ranks the root's object, which is pickled (by cloudpickle, where that is installed). Blocking.

    Unpickling runs code that the root chose: the ranks of a job trust each other.

    Args:
        obj: any object that can be pickled; of other ranks than the root it is ignored.
        root_rank: the root's number in the world.
        name: what the ranks know it by; None: counted, so that ranks must call it equally often.

    Returns:
        `obj` itself on the root, a copy elsewhere.
    """
    name = world.nameless("broadcast_object", number_of(process_set)) if name is None else name
    is_root = world.rank() == root_rank
    data = _as_tensor(dumps(obj)) if is_root else torch.empty(0, dtype=torch.uint8)
    size = broadcast_(torch.tensor([data.numel()]), root_rank, name + ".size", process_set)
    if not is_root:
        data = torch.empty(int(size), dtype=torch.uint8)
    broadcast_(data, root_rank, name + ".data", process_set)
    return obj if is_root else pickle.loads(_as_data(data))


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """The objects of all ranks, in the order of the ranks. Blocking. They are pickled as by `broadcast_object`."""
    name = world.nameless("allgather_object", number_of(process_set)) if name is None else name
    data = _as_tensor(dumps(obj))
    sizes = allgather(torch.tensor([data.numel()]), name + ".size", process_set).tolist()
    parts = allgather(data, name + ".data", process_set).split(sizes)
    return [pickle.loads(_as_data(part)) for part in parts]


Parameters = Union[Mapping[str, torch.Tensor], Iterable[Union[torch.Tensor, Tuple[str, torch.Tensor]]]]


def broadcast_parameters(params: Parameters, root_rank: int, process_set: ProcessSet = global_process_set) -> None:
    """Overwrites tensors with the root's. Blocking.

    Args:
        params: `model.state_dict()`, `model.named_parameters()`, `model.parameters()`, or any dict or iterable of tensors or of pairs (name, tensor).
            The same names and shapes on all ranks, without names the same order. None in place of a tensor is passed over.
        root_rank: the root's number in the world.

    Raises:
        ValueError: something in it is no tensor.
        CollectiveError: ranks have died, hang, or differ in shapes or types.
    """
    if isinstance(params, torch.Tensor):
        raise ValueError("broadcast_parameters wants an iterable of tensors; use broadcast_ for one")
    pairs = sorted(params.items()) if isinstance(params, Mapping) else (one if isinstance(one, tuple) else (None, one) for one in params)
    handles = []
    try:
        for name, tensor in pairs:
            if tensor is None:
                continue
            if not isinstance(tensor, torch.Tensor):
                raise ValueError(f"{name or 'a parameter'} is a {type(tensor).__name__}, no tensor; give it to broadcast_object")
            handles.append(broadcast_async_(tensor, root_rank, name, process_set))
    finally:
        # All are waited for, whatever fails, since they write into tensors of the caller.
        _wait_for_all(handles)


def _wait_for_all(handles: List[int]) -> None:
    failed = None
    for handle in handles:
        try:
            synchronize(handle)
        except RuntimeError as error:
            failed = failed or error
    if failed is not None:
        raise failed


class _Slot:
    """Stands for a tensor in a pickled state: where it was in the list of tensors, and what it was like."""

    def __init__(self, index: int, tensor: torch.Tensor, parameter: torch.Tensor) -> None:
        self.index = index
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype
        self.with_parameter = tensor.device == parameter.device  # else on the CPU, as counts of steps are


def _without_tensors(value: Any, parameter: torch.Tensor, tensors: List[torch.Tensor]) -> Any:
    """A copy of the value with slots for its tensors, which are appended to the list."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return _Slot(len(tensors) - 1, value, parameter)
    if isinstance(value, dict):
        return {key: _without_tensors(one, parameter, tensors) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_without_tensors(one, parameter, tensors) for one in value)
    return value


def _with_tensors(value: Any, parameter: torch.Tensor, old: Any, tensors: List[torch.Tensor]) -> Any:
    """The reverse: tensors like those of the root are appended to the list; where `old` has such a one it is taken."""
    if isinstance(value, _Slot):
        device = parameter.device if value.with_parameter else torch.device("cpu")
        fits = isinstance(old, torch.Tensor) and (tuple(old.shape), old.dtype, old.device) == (value.shape, value.dtype, device)
        made = old if fits else torch.empty(value.shape, dtype=value.dtype, device=device)
        assert len(tensors) == value.index
        tensors.append(made)
        return made
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        return {key: _with_tensors(one, parameter, before.get(key), tensors) for key, one in value.items()}
    if type(value) in (list, tuple):
        before = old if isinstance(old, (list, tuple)) and len(old) == len(value) else [None] * len(value)
        return type(value)(_with_tensors(one, parameter, was, tensors) for one, was in zip(value, before))
    return value


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, model: Optional[torch.nn.Module] = None, process_set: ProcessSet = global_process_set
) -> None:
    """Gives all ranks the root's optimizer state and options (learning rates …). Blocking.

    State that only the root has is made on the others; the parameters and their gradients are not touched. Tensors travel as they are, the rest
    pickled.

    Args:
        optimizer: any, also a DistributedOptimizer, with the same parameters in the same order on all ranks.
        root_rank: the root's number in the world.
        model: taken for the sake of scripts that give it; not needed.

    Raises:
        ValueError: the optimizers' numbers of parameters differ from the root's.
        CollectiveError: ranks have died or hang.
    """
    groups = optimizer.param_groups
    parameters = [parameter for group in groups for parameter in group["params"]]
    tensors: List[torch.Tensor] = []
    is_root = world.rank() == root_rank
    described = None
    if is_root:
        states = {i: _without_tensors(optimizer.state[one], one, tensors) for i, one in enumerate(parameters) if optimizer.state.get(one)}
        first = parameters[0] if parameters else torch.empty(0)
        options = [{key: _without_tensors(value, first, tensors) for key, value in group.items() if key != "params"} for group in groups]
        described = ([len(group["params"]) for group in groups], states, options)
    counts, states, options = broadcast_object(described, root_rank, None, process_set)
    own = [len(group["params"]) for group in groups]
    if counts != own:
        raise ValueError(
            f"rank {world.rank()}: the optimizer's groups have {own} parameters, those of rank {root_rank} {counts}; make it alike on all ranks"
        )
    if not is_root:
        for i, state in states.items():
            parameter = parameters[i]
            optimizer.state[parameter] = _with_tensors(state, parameter, optimizer.state.get(parameter), tensors)
        for i, parameter in enumerate(parameters):
            if i not in states:
                optimizer.state.pop(parameter, None)
        first = parameters[0] if parameters else torch.empty(0)
        for group, given in zip(groups, options):
            group.update({key: _with_tensors(value, first, group.get(key), tensors) for key, value in given.items()})
    broadcast_parameters([(f"optimizer.{i}", tensor) for i, tensor in enumerate(tensors)], root_rank, process_set)
