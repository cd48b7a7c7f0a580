"""Reduces the gradients of parameters over the ranks while the backward pass still computes: hooks, buckets, and what does not fit into buckets."""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import _muster_native as native
from muster import world
from muster.errors import CollectiveError
from muster.process_sets import ProcessSet, number_of
from muster.torch import _agreement
from muster.torch._sparse import SparseReduction
from muster.torch._tensors import TYPES, place_of, plain, shape_of
from muster.torch.buckets import Bucket, Gradient, describe, lay_out, plan_buckets, sizes_from_environment
from muster.torch.compression import NoneCompressor, wire_of

_REDUCIBLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)


class Reduction(NamedTuple):
    """Says how gradients are reduced."""

    op: int  #: Average, Sum …: Horovod's number
    how: int  #: the same, muster's number
    predivide: float
    compression: Any
    sparse_as_dense: bool
    process_set: ProcessSet


class Slot:
    """A parameter, and what has become of its gradient in this step."""

    __slots__ = ("parameter", "name", "group", "delay", "view", "bucket", "request", "hook", "node", "sparse_dimensions", "__weakref__")

    def __init__(self, parameter: torch.Tensor, name: str, group: int, delay: int) -> None:
        self.parameter = parameter
        self.name = name
        self.group = group
        self.delay = delay  #: backward passes until it is to be reduced
        self.view: Optional[torch.Tensor] = None  #: its place in the bucket
        self.bucket: Optional[Bucket] = None
        self.request: Any = None  #: what is under way for this one alone
        self.hook: Any = None
        self.node: Any = None  #: which carries the hook in torch before 2.1, and must be kept
        self.sparse_dimensions = 0  #: of a parameter with sparse gradients


class _Single:
    """One tensor that a compression of the user's has made, on its way."""

    def __init__(self, slot: Slot, gradient: torch.Tensor, how: Reduction, name: str) -> None:
        self._how = how
        compressed, self._context = how.compression.compress(gradient)
        self._tensor = plain(compressed.detach())
        kind = TYPES.get(self._tensor.dtype)
        if kind is None:
            raise ValueError(
                f'the compression {how.compression} makes {self._tensor.dtype} of the gradient of "{slot.name}", which cannot be added; make a floating type'
            )
        before, after = factors(how)
        memory, stream = place_of(self._tensor)
        address = self._tensor.data_ptr()
        self._handle = world.comm().submit(
            native.ALLREDUCE, how.how, (name, address, address, shape_of(self._tensor), kind),
            prescale=before, postscale=after, set=number_of(how.process_set), error_feedback=1, memory=memory, stream=stream, keep=self._tensor,
        )  # fmt: skip

    def finish(self, slot: Slot) -> None:
        self._handle.wait()
        result = self._how.compression.decompress(self._tensor, self._context)
        parameter = slot.parameter
        gradient = parameter.grad
        if gradient is not None and not gradient.is_sparse and not gradient.requires_grad:
            gradient.copy_(result.view(gradient.shape))
        else:
            parameter.grad = torch.empty_like(parameter.detach()).copy_(result.view(parameter.shape))


def factors(how: Reduction) -> Tuple[float, float]:
    """Returns what gradients are multiplied by before they are added, and the result after."""
    return 1.0 / how.predivide, how.predivide


_newest: Dict[int, "weakref.ref[Slot]"] = {}  # by the parameter's id: which slot has its hook
_numbers: Dict[Tuple[int, int], int] = {}  # by world.generation and process set: reducers that were laid out


def _unhook(slot: Slot) -> None:
    if slot.hook is not None:
        slot.hook.remove()
    slot.hook = slot.node = None


def _outside_of_graphs(method):
    """For a compiler (torch.compile) to call the method, not to look into it. Its own decorator would import it, which takes long."""
    disabled = method if not hasattr(torch, "compiler") else None

    @functools.wraps(method)
    def call(*arguments: Any) -> Any:
        nonlocal disabled
        if disabled is None:
            if "torch._dynamo" not in sys.modules:
                return method(*arguments)
            disabled = torch.compiler.disable(method)
        return disabled(*arguments)

    call._torchdynamo_disable = True
    return call


class GradientReducer:
    """Reduces gradients in buckets, each started by the hook of its last gradient.

    The first `synchronize`, and the first after something has changed (parameters, another `init()`), makes the ranks agree on the buckets; in that step
    nothing is started before. All ranks of the process set must call `synchronize` equally often. One thread at a time.

    A gradient that is not the bucket's own tensor is copied into it, and `parameter.grad` becomes the bucket's; where it stays that from step to step
    (`zero_grad(set_to_none=False)`), nothing is copied at all.
    """

    def __init__(self, named: Sequence[Tuple[str, torch.Tensor, int]], how: Reduction, passes: int, sizes: Optional[Tuple[int, int]] = None) -> None:
        self.how = how
        self.passes = passes
        self.touched = False  #: whether a gradient has come since the last synchronize()
        self.slots: List[Slot] = []
        self.buckets: List[Bucket] = []
        self._others: List[Slot] = []  # sparse, or with a compression of the user's
        self._dormant: List[Tuple[str, torch.Tensor, int]] = []  # need no gradient, or have no elements
        self._generation = -1  # of the world in which the buckets were laid out; -1: not yet
        self._failure: Optional[CollectiveError] = None
        self._suffix = ""  # of the names of its requests; other reducers of the same process set have others
        self._named_in = -1  # the generation of the world in which it got it
        self._sizes = sizes or sizes_from_environment()
        self.add(named)

    # ------------------------------------------------------------------------------------------ parameters

    def add(self, named: Sequence[Tuple[str, torch.Tensor, int]]) -> None:
        """Takes parameters on: (name, parameter, the user's group or -1). The ranks agree on them in the next synchronize()."""
        self._dormant += named
        if not self.touched:
            self._wake()
            self._generation = -1

    def _wake(self) -> None:
        """Takes on the dormant ones that need a gradient by now."""
        named, self._dormant = self._dormant, []
        for name, parameter, group in named:
            if not parameter.requires_grad or parameter.numel() == 0:
                self._dormant.append((name, parameter, group))
                continue
            if parameter.dtype not in _REDUCIBLE:
                raise ValueError(f'the gradient of "{name}" is {parameter.dtype}, which cannot be reduced; leave that parameter to another optimizer')
            slot = Slot(parameter, name, group, self.passes)
            self._hang(slot)
            self.slots.append(slot)

    def _hang(self, slot: Slot) -> None:
        """Hooks it, and takes the hook of an earlier reducer away, which then reduces this parameter in its synchronize()."""
        parameter = slot.parameter
        earlier = _newest.get(id(parameter))
        other = earlier() if earlier is not None else None
        if other is not None and other.parameter is parameter:
            _unhook(other)
        owner, index = weakref.ref(self), len(self.slots)  # parameters keep their hooks: these must not keep parameters

        def arrived(*_: Any) -> None:  # called for every tensor in every step: what is usual comes first, and calls nothing
            reducer = owner()
            if reducer is None:
                return
            slot = reducer.slots[index]
            bucket = slot.bucket
            delay = slot.delay = slot.delay - 1
            reducer.touched = True
            if delay or bucket is None:
                reducer._arrived_otherwise(slot)
                return
            gradient = slot.parameter.grad
            if gradient is not slot.view:
                reducer._adopt(slot, gradient)
            pending = bucket.pending = bucket.pending - 1
            if not pending:
                reducer._start(bucket, None)

        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            arrived._torchdynamo_disable = True  # for compiled autograd
            slot.hook = parameter.register_post_accumulate_grad_hook(arrived)
        else:
            with torch.enable_grad():
                slot.node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            slot.hook = slot.node.register_hook(arrived)
        number = id(parameter)
        _newest[number] = weakref.ref(slot, lambda reference: _newest.pop(number, None) if _newest.get(number) is reference else None)

    def close(self) -> None:
        """Takes all hooks away."""
        for slot in self.slots:
            _unhook(slot)

    # ------------------------------------------------------------------------------------------ a step

    def _arrived_otherwise(self, slot: Slot) -> None:
        """Does what a hook does for a gradient that is not to be reduced yet, too many, or in no bucket."""
        if slot.delay > 0:
            return
        if slot.delay < 0:
            raise AssertionError(
                f'"{slot.name}" has got {self.passes + 1} gradients since the last step(), and backward_passes_per_step is {self.passes}; raise that to add up more '
                "of them before they are reduced"
            )
        self._start(None, slot)

    def _start(self, bucket: Optional[Bucket], alone: Optional[Slot]) -> None:
        """Starts what is complete, if the ranks have agreed on it."""
        if self._generation != world.generation or self._failure is not None:
            return
        try:
            if bucket is not None:
                bucket.start()
            elif alone is not None:
                self._start_alone(alone)
        except CollectiveError as error:
            self._failure = error  # for synchronize(): it would not be understood amid a backward pass

    @staticmethod
    def _adopt(slot: Slot, gradient: Optional[torch.Tensor]) -> None:
        """Puts the gradient into the bucket. A missing one counts as zeros; that of a parameter which needs none any more stays missing."""
        view, parameter = slot.view, slot.parameter
        if gradient is None:
            view.zero_()
            if not parameter.requires_grad:
                return
        elif gradient.is_sparse:
            view.copy_(gradient.detach().to_dense())
        else:
            view.copy_(gradient.detach() if torch.is_grad_enabled() else gradient)
        try:
            parameter.grad = view
        except RuntimeError as error:
            raise ValueError(
                f'the parameter "{slot.name}" is {list(parameter.shape)} {parameter.dtype} on {parameter.device}, and was {list(view.shape)} {view.dtype} on '
                f"{view.device} in the first step; make a new DistributedOptimizer after changing a model"
            ) from error

    def _start_alone(self, slot: Slot) -> None:
        gradient = slot.parameter.grad
        if slot.sparse_dimensions:
            slot.request = SparseReduction(slot.parameter, gradient, slot.sparse_dimensions, self.how, self._request(slot.name))
            return
        if gradient is None:
            gradient = torch.zeros_like(slot.parameter.detach())
        elif gradient.is_sparse:
            gradient = gradient.to_dense()
        slot.request = _Single(slot, gradient.detach(), self.how, self._request(slot.name))

    @_outside_of_graphs
    def synchronize(self) -> None:
        """Reduces what has not been started, as it is (zeros for a missing one), and waits for all. Collective over the set, blocking.

        Raises:
            CollectiveError: ranks have failed, or their parameters differ. The gradients are then undefined, and the next step begins anew.
        """
        try:
            with torch.no_grad():
                self._synchronize()
        except BaseException:
            self.begin_anew()
            raise

    def _synchronize(self) -> None:
        if self._failure is not None:
            raise self._failure
        known = len(self.slots)
        if self._dormant and any(parameter.requires_grad and parameter.numel() for _, parameter, _ in self._dormant):
            self._wake()
        if self._generation != world.generation:
            self._lay_out()
            known = len(self.slots)
        elif len(self.slots) > known:  # others may be under way: the new ones go alone this time
            self._others += self.slots[known:]
        buckets, passes = self.buckets, self.passes
        for bucket in buckets:
            if bucket.handle is None:
                for slot in bucket.slots:
                    gradient = slot.parameter.grad
                    if gradient is not slot.view:
                        self._adopt(slot, gradient)
                bucket.start()
        for slot in self._others:
            if slot.request is None:
                self._start_alone(slot)
        for bucket in buckets:
            bucket.finish()
            bucket.pending = len(bucket.slots)
            for slot in bucket.slots:
                slot.delay = passes
                parameter = slot.parameter
                if parameter.grad is not slot.view and parameter.requires_grad:
                    parameter.grad = slot.view
        for slot in self._others:
            request, slot.request = slot.request, None
            slot.delay = passes
            request.finish(slot)
        self.touched = False
        if len(self.slots) > known:
            self._generation = -1

    def begin_anew(self) -> None:
        """Forgets what has come in this step. What is under way goes on, and its memory stays until it has ended."""
        self._failure = None
        self.touched = False
        self._generation = -1  # memory of what is under way may still be written to: the next step gets another
        for slot in self.slots:
            slot.delay = self.passes
            slot.request = None
        for bucket in self.buckets:
            bucket.pending = len(bucket.slots)
            bucket.handle = None

    def under_way(self) -> Dict[torch.Tensor, Any]:
        """Parameters whose gradients have come in this step, with (request or None, None)."""
        return {
            slot.parameter: (slot.bucket.handle if slot.bucket is not None else slot.request, None) for slot in self.slots if slot.delay < self.passes
        }

    def reduce_loss(self, loss: Any) -> Any:
        """The ranks' losses, reduced as gradients are: a new tensor, or a number. Collective over the set, blocking."""
        if loss is None:
            return None
        value = loss.detach().clone() if isinstance(loss, torch.Tensor) else torch.tensor(loss, dtype=torch.float64)
        kind = TYPES[value.dtype]
        memory, stream = place_of(value)
        address = value.data_ptr()
        world.comm().submit(
            native.ALLREDUCE, self.how.how, (self._request("(loss)"), address, address, tuple(value.shape), kind),
            set=number_of(self.how.process_set), compression=native.WIRE_NONE, error_feedback=1, memory=memory, stream=stream, keep=value,
        ).wait()  # fmt: skip
        return value if isinstance(loss, torch.Tensor) else value.item()

    def zero(self) -> None:
        """Sets all gradients to zero, those of a bucket at once."""
        for bucket in self.buckets:
            if all(slot.parameter.grad is slot.view for slot in bucket.slots):
                bucket.flat.zero_()
            else:
                zero_each(slot.parameter for slot in bucket.slots)
        zero_each(slot.parameter for slot in self.slots if slot.bucket is None)
        zero_each(parameter for _, parameter, _ in self._dormant)

    # ------------------------------------------------------------------------------------------ agreement

    def _lay_out(self) -> None:
        """Makes the ranks agree on the parameters, and prepares the buckets. Collective over the set, blocking."""
        comm = world.comm()
        how = self.how
        number = number_of(how.process_set)
        key = (world.generation, number)
        if self._named_in != world.generation:
            mine = _numbers[key] = _numbers.get(key, 0) + 1
            self._suffix = "" if mine == 1 else f" (optimizer {mine})"
            self._named_in = world.generation
        gradients = [describe(slot.name, slot.parameter, slot.group) for slot in self.slots]
        ranks = how.process_set.ranks
        _agreement.require_same("the parameters of DistributedOptimizer", self._lines(gradients), self._request("(parameters)"), number, ranks)
        self._agree_on_sparse(number)

        for slot in self.slots:
            slot.view = slot.bucket = None
        alone = {index for index, slot in enumerate(self.slots) if slot.sparse_dimensions or self._wire(slot) is None}
        self._others = [self.slots[index] for index in sorted(alone)]
        together = [index for index in range(len(self.slots)) if index not in alone]
        plan = plan_buckets([gradients[index] for index in together], [self.slots[index].parameter.element_size() for index in together], *self._sizes)
        plan = [[together[index] for index in members] for members in plan]
        self.buckets = lay_out(comm, plan, gradients, [slot.parameter.device for slot in self.slots], self._request)
        before, after = factors(how)
        for bucket in self.buckets:
            bucket.slots = [self.slots[index] for index in bucket.members]
            for slot, view in zip(bucket.slots, bucket.views):
                slot.bucket, slot.view = bucket, view
            bucket.prepare(comm, how.how, before, after, number, self._wire(bucket.slots[0]))
        self._generation = world.generation

    def _request(self, name: str) -> str:
        return f"gradient.{name}{self._suffix}"

    def _wire(self, slot: Slot) -> Optional[int]:
        """Returns how muster sends the gradient of this parameter in a bucket; None if it must go through the compression's own functions."""
        compression = self.how.compression
        if compression is NoneCompressor:
            return native.WIRE_DEFAULT
        like = _like(slot.parameter)
        if getattr(compression, "wire", 0) and like.dtype is compression.dtype:
            return native.WIRE_NONE  # is what it would become
        return wire_of(compression, self.how.op, like) or None

    def _lines(self, gradients: Sequence[Gradient]) -> List[str]:
        """Returns what must be the same on all ranks, one line each."""
        how = self.how
        compression = getattr(how.compression, "__name__", type(how.compression).__name__)
        options = (
            f"(options) op {how.op}, gradient_predivide_factor {how.predivide:g}, compression {compression}, sparse_as_dense {bool(how.sparse_as_dense)}, "
            f"buckets of {self._sizes[0]} and {self._sizes[1]} bytes"
        )
        return [options] + [str(gradient) for gradient in gradients]

    def _agree_on_sparse(self, number: int) -> None:
        """Agrees with the other ranks on the parameters with sparse gradients: those for which some rank has got one."""
        if self.how.sparse_as_dense:
            return
        mine = {}
        for index, slot in enumerate(self.slots):
            gradient = slot.parameter.grad
            if gradient is not None and gradient.is_sparse:
                mine[index] = gradient.sparse_dim()
            elif slot.sparse_dimensions:
                mine[index] = slot.sparse_dimensions
        for theirs in _agreement.gather_values(mine, self._request("(sparse)"), number):
            for index, dimensions in theirs.items():
                self.slots[int(index)].sparse_dimensions = dimensions


def _like(parameter: torch.Tensor) -> torch.Tensor:
    """A tensor of what really is reduced: of complex numbers, their parts."""
    return torch.view_as_real(parameter.detach()) if parameter.dtype.is_complex else parameter


def zero_each(parameters) -> None:
    """Sets gradients to zero one by one."""
    for parameter in parameters:
        gradient = parameter.grad
        if gradient is None:
            continue
        if gradient.grad_fn is not None:
            parameter.grad = torch.zeros_like(gradient.detach())
        else:
            gradient.requires_grad_(False)
            gradient.zero_()
