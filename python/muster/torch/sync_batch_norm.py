"""Normalizes over the batches of all ranks: `SyncBatchNorm`, on CPUs too.

Statistics: Chan, Golub, LeVeque: Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979. Gradients: Ioffe, Szegedy: Batch
Normalization, 2015.
"""

from __future__ import annotations

import itertools
from typing import Optional

import torch
from muster import world
from muster.torch._allgather import allgather
from muster.torch._allreduce import allreduce_
from muster.torch._reductions import Sum

_numbers = itertools.count()


def _over_channels(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A value a channel, shaped so that it meets the channels of a tensor (N, C, …)."""
    return values.view(1, -1, *([1] * (like.dim() - 2)))


class _Normalize(torch.autograd.Function):
    """(x, weight, bias) -> (y, mean, variance without Bessel's correction, number of values a channel), the last three of all ranks."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps, name):
        kind = torch.float64 if x.dtype == torch.float64 else torch.float32
        dimensions = [0, *range(2, x.dim())]
        own = x.detach().to(kind)
        channels = x.size(1)
        count = x.numel() // max(1, channels)
        own_mean = own.sum(dimensions) / max(1, count)
        deviations = (own - _over_channels(own_mean, x)).pow_(2).sum(dimensions)
        # One row a rank: count, means, sums of squared deviations. In double precision, so that large counts and far means lose nothing.
        row = torch.cat([torch.tensor([float(count)], dtype=torch.float64, device=x.device), own_mean.double(), deviations.double()])
        rows = allgather(row.unsqueeze(0), name + ".forward")
        counts, means, squares = rows[:, :1], rows[:, 1 : channels + 1], rows[:, channels + 1 :]
        total = counts.sum()
        if float(total) < 2:
            raise ValueError(f"SyncBatchNorm: {int(total)} value a channel over all ranks; training needs at least two")
        mean = (means * counts).sum(0) / total
        variance = (squares.sum(0) + (counts * (means - mean).pow(2)).sum(0)) / total
        inverse = (variance + eps).rsqrt()
        ctx.save_for_backward(x, weight, mean.to(kind), inverse.to(kind), total)
        ctx.name = name
        normal = (own - _over_channels(mean.to(kind), x)).mul_(_over_channels(inverse.to(kind), x))
        if weight is not None:
            normal = normal.mul_(_over_channels(weight.to(kind), x)).add_(_over_channels(bias.to(kind), x))
        ctx.mark_non_differentiable(mean, variance, total)
        return normal.to(x.dtype), mean, variance, total

    @staticmethod
    def backward(ctx, gradient, *_):
        x, weight, mean, inverse, total = ctx.saved_tensors
        dimensions = [0, *range(2, x.dim())]
        kind = mean.dtype
        gradient_here = gradient.to(kind)
        normal = (x.detach().to(kind) - _over_channels(mean, x)).mul_(_over_channels(inverse, x))
        sums = torch.cat([gradient_here.sum(dimensions), (gradient_here * normal).sum(dimensions)])
        # The parameters' gradients are those of this rank's batch: DistributedOptimizer reduces them.
        for_bias, for_weight = sums.clone().chunk(2)
        for_x = None
        if ctx.needs_input_grad[0]:
            allreduce_(sums, name=ctx.name + ".backward", op=Sum)
            mean_gradient, mean_projection = (sums / total.to(kind)).chunk(2)
            for_x = (gradient_here - _over_channels(mean_gradient, x)).sub_(normal.mul_(_over_channels(mean_projection, x)))
            scale = inverse if weight is None else inverse * weight.to(kind)
            for_x = for_x.mul_(_over_channels(scale, x)).to(x.dtype)
        return (
            for_x,
            for_weight.to(weight.dtype) if weight is not None and ctx.needs_input_grad[1] else None,
            for_bias.to(weight.dtype) if weight is not None and ctx.needs_input_grad[2] else None,
            None,
            None,
        )


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """Batch normalization of (N, C, …) in which mean and variance are those of all ranks' batches together, of any sizes.

    In training each forward and each backward pass is collective over all ranks: all of them must run the module equally often, in the same order. In
    evaluation with running statistics it is an ordinary batch normalization. Equal to `torch.nn.BatchNorm*d` of the whole batch within rounding.
    Parameters, buffers and arguments are those of `torch.nn.BatchNorm2d`.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: Optional[float] = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self._name = f"sync_batch_norm.{next(_numbers)}"  # the same on all ranks, since they make the same modules in the same order

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm wants (N, C, …), not {input.dim()} dimensions")
        if input.size(1) != self.num_features:
            raise ValueError(f"SyncBatchNorm of {self.num_features} channels was given {input.size(1)}: {tuple(input.shape)}")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        if not self.training and self.track_running_stats:
            return self._of_own_batch(input, False, 0.0)
        factor = 0.0 if self.momentum is None else self.momentum
        updates = self.training and self.track_running_stats
        if updates:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        if world.size() == 1:
            return self._of_own_batch(input, True, factor)
        output, mean, variance, total = _Normalize.apply(input, self.weight, self.bias, self.eps, self._name)
        if updates:
            with torch.no_grad():
                unbiased = variance * (total / (total - 1))
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), factor)
        return output

    def _of_own_batch(self, input: torch.Tensor, by_batch: bool, factor: float) -> torch.Tensor:
        keeps = not self.training or self.track_running_stats
        return torch.nn.functional.batch_norm(
            input,
            self.running_mean if keeps else None,
            self.running_var if keeps else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )
