"""Makes collectives differentiable."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch


class _Collective(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, gradients_of, *tensors):
        ctx.gradients_of = gradients_of
        return run(*tensors)

    @staticmethod
    def backward(ctx, *gradients):
        return (None, None, *ctx.gradients_of(*gradients))


def differentiable(run: Callable[..., Any], gradients_of: Callable[..., Sequence[torch.Tensor]], *tensors: torch.Tensor) -> Any:
    """Returns run(*tensors): a tensor, or a tuple of them. Where one of the tensors needs a gradient, gradients_of(those of the results) gives theirs."""
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return _Collective.apply(run, gradients_of, *tensors)
    return run(*tensors)
