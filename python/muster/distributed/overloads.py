"""Gives a process group's methods all forms of a call that torch's ProcessGroup has: options or single values, lists or one tensor, arguments by name."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch

_FIELDS = {"op": "reduceOp", "root": "rootRank", "timeout": "timeout"}


class _Forms:
    """The forms of one method.

    Attributes:
        arguments: of each argument before the options its names in torch's versions; one that begins with "?" may be left out.
        options: the class of the options.
        values: names of the values that may be given in place of the options.
        one: in which of the arguments the short form has a tensor, and the long one a list; its other arguments are then the lists' only elements. -1: in none.
    """

    def __init__(self, arguments: str, options: str, values: str, one: int) -> None:
        self.arguments = [(argument.lstrip("?").split("|"), argument.startswith("?")) for argument in arguments.split()]
        self.options = getattr(torch._C._distributed_c10d, options)
        self.values = values.split()
        self.one = one

    def is_long(self, given: Sequence[Any]) -> bool:
        """Returns whether these are the arguments of the long form, as torch gives them."""
        count = len(self.arguments)
        if len(given) != count and not (len(given) == count + 1 and isinstance(given[count], self.options)):
            return False
        return self.one < 0 or isinstance(given[self.one], (list, tuple))

    def long(self, method: str, given: Sequence[Any], named: Dict[str, Any]) -> List[Any]:
        """The arguments of the long form. Raises TypeError for what is none of the forms."""
        rest, named = list(given), dict(named)
        made = [self._argument(method, names, may_lack, rest, named) for names, may_lack in self.arguments]
        opts = named.pop("opts", None)
        if opts is None and rest and (rest[0] is None or type(rest[0]).__name__.endswith("Options")):
            opts = rest.pop(0)
        if len(rest) > len(self.values):
            raise TypeError(f"{method}: {len(given)} arguments, and it takes {len(self.arguments) + len(self.values)} at most")
        values = {**dict(zip(self.values, rest)), **named}
        is_short = self.one >= 0 and isinstance(made[self.one], torch.Tensor)
        if is_short:
            made = [[argument] for argument in made]
            if opts is None and "root" in self.values and "root" not in values:
                raise TypeError(f"{method}: of one tensor it needs the root's rank")
        return [*made, self._options(method, opts, values)]

    def _argument(self, method: str, names: Sequence[str], may_lack: bool, rest: List[Any], named: Dict[str, Any]) -> Any:
        if rest:
            return rest.pop(0)
        for name in names:
            if name in named:
                return named.pop(name)
        if may_lack:
            return None
        raise TypeError(f"{method}: the argument {names[0]!r} is missing")

    def _options(self, method: str, opts: Any, values: Dict[str, Any]) -> Any:
        if not values:
            return opts
        opts = self.options() if opts is None else opts
        for name, value in values.items():
            if name not in self.values:
                raise TypeError(f"{method}: there is no argument {name!r}")
            if name != "timeout" or value is not None:
                setattr(opts, _FIELDS[name], value)
        return opts


def collective(
    operation: str, arguments: str, options: str, values: str = "timeout", one: int = -1, alike: Optional[Callable[..., Sequence[torch.Tensor]]] = None
) -> Callable[[Callable], Callable]:
    """Wraps a method that takes the long form, with options or None after the arguments.

    `operation` is torch's name of it, and alike(arguments …) gives the tensors whose shapes and types are the same on all ranks, by which the ranks' calls are
    compared if TORCH_DISTRIBUTED_DEBUG asks for that. The other parameters are those of _Forms.
    """
    forms = _Forms(arguments, options, values, one)

    def wrap(method: Callable) -> Callable:
        @functools.wraps(method)
        def call(self, *given: Any, **named: Any) -> Any:
            if named or not forms.is_long(given):
                given = forms.long(method.__name__, given, named)
            if self._compared is None:
                return method(self, *given)
            with self._compared.one_call(self, operation, alike, given[: len(forms.arguments)]):
                return method(self, *given)

        return call

    return wrap
