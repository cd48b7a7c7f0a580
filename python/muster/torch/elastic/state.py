"""Saves, restores and spreads models, optimizers, samplers and plain values: `TorchState`, and the registry of what knows how."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Optional, Tuple, Type

import torch
from muster import kept, world
from muster.elastic import ObjectState
from muster.torch.elastic.sampler import ElasticSampler
from muster.torch.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters


class StateHandler:
    """Takes care of one value of a TorchState. Derive from it, and write save, restore and sync."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        """Keeps a copy of the value's state."""
        raise NotImplementedError

    def restore(self) -> None:
        """Goes back to it."""
        raise NotImplementedError

    def sync(self) -> None:
        """Gives all ranks rank 0's. Collective."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Takes care of another value from now on."""
        self.value = value
        self.save()


class _StateDictHandler(StateHandler):
    """Keeps what has state_dict and load_state_dict: learning rate schedulers, GradScaler, samplers and loaders."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        self.value.load_state_dict(copy.deepcopy(self._saved))

    def sync(self) -> None:
        self.value.load_state_dict(broadcast_object(self.value.state_dict()))


class ModelStateHandler(_StateDictHandler):
    """Keeps models: tensors are broadcast into the memory they have."""

    def sync(self) -> None:
        tensors = self.value.state_dict()
        broadcast_parameters({name: one for name, one in tensors.items() if isinstance(one, torch.Tensor)}, root_rank=0)
        others = {name: one for name, one in tensors.items() if not isinstance(one, torch.Tensor)}
        if others:  # of get_extra_state()
            self.value.load_state_dict({**tensors, **broadcast_object(others)})


class OptimizerStateHandler(_StateDictHandler):
    """Keeps optimizers."""

    def sync(self) -> None:
        broadcast_optimizer_state(self.value, root_rank=0)


class SamplerStateHandler(_StateDictHandler):
    """Keeps samplers."""


Registry = List[Tuple[type, Type[StateHandler]]]

_registry: Registry = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> Registry:
    """The pairs (class of values, class of handlers); the first that fits is taken. The rest goes by its state_dict, if it has one."""
    return _registry


def set_handler_registry(registry: Registry) -> None:
    """Takes these pairs instead."""
    global _registry
    _registry = registry


def _handler_of(value: Any) -> Optional[StateHandler]:
    for kind, handler in _registry:
        if isinstance(value, kind):
            return handler(value)
    if not isinstance(value, type) and callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None)):
        return _StateDictHandler(value)
    return None


def _tensor_from(memory: bytearray, dtype: torch.dtype, shape: Tuple[int, ...]) -> torch.Tensor:
    return torch.frombuffer(memory, dtype=dtype).reshape(shape) if memory else torch.empty(shape, dtype=dtype)


def _reduce_tensor(value: Any) -> Any:
    if type(value) is not torch.Tensor or value.layout != torch.strided or value.is_quantized:
        return NotImplemented
    plain = value.detach().cpu().contiguous()
    size = plain.numel() * plain.element_size()
    memory = kept.buffer_at(plain.data_ptr(), size, plain) if size else bytearray()
    return _tensor_from, (memory, value.dtype, tuple(value.shape))


class TorchState(ObjectState):
    """State of training with PyTorch: a model, an optimizer, and whatever else is given by keyword; all become attributes.

    What has state_dict and load_state_dict (models, optimizers, schedulers, samplers) is saved and spread by them. Other values are copied,
    and spread as one pickled dict. An attribute that is assigned another model or optimizer is taken care of from then on.
    """

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any) -> None:
        self._handlers: Dict[str, StateHandler] = {}
        plain = {}
        for name, value in {**kwargs, "model": model, "optimizer": optimizer}.items():
            handler = _handler_of(value)
            if handler is None:
                plain[name] = value
            else:
                self._handlers[name] = handler
                object.__setattr__(self, name, value)
        self._commits = 0  # that are kept; 0: none, and the handlers have what was saved
        super().__init__(bcast_object=broadcast_object, get_rank=world.rank, **plain)

    def save(self) -> None:
        if kept.is_held():
            return self._keep(self._commits + 1)
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self) -> None:
        self._forget_gradients()
        if self._commits:
            return self._go_back(kept.load(self._commits))
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def _keep(self, number: int) -> None:
        """Into memory that outlives this process: one copy, where deep copies would be made."""
        for name, handler in self._handlers.items():
            if not isinstance(handler, _StateDictHandler):
                handler.save()
        mine = {name: handler.value.state_dict() for name, handler in self._handlers.items() if isinstance(handler, _StateDictHandler)}
        plain = {name: getattr(self, name) for name in self._saved_state}
        kept.keep(number, (world.size(), mine, plain), _reduce_tensor)
        self._commits = number
        for handler in self._handlers.values():
            if isinstance(handler, _StateDictHandler):
                handler._saved = None

    def _go_back(self, copy_of: Tuple[int, Dict[str, Any], Dict[str, Any]]) -> None:
        for name, handler in self._handlers.items():
            if name in copy_of[1]:
                handler.value.load_state_dict(copy_of[1][name])
            else:
                handler.restore()
        self._take(copy_of[2])

    def recover(self) -> Tuple[bool, bool]:
        if not kept.is_held():
            return False, True
        begin = kept.choose_of_found()
        if not begin.step:
            return False, True
        if begin.is_common:
            copy_of = kept.load(begin.step)
        else:  # the ranks had gone on in place without one whose part has stayed behind, or which had none
            has_it = world.rank() == begin.root
            copy_of = broadcast_object(kept.load(begin.step) if has_it else None, begin.root, name="muster.newest")
        self._go_back(copy_of)
        self._keep(begin.next)
        return True, not begin.is_common or copy_of[0] != world.size()

    def sync(self) -> None:
        for handler in self._handlers.values():
            handler.sync()
        super().sync()
        # All or nothing: a failure in between goes back to one state.
        if kept.is_held():
            return self._keep(kept.choose([max([self._commits, *kept.steps()])], "muster.commits").next)
        for handler in self._handlers.values():
            handler.save()

    def _forget_gradients(self) -> None:
        """Drops gradients of a step that was not finished, or not zeroed yet: they would go into the next one."""
        for handler in self._handlers.values():
            value = handler.value
            if isinstance(value, torch.nn.Module):
                parameters = list(value.parameters())
            else:
                parameters = [one for group in getattr(value, "param_groups", ()) for one in group["params"]]
            for parameter in parameters:
                parameter.grad = None
            if hasattr(value, "set_backward_passes_per_step"):
                value.set_backward_passes_per_step(value.backward_passes_per_step)  # passes are counted anew

    def reset(self) -> None:
        """Forgets gradients, and has samplers deal out what is left among the ranks there are now."""
        self._forget_gradients()
        for handler in self._handlers.values():
            if isinstance(handler, SamplerStateHandler):
                handler.value.load_state_dict(handler.value.state_dict())

    def __setattr__(self, name: str, value: Any) -> None:
        handler = self.__dict__.get("_handlers", {}).get(name)
        if handler is not None:
            handler.set_value(value)
        super().__setattr__(name, value)
