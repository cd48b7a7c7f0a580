"""Reduces what a step has changed in the parameters, instead of gradients: Adasum."""

from __future__ import annotations

from typing import List, Sequence, Tuple

import torch

from muster.torch.gradients import GradientReducer, Reduction


class DeltaReducer:
    """An optimizer makes its step between `begin` and `finish`; `finish` replaces each parameter's change by the ranks' changes, reduced.

    Built on a GradientReducer whose parameters are stand-ins, with the deltas as gradients. Collective over the process set; one thread at a time.
    """

    def __init__(self, named: Sequence[Tuple[str, torch.Tensor, int]], how: Reduction, sizes) -> None:
        self._how = how
        self._sizes = sizes
        self._named: List[Tuple[str, torch.Tensor, int]] = []
        self._reducer = GradientReducer([], how, 1, sizes)
        self._pairs: List[Tuple[torch.Tensor, torch.Tensor]] = []  # parameter, stand-in that holds what it was
        self.passes = 1
        self.touched = False
        self.add(named)

    @property
    def slots(self) -> list:
        return self._reducer.slots

    def add(self, named: Sequence[Tuple[str, torch.Tensor, int]]) -> None:
        """Takes parameters on, as GradientReducer.add."""
        self._named += named

    def begin(self) -> None:
        """Keeps the parameters as they are now."""
        woken = [one for one in self._named if one[1].requires_grad]
        if woken:
            self._named = [one for one in self._named if not one[1].requires_grad]
            stand_ins = [(name, torch.empty_like(parameter.detach()).requires_grad_(), group) for name, parameter, group in woken]
            self._pairs += [(parameter, stand_in) for (_, parameter, _), (_, stand_in, _) in zip(woken, stand_ins)]
            self._reducer.add(stand_ins)
        with torch.no_grad():
            for parameter, stand_in in self._pairs:
                stand_in.copy_(parameter)

    def finish(self) -> None:
        """Reduces the changes and applies them. Raises as GradientReducer.synchronize; the parameters are then as this rank's step left them."""
        with torch.no_grad():
            for parameter, stand_in in self._pairs:
                if stand_in.grad is None:
                    stand_in.grad = parameter - stand_in
                else:
                    torch.sub(parameter, stand_in, out=stand_in.grad)
            self._reducer.synchronize()
            for parameter, stand_in in self._pairs:
                torch.add(stand_in, stand_in.grad, out=parameter.detach())

    def begin_anew(self) -> None:
        """Forgets what was begun."""
        self._reducer.begin_anew()

    def under_way(self) -> dict:
        """Nothing is, between steps."""
        return {}

    def close(self) -> None:
        """Takes the hooks away."""
        self._reducer.close()
