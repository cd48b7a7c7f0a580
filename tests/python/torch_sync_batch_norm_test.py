# SyncBatchNorm against BatchNorm of the whole batch in one process.
# ranks: 1 2 3
# together: torch
import copy

import check

try:
    import torch
except ImportError:
    check.skip("torch is not installed")

import muster.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
CHANNELS = 3
ORDINARY = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d, 5: torch.nn.BatchNorm3d}


def close(got, wanted, tolerance=1e-5):
    assert torch.allclose(got, wanted.to(got.dtype), rtol=tolerance, atol=tolerance), (got, wanted)


def batches(counts, *rest, kind=torch.float64):
    torch.manual_seed(3)
    return [torch.randn(count, CHANNELS, *rest, dtype=kind) * 3 + 100 for count in counts]


def compare(counts, *rest, steps=2, kind=torch.float64, tolerance=1e-5, channels_last=False, **options):
    """Trains both for some steps, and compares outputs, gradients and statistics."""
    mine = hvd.SyncBatchNorm(CHANNELS, **options).to(kind)
    whole = ORDINARY[2 + len(rest)](CHANNELS, **options).to(kind)
    if options.get("affine", True):
        with torch.no_grad():
            mine.weight.uniform_(0.5, 2, generator=torch.Generator().manual_seed(5))
            mine.bias.uniform_(-1, 1, generator=torch.Generator().manual_seed(6))
    whole.load_state_dict(mine.state_dict())
    first = sum(counts[:rank])
    for _ in range(steps):
        parts = batches(counts, *rest, kind=kind)
        all_of_it = torch.cat(parts)
        factors = torch.randn(all_of_it.shape, dtype=kind, generator=torch.Generator().manual_seed(4))
        own = slice(first, first + counts[rank])
        x = parts[rank].clone()
        if channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        x.requires_grad_()
        all_of_it.requires_grad_()
        for module in (mine, whole):
            module.zero_grad()
        y, wanted = mine(x), whole(all_of_it)
        close(y, wanted[own], tolerance)
        (y * factors[own]).sum().backward()
        (wanted * factors).sum().backward()
        close(x.grad, all_of_it.grad[own], tolerance)
        if mine.affine:
            close(hvd.allreduce(mine.weight.grad, op=hvd.Sum), whole.weight.grad, tolerance)
            close(hvd.allreduce(mine.bias.grad, op=hvd.Sum), whole.bias.grad, tolerance)
        if mine.track_running_stats:
            close(mine.running_mean, whole.running_mean, tolerance)
            close(mine.running_var, whole.running_var, tolerance)
            assert torch.equal(mine.num_batches_tracked, whole.num_batches_tracked)
    mine.eval()
    whole.eval()
    if mine.track_running_stats:
        close(mine(x), whole(x.detach().contiguous()), tolerance)
    else:
        close(mine(x), wanted[own], tolerance)
    return mine


def test_shapes():
    for rest in ((), (5,), (4, 4), (2, 3, 2)):
        compare([4] * size, *rest)


def test_uneven_batches():
    compare([2 + one for one in range(size)], 4, 4)
    if size > 1:
        compare([0 if one == 0 else 3 for one in range(size)], 4)
        compare([1] * size)  # one value a channel and rank
        check.raises(ValueError, lambda: hvd.SyncBatchNorm(CHANNELS)(torch.ones(1 if rank == 0 else 0, CHANNELS)), "at least two")


def test_options():
    compare([4] * size, 2, momentum=None, steps=3)
    compare([4] * size, 2, affine=False)
    compare([4] * size, 2, track_running_stats=False)
    compare([4] * size, 2, eps=0.5, momentum=0.5)


def test_single_precision_far_from_zero():
    compare([8] * size, 4, 4, kind=torch.float32, tolerance=1e-3)


def test_channels_last():
    compare([4] * size, 4, 4, channels_last=True)


def test_half_precision_has_statistics_in_single():
    module = hvd.SyncBatchNorm(CHANNELS)
    x = batches([4] * size, 5, kind=torch.float32)[rank]
    wanted = module(x)
    if size > 1:  # one rank leaves it to torch, which may not have it
        x = x.to(torch.bfloat16).requires_grad_()
        y = module(x)
        assert y.dtype == torch.bfloat16
        close(y.float(), wanted, 0.5)
        y.float().square().sum().backward()
        assert x.grad.dtype == torch.bfloat16 and module.weight.grad.dtype == torch.float32


def test_frozen_input_and_parameters():
    module = hvd.SyncBatchNorm(CHANNELS)
    x = batches([4] * size, 5, kind=torch.float32)[rank]
    module(x).sum().backward()  # no gradient of the input: no collective
    assert module.weight.grad is not None
    module = hvd.SyncBatchNorm(CHANNELS).requires_grad_(False)
    x.requires_grad_()
    module(x).square().sum().backward()
    assert x.grad is not None and module.weight.grad is None


def test_several_in_a_model():
    torch.manual_seed(1)
    model = torch.nn.Sequential(hvd.SyncBatchNorm(CHANNELS), torch.nn.ReLU(), hvd.SyncBatchNorm(CHANNELS))
    copied = copy.deepcopy(model)
    x = batches([2 + rank] * size, 4, kind=torch.float32)[rank]
    for one in (model, copied):
        one(x).sum().backward()
    assert torch.equal(model[0].weight.grad, copied[0].weight.grad)


def test_wrong_shapes():
    check.raises(ValueError, lambda: hvd.SyncBatchNorm(CHANNELS)(torch.ones(3)), "dimensions")
    check.raises(ValueError, lambda: hvd.SyncBatchNorm(CHANNELS)(torch.ones(3, 4)), "3 channels", "4")


check.run(globals())
