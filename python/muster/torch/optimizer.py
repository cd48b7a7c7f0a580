"""Wraps an optimizer so that its steps use gradients of all ranks: `DistributedOptimizer`."""

from __future__ import annotations

import inspect
import sys
import warnings
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import torch
from muster import world
from muster.process_sets import ProcessSet, global_process_set, number_of
from muster.torch._parameters import check_groups, check_names, check_passes, name_parameters
from muster.torch._reductions import NATIVE, Adasum, Average, check_adasum
from muster.torch.compression import Compression
from muster.torch.deltas import DeltaReducer
from muster.torch.gradients import GradientReducer, Reduction

#: What is the wrapper's own in an instance's __dict__; the rest is the wrapped optimizer's.
_OWN = ("_muster", "_should_synchronize", "_synchronized")


class _Settings:
    """Holds what a wrapper was made with."""

    def __init__(self, names: Dict[int, str], groups: Union[int, List[List[torch.Tensor]]], how: Reduction, passes: int, sizes: Optional[Tuple[int, int]]) -> None:
        self.names = names  #: by the parameter's id
        self.groups = groups
        self.how = how
        self.passes = passes
        self.sizes = sizes
        self.reducer: Optional[Union[GradientReducer, DeltaReducer]] = None  #: None on one rank, and outside of the process set
        self.generation = -1  #: of the world in which `reducer` was decided on
        self.original: Any = None
        self.quiet = False  #: whether the last synchronize() was not the user's


class _Distributed:
    """Holds what a wrapper adds to the class of the optimizer it wraps."""

    _muster: _Settings
    _should_synchronize: bool
    _synchronized: bool

    # ------------------------------------------------------------------------------------------ the world

    def _enter_world(self) -> None:
        """Decides on hooks by the size of the world there is now."""
        settings = self._muster
        old, settings.reducer = settings.reducer, None
        if old is not None:
            old.close()
        settings.generation = world.generation
        process_set = settings.how.process_set
        number_of(process_set)
        if not process_set.included() or process_set.size() == 1:
            return
        settings.reducer = self._make_reducer(name_parameters(self.__dict__["param_groups"], settings.names, settings.groups))

    def _make_reducer(self, named: Sequence[Tuple[str, torch.Tensor, int]]):
        return GradientReducer(named, self._muster.how, self._muster.passes, self._muster.sizes)

    def _reducer(self):
        settings = self._muster
        if settings.reducer is None and not world.is_initialized():
            return None  # alone it needs nobody
        world.comm()
        if settings.generation != world.generation:
            if settings.reducer is not None and settings.how.process_set.included() and settings.how.process_set.size() > 1:
                settings.generation = world.generation  # it lays its buckets out anew by itself
            else:
                self._enter_world()
        return settings.reducer

    # ------------------------------------------------------------------------------------------ Horovod's

    def synchronize(self) -> None:
        """Waits until all gradients are reduced; those that backward has not computed count as zeros. Collective over the process set, blocking.

        After it gradients may be read and changed (clipped, unscaled); then call `step()` within `skip_synchronize()`.

        Raises:
            CollectiveError: ranks have failed, or their models differ. Names tensor, ranks and hosts.
        """
        reducer = self._reducer()
        if reducer is not None:
            reducer.synchronize()
        self._synchronized = True
        self._muster.quiet = False

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Within it `step()` does not call `synchronize()`, because the program has."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Sets how many backward passes are accumulated, locally, before gradients are reduced. The same on all ranks; between steps."""
        check_passes(passes)
        self._muster.passes = passes
        if self._muster.reducer is not None:
            self._muster.reducer.passes = passes
            self._muster.reducer.begin_anew()

    def step(self, closure: Any = None, **more: Any) -> Any:
        """Reduces the gradients and lets the wrapped optimizer make its step. Collective over the process set, blocking.

        With a closure, gradients are reduced after each call of it. For optimizers that cannot do without one (LBFGS) its loss is reduced too, as they decide
        by it. Raises as `synchronize` does.
        """
        reducer = self._reducer()
        arguments = () if closure is None else (closure,)
        if not self._should_synchronize:
            if reducer is not None and reducer.touched:
                raise AssertionError(
                    "optimizer.step() was called within optimizer.skip_synchronize() while gradients were being reduced; call optimizer.synchronize() before"
                )
        elif closure is not None and reducer is not None:
            if reducer.touched:
                self.synchronize()
            arguments = (self._reducing(closure),)
        else:
            self._synchronize_once(reducer)
        self._synchronized = False
        if self._muster.how.sparse_as_dense and isinstance(self, torch.optim.SparseAdam):  # which takes no dense ones
            for group in self.__dict__["param_groups"]:
                for parameter in group["params"]:
                    if parameter.grad is not None and not parameter.grad.is_sparse:
                        parameter.grad = parameter.grad.detach().to_sparse(1)
        original = self._muster.original
        original._step_count = getattr(original, "_step_count", 0) + 1  # for a scheduler that was made with it
        original._opt_called = True
        return super().step(*arguments, **more)

    step.hooked = True  # the wrapped class's own step() calls the hooks of steps

    def _synchronize_once(self, reducer: Any) -> None:
        if self._synchronized:
            if not self._muster.quiet:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() though you have called optimizer.synchronize(): gradients are reduced again only if "
                    "there are new ones; write `with optimizer.skip_synchronize(): optimizer.step()`",
                    stacklevel=3,
                )
            if reducer is None or not reducer.touched:
                return
        self.synchronize()

    def _reducing(self, closure: Any) -> Any:
        needs_closure = inspect.signature(super().step).parameters.get("closure")
        reduces_loss = needs_closure is not None and needs_closure.default is inspect.Parameter.empty

        def closure_of_all_ranks() -> Any:
            loss = closure()
            self.synchronize()
            self._synchronized = False
            return self._muster.reducer.reduce_loss(loss) if reduces_loss else loss

        return closure_of_all_ranks

    def zero_grad(self, *arguments: Any, **more: Any) -> None:
        """Works as the wrapped optimizer's. AssertionError if gradients have come that no step has used: they may be under way."""
        reducer = self._reducer()
        if reducer is None:
            return super().zero_grad(*arguments, **more)
        if reducer.touched:
            raise AssertionError(
                "optimizer.zero_grad() came between loss.backward() and optimizer.step(): the gradients may be under way to the other ranks; call optimizer.step() or "
                "optimizer.synchronize() before"
            )
        self._synchronized = False
        if self._zeroes_otherwise:
            return super().zero_grad(*arguments, **more)
        if arguments[0] if arguments else more.get("set_to_none", self._zeroes_to_none):
            for group in self.__dict__["param_groups"]:
                for parameter in group["params"]:
                    parameter.grad = None
        else:
            reducer.zero()
        return None

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Works as the wrapped optimizer's, and forgets what has come of a step."""
        reducer = self._reducer()
        if reducer is not None:
            reducer.begin_anew()
        self._synchronized = False
        super().load_state_dict(state_dict)
        original = self._muster.original
        original.param_groups, original.state = self.param_groups, self.state

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Works as the wrapped optimizer's. On every rank, at the same place; the ranks agree on the new parameters in the next step."""
        groups = self.__dict__["param_groups"]
        known = len(groups)
        super().add_param_group(param_group)
        reducer = self._muster.reducer
        if reducer is not None:
            reducer.add(name_parameters(groups, self._muster.names, self._muster.groups, known))

    # ------------------------------------------------------------------------------------------ what others read

    @property
    def param_groups(self) -> List[Dict[str, Any]]:
        """The wrapped optimizer's. GradScaler reads it to unscale gradients, which must have been reduced by then."""
        settings = self.__dict__.get("_muster")
        reducer = settings.reducer if settings is not None else None
        if reducer is not None and reducer.touched and self._should_synchronize:
            if sys._getframe(1).f_globals.get("__name__", "").endswith("grad_scaler"):
                self.synchronize()
                settings.quiet = True
        return self.__dict__["param_groups"]

    @param_groups.setter
    def param_groups(self, groups: List[Dict[str, Any]]) -> None:
        self.__dict__["param_groups"] = groups

    @property
    def _handles(self) -> Dict[torch.Tensor, Any]:
        reducer = self._muster.reducer
        return {} if reducer is None else reducer.under_way()

    @property
    def _requires_update(self) -> set:
        reducer = self._muster.reducer
        return set() if reducer is None else {slot.parameter for slot in reducer.slots}

    @property
    def _allreduce_delay(self) -> Dict[torch.Tensor, int]:
        reducer = self._muster.reducer
        return {} if reducer is None else {slot.parameter: slot.delay for slot in reducer.slots}

    @property
    def _parameter_names(self) -> Dict[torch.Tensor, str]:
        return {parameter: name for name, parameter, _ in name_parameters(self.__dict__["param_groups"], self._muster.names, self._muster.groups)}

    @property
    def backward_passes_per_step(self) -> int:
        return self._muster.passes

    def __reduce_ex__(self, protocol: int) -> Any:
        """A copy, and what is unpickled, is the wrapped optimizer."""
        base = type(self)._wrapped
        plain = base.__new__(base)
        plain.__dict__.update(_of_base(self))
        return _empty, (base,), plain.__getstate__()


class _DistributedDelta(_Distributed):
    """The same for Adasum: the optimizer makes its step with this rank's gradients, and what it changes is reduced."""

    def _make_reducer(self, named: Sequence[Tuple[str, torch.Tensor, int]]):
        return DeltaReducer(named, self._muster.how, self._muster.sizes)

    def synchronize(self) -> None:
        """Does nothing: gradients stay this rank's own."""

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Refused."""
        if self._reducer() is not None:
            raise AssertionError("skip_synchronize() does not go with op=Adasum: what is reduced is the change that step() makes; leave it out")
        yield

    def step(self, closure: Any = None, **more: Any) -> Any:
        """Makes the step and reduces the change of the weights. Collective over the process set, blocking. Raises as `_Distributed.synchronize` does."""
        reducer = self._reducer()
        base = super(_Distributed, self).step
        arguments = () if closure is None else (closure,)
        if reducer is None:
            return base(*arguments, **more)
        reducer.begin()
        loss = base(*arguments, **more)
        reducer.finish()
        return loss

    step.hooked = True

    def zero_grad(self, *arguments: Any, **more: Any) -> None:
        super(_Distributed, self).zero_grad(*arguments, **more)


def _empty(base: type) -> Any:
    """An optimizer of that class, for its state to be put in."""
    return base.__new__(base)


def _of_base(optimizer: Any) -> Dict[str, Any]:
    """Returns what of its attributes is the wrapped class's. `step` among them is a scheduler's, bound to the instance."""
    return {name: value for name, value in optimizer.__dict__.items() if name not in _OWN and name != "step"}


_classes: Dict[Tuple[type, type], type] = {}


def _class_for(base: type, mixin: type) -> type:
    """The class of that name derived from both; the same each time."""
    key = (base, mixin)
    if key not in _classes:
        default = inspect.signature(torch.optim.Optimizer.zero_grad).parameters["set_to_none"].default
        own = {
            "__doc__": base.__doc__,
            "__module__": base.__module__,
            "_wrapped": base,
            "_zeroes_to_none": default,  # by default: True since torch 2.0
            "_zeroes_otherwise": getattr(base, "zero_grad", None) is not torch.optim.Optimizer.zero_grad,
        }
        _classes[key] = type(base.__name__, (mixin, base), own)
    return _classes[key]


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[Tuple[str, torch.Tensor]]] = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Union[None, int, Sequence[Sequence[torch.Tensor]]] = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
    bucket_bytes: Optional[Union[int, Tuple[int, int]]] = None,
) -> torch.optim.Optimizer:
    """An optimizer whose step uses the gradients of all ranks, reduced while the backward pass still computes.

    Its class is derived from that of `optimizer`, of the same name; parameters, groups and state are shared with it. Making it is not collective; the first
    step makes the ranks agree on the parameters. Beyond the wrapped class it has `synchronize()`, `skip_synchronize()` and `set_backward_passes_per_step(n)`.

    Gradients lie in buckets of memory that the ranks of a node share, and `parameter.grad` is a part of a bucket: a tensor kept from an earlier step is
    overwritten in the next. Parameters that have got no gradient count as zeros, so that ranks may use different ones. On one rank, and outside of
    `process_set`, it is the plain optimizer. With op=Adasum the optimizer makes its step with this rank's gradients, and the change of the weights is reduced.

    Args:
        optimizer: any. With one that needs a closure (LBFGS) the loss is reduced too.
        named_parameters: pairs (name, parameter), as `model.named_parameters()` gives them; all parameters of the optimizer, and more are allowed. The names
            are used in messages; the same on all ranks.
        compression: Compression.fp16 and .bf16 round f32 in muster's own copy and make up, in the next step, for what was lost; a class of one's own has
            `compress(tensor)` and `decompress(tensor, context)`, called for each gradient.
        backward_passes_per_step: passes whose gradients are added up locally before they are reduced.
        op: Average, Sum, Adasum (Min, Max and Product work too).
        gradient_predivide_factor: f, with Average only: gradients are multiplied by 1/f before they are added and by f/ranks after.
        num_groups: deprecated; `groups`.
        groups: into how many buckets to cut, or lists of parameters that are reduced together.
        sparse_as_dense: reduces sparse gradients as dense ones, rather than by an allgather of indices and values.
        process_set: the ranks that train together.
        bucket_bytes: when a bucket is closed: bytes, or (those of the first, of the others); default MUSTER_BUCKET_BYTES, or (1 MiB, 8 MiB).

    Raises:
        ValueError: before init(); wrong arguments.
        NotImplementedError: Adasum within a process set.
    """
    if not isinstance(op, int) or op not in range(len(NATIVE)):
        raise ValueError(f"{op!r} is no reduction; give Average, Sum or Adasum")
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError(f"gradient_predivide_factor={gradient_predivide_factor} goes with op=Average only; leave it out, or average")
    if not gradient_predivide_factor > 0:
        raise ValueError(f"gradient_predivide_factor={gradient_predivide_factor}; it must be positive")
    if isinstance(optimizer, _Distributed):
        raise ValueError("this optimizer is a DistributedOptimizer already; wrap it once")
    check_passes(backward_passes_per_step)
    check_adasum(op, process_set)
    world.comm()
    how = Reduction(op, NATIVE[op], float(gradient_predivide_factor), compression, bool(sparse_as_dense), process_set)
    sizes = (bucket_bytes, bucket_bytes) if isinstance(bucket_bytes, int) else bucket_bytes
    if sizes is not None and min(sizes) < 1:
        raise ValueError(f"bucket_bytes={bucket_bytes}; give a positive number of bytes")
    settings = _Settings(check_names(optimizer, named_parameters), check_groups(groups, num_groups), how, backward_passes_per_step, sizes)
    made_class = _class_for(type(optimizer), _DistributedDelta if op == Adasum else _Distributed)
    made = made_class.__new__(made_class)
    made.__dict__.update(_of_base(optimizer))
    settings.original = optimizer
    made._muster = settings
    made._should_synchronize, made._synchronized = True, False
    made._enter_world()
    return made
