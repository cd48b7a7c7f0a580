# DistributedOptimizer: what it computes equals one process with the whole batch; the surface that scripts of Horovod use; its errors.
# ranks: 1 2 3
# together: torch
import copy
import io
import json
import warnings

import check

try:
    import torch
except ImportError:
    check.skip("this Python has no torch")
import muster.torch as hvd
from muster import world

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()


def net(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 20), torch.nn.Tanh(), torch.nn.Linear(20, 5))


def batch(step, rows=4):
    generator = torch.Generator().manual_seed(100 + step)
    return torch.randn(rows * SIZE, 1, 8, 8, generator=generator), torch.randint(0, 5, (rows * SIZE,), generator=generator)


def mine(tensor):
    rows = len(tensor) // SIZE
    return tensor[rows * RANK : rows * (RANK + 1)]


def loss_of(model, data, target):
    return torch.nn.functional.cross_entropy(model(data), target)


def difference(one, other):
    return max((a - b).abs().max().item() for a, b in zip(one.parameters(), other.parameters()))


def assert_same_everywhere(model):
    flat = torch.cat([p.detach().double().reshape(-1) for p in model.parameters()])
    assert torch.equal(hvd.broadcast(flat, 0), flat)


def train_both(make, wrap, steps=4, zero=lambda o: o.zero_grad()):
    """Trains by the wrapper with this rank's rows, and alone with all rows; the largest difference of parameters."""
    model, alone = net(), net()
    optimizer, plain = wrap(make(model.parameters()), model), make(alone.parameters())
    for step in range(steps):
        data, target = batch(step)
        zero(optimizer)
        loss_of(model, mine(data), mine(target)).backward()
        optimizer.step()
        plain.zero_grad()
        loss_of(alone, data, target).backward()
        plain.step()
    assert_same_everywhere(model)
    return difference(model, alone)


def wrapped(**more):
    return lambda optimizer, model: hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), **more)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01)


def test_equals_one_process_with_the_whole_batch():
    for make in (sgd, lambda p: torch.optim.Adam(p, lr=0.001)):
        assert train_both(make, wrapped()) < 1e-5
    for to_none in (False, True):
        for size in (1, 600, (64, 4000)):
            assert train_both(sgd, wrapped(bucket_bytes=size), zero=lambda o: o.zero_grad(set_to_none=to_none)) < 1e-6, (to_none, size)


def test_bit_for_bit_where_sums_are_exact():
    """Whole numbers, so that no addition rounds: the mean over 4 * SIZE rows is made the same by a factor."""
    weight, alone = torch.zeros(3, 4, requires_grad=True), torch.zeros(3, 4, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.5), op=hvd.Sum)
    plain = torch.optim.SGD([alone], lr=0.5)
    for step in range(4):
        rows = torch.randint(-8, 8, (4 * SIZE, 3, 4), generator=torch.Generator().manual_seed(step)).float()
        optimizer.zero_grad(), plain.zero_grad()
        (weight * mine(rows)).sum().backward()
        (alone * rows).sum().backward()
        optimizer.step(), plain.step()
        assert torch.equal(weight, alone) and torch.equal(weight.grad, alone.grad)


def test_class_state_and_schedulers_are_the_plain_ones():
    model = net()
    plain = sgd(model.parameters())
    early = torch.optim.lr_scheduler.StepLR(plain, 1, 0.5)
    optimizer = wrapped()(plain, model)
    assert isinstance(optimizer, torch.optim.SGD) and type(optimizer).__name__ == "SGD" and optimizer.param_groups is plain.param_groups
    assert type(optimizer) is type(wrapped()(sgd(model.parameters()), model))
    late = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(2):
            data, target = batch(step)
            optimizer.zero_grad()
            loss_of(model, mine(data), mine(target)).backward()
            optimizer.step()
            late.step()
            early.step()
    assert abs(optimizer.param_groups[0]["lr"] - 0.1 / 16) < 1e-9
    state = optimizer.state_dict()
    fresh = sgd(model.parameters())
    fresh.load_state_dict(state)
    assert fresh.param_groups[0]["momentum"] == 0.9
    optimizer.load_state_dict(state)
    another = wrapped()(sgd(model.parameters()), model)
    another.load_state_dict(state)
    if hasattr(another, "register_step_pre_hook"):  # since torch 2.0
        calls = []
        another.register_step_pre_hook(lambda *_: calls.append(1))
        another.zero_grad()
        loss_of(model, *batch(3)).backward()
        another.step()
        assert calls == [1]
    twin = copy.deepcopy(optimizer)
    assert type(twin) is torch.optim.SGD and twin.state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]
    torch.save(optimizer, io.BytesIO())
    torch.save(model, io.BytesIO())


def test_gradients_are_read_after_synchronize():
    model, alone = net(), net()
    optimizer = wrapped()(sgd(model.parameters()), model)
    plain = sgd(alone.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(3):
            data, target = batch(step)
            optimizer.zero_grad()
            loss_of(model, mine(data), mine(target)).backward()
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            with optimizer.skip_synchronize():
                optimizer.step()
            plain.zero_grad()
            loss_of(alone, data, target).backward()
            torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
            plain.step()
    assert difference(model, alone) < 1e-6


def test_step_after_synchronize_warns_and_does_not_reduce_again():
    model = net()
    optimizer = wrapped(op=hvd.Sum)(torch.optim.SGD(model.parameters(), lr=0.1), model)
    data, target = batch(0)
    loss_of(model, mine(data), mine(target)).backward()
    optimizer.synchronize()
    before = model[5].weight.grad.clone()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.step()
    assert any("optimizer.step() called without optimizer.skip_synchronize()" in str(one.message) for one in caught)
    assert torch.equal(before, model[5].weight.grad)


def test_wrong_order_of_calls():
    model = net()
    optimizer = wrapped()(sgd(model.parameters()), model)
    data, target = batch(0)
    loss_of(model, mine(data), mine(target)).backward()
    if SIZE == 1:
        optimizer.zero_grad()
        return
    check.raises(AssertionError, optimizer.zero_grad, "zero_grad")
    assert optimizer._handles and len(optimizer._requires_update) == 6 == len(set(optimizer._parameter_names.values()))

    def too_early():
        with optimizer.skip_synchronize():
            optimizer.step()

    check.raises(AssertionError, too_early, "skip_synchronize")
    check.raises(AssertionError, lambda: loss_of(model, mine(data), mine(target)).backward(), "backward_passes_per_step")
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()
    loss_of(model, mine(data), mine(target)).backward()
    optimizer.step()
    assert not optimizer._handles


def test_backward_passes_per_step():
    model, alone = net(), net()
    optimizer = wrapped(backward_passes_per_step=2, bucket_bytes=600)(sgd(model.parameters()), model)
    plain = sgd(alone.parameters())
    for step in range(4):
        if step == 3:
            optimizer.set_backward_passes_per_step(3)
        optimizer.zero_grad()
        plain.zero_grad()
        for part in range(3 if step == 3 else 2 if step != 1 else 1):  # in step 1 fewer than were announced
            data, target = batch(10 * step + part)
            assert all(request is None for request, _ in optimizer._handles.values())  # nothing is started before the last pass
            loss_of(model, mine(data), mine(target)).backward()
            loss_of(alone, data, target).backward()
        optimizer.step()
        plain.step()
    assert difference(model, alone) < 1e-6
    check.raises(ValueError, lambda: optimizer.set_backward_passes_per_step(0), "at least 1")


def test_ranks_may_use_different_parameters():
    torch.manual_seed(0)
    parts = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(SIZE + 1)])
    alone = copy.deepcopy(parts)
    optimizer = wrapped(bucket_bytes=1)(sgd(parts.parameters()), parts)
    plain = sgd(alone.parameters())
    for step in range(4):
        data = torch.randn(SIZE, 3, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        parts[(RANK + step) % SIZE](data[RANK]).sum().backward()
        optimizer.step()
        plain.zero_grad()
        sum(alone[(rank + step) % SIZE](data[rank]).sum() / SIZE for rank in range(SIZE)).backward()
        if SIZE > 1:
            for parameter in alone[-1].parameters():
                parameter.grad = torch.zeros_like(parameter)
        plain.step()
        assert_same_everywhere(parts)
    assert difference(parts, alone) < 1e-6


def test_a_rank_without_any_gradient():
    weight = torch.ones(5, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), op=hvd.Sum)
    for step in range(3):
        optimizer.zero_grad()
        if RANK == step % SIZE:
            weight.sum().backward()
        optimizer.step()
        assert weight.tolist() == [-step] * 5


def test_groups_and_predivide_factor():
    for more in (
        {"gradient_predivide_factor": 2.0},
        {"gradient_predivide_factor": 4.0, "groups": 2},
        {"groups": 100},
        {"groups": 1, "gradient_predivide_factor": 0.5},
    ):
        assert train_both(sgd, wrapped(**more)) < 1e-6, more
    assert train_both(sgd, lambda o, m: hvd.DistributedOptimizer(o, groups=[[m[0].weight, m[5].bias], [m[3].bias]])) < 1e-6
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert train_both(sgd, wrapped(num_groups=2)) < 1e-6
    assert any("num_groups" in str(one.message) for one in caught)


def test_arguments_are_checked():
    model = net()
    optimizer = sgd(model.parameters())

    def wrong(kind, text, **more):
        check.raises(kind, lambda: hvd.DistributedOptimizer(optimizer, **more), text)

    named = list(model.named_parameters())
    wrong(ValueError, "must be pairs", named_parameters=list(model.parameters()))
    wrong(ValueError, "several parameters alike", named_parameters=[(name[:2], parameter) for name, parameter in named])
    wrong(ValueError, "leaves out parameters", named_parameters=named[1:])
    wrong(ValueError, "gradient_predivide_factor", op=hvd.Sum, gradient_predivide_factor=2.0)
    wrong(ValueError, "groups", groups=-1)
    wrong(ValueError, "names a parameter twice", groups=[[named[0][1]], [named[0][1]]])
    wrong(ValueError, "torch.Tensor", groups=[["conv"]])
    wrong(ValueError, "backward_passes_per_step", backward_passes_per_step=0)
    wrong(ValueError, "no reduction", op=17)
    more_names = named + [("other", torch.zeros(1))]
    made = hvd.DistributedOptimizer(optimizer, named_parameters=iter(more_names))
    check.raises(ValueError, lambda: hvd.DistributedOptimizer(made), "already")


def test_one_rank_has_no_hooks():
    if SIZE > 1:
        return
    model = net()
    optimizer = wrapped()(sgd(model.parameters()), model)
    assert optimizer._muster.reducer is None and not optimizer._requires_update
    asked = json.loads(world.comm().counters(0))["operations"]
    for step in range(2):
        optimizer.zero_grad()
        loss_of(model, *batch(step)).backward()
        optimizer.zero_grad()
        loss_of(model, *batch(step)).backward()
        optimizer.step()
    assert all(not getattr(parameter, "_post_accumulate_grad_hooks", None) for parameter in model.parameters())
    assert asked == json.loads(world.comm().counters(0))["operations"]


def test_classes_with_ways_of_their_own():
    """An optimizer that zeroes in its own way, and whose step takes no closure."""

    class Own(torch.optim.SGD):
        zeroed = 0

        def zero_grad(self):
            self.zeroed += 1
            super().zero_grad()

        def step(self):
            return super().step()

    model = net()
    optimizer = wrapped()(Own(model.parameters(), lr=0.1), model)
    for step in range(2):
        optimizer.zero_grad()
        loss_of(model, *batch(step)).backward()
        optimizer.step()
    assert optimizer.zeroed == 2


def test_process_set():
    hvd.shutdown()
    hvd.init(process_sets="dynamic")
    if SIZE == 1:
        return
    some = hvd.add_process_set(list(range(1, SIZE)))
    weight = torch.zeros(4, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), process_set=some)
    for _ in range(3):
        optimizer.zero_grad()
        (weight * (RANK + 1)).sum().backward()
        optimizer.step()
    expected = -3 if RANK == 0 else -3 * sum(range(2, SIZE + 1)) / (SIZE - 1)
    assert weight.tolist() == [expected] * 4
    check.raises(NotImplementedError, lambda: hvd.DistributedOptimizer(optimizer._muster.original, op=hvd.Adasum, process_set=some), "Adasum")
    everybody = torch.zeros(4, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([everybody], lr=1.0))
    (everybody * (RANK + 1)).sum().backward()
    optimizer.step()
    assert everybody.tolist() == [-(SIZE + 1) / 2] * 4


def test_init_again():
    model, alone = net(), net()
    optimizer = wrapped(bucket_bytes=600)(sgd(model.parameters()), model)
    plain = sgd(alone.parameters())
    for step in range(4):
        data, target = batch(step)
        optimizer.zero_grad()
        loss_of(model, mine(data), mine(target)).backward()
        optimizer.step()
        plain.zero_grad()
        loss_of(alone, data, target).backward()
        plain.step()
        hvd.shutdown()
        hvd.init()
    assert difference(model, alone) < 1e-6


def test_adasum():
    """Where all ranks step alike Adasum changes nothing; steps at right angles are added."""
    if SIZE == 3:
        return
    model, alone = net(), net()
    optimizer = wrapped(op=hvd.Adasum)(torch.optim.Adam(model.parameters(), lr=0.01), model)
    plain = torch.optim.Adam(alone.parameters(), lr=0.01)
    for step in range(3):
        data, target = batch(step)
        for one, by in ((model, optimizer), (alone, plain)):
            by.zero_grad()
            loss_of(one, data, target).backward()
            by.step()
    assert difference(model, alone) < 1e-5
    assert_same_everywhere(model)
    weight = torch.zeros(SIZE, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), op=hvd.Adasum, compression=hvd.Compression.fp16)
    weight[RANK].backward()
    optimizer.step()
    assert weight.tolist() == [-1.0] * SIZE
    if SIZE > 1:
        check.raises(AssertionError, lambda: optimizer.skip_synchronize().__enter__(), "Adasum")


def test_models_that_differ_are_told_on_every_rank():
    if SIZE == 1:
        return
    for what, make in {
        "[6, 4]": lambda odd: torch.nn.Linear(4, 6 if odd else 5),
        "too many": lambda odd: torch.nn.Sequential(torch.nn.Linear(4, 5), *([torch.nn.Linear(5, 1)] if odd else [])),
        "float64": lambda odd: torch.nn.Linear(4, 5).double() if odd else torch.nn.Linear(4, 5),
    }.items():
        model = make(RANK == SIZE - 1)
        optimizer = wrapped()(sgd(model.parameters()), model)
        sum(parameter.sum() for parameter in model.parameters()).backward()
        error = check.raises(hvd.HorovodInternalError, optimizer.step, what, "weight", f"rank {SIZE - 1} on ")
        assert error.ranks == (SIZE - 1,) and error.hosts, error
    # and nothing is left behind
    assert train_both(sgd, wrapped()) < 1e-6


def test_a_rank_that_is_lost():
    """The others are told which; after another init() the same optimizer goes on."""
    if SIZE == 1:
        return
    model, second = net(), net()
    optimizer, other = wrapped()(sgd(model.parameters()), model), wrapped()(sgd(second.parameters()), second)
    for step in range(3):
        optimizer.zero_grad(), other.zero_grad()
        if step == 2 and RANK == SIZE - 1:
            world.comm().abandon()
            break
        loss_of(model, *batch(step)).backward()
        if step == 2:
            error = check.raises(hvd.HorovodInternalError, optimizer.step, f"rank {SIZE - 1}")
            assert error.tensor and "5.bias" in error.tensor and error.ranks == (SIZE - 1,) and error.hosts, (error, error.tensor, error.ranks)
            loss_of(second, *batch(step)).backward()  # says nothing, although nothing can be started any more
            check.raises(hvd.HorovodInternalError, other.step, f"rank {SIZE - 1}")
        else:
            optimizer.step()
            loss_of(second, *batch(step)).backward()
            other.step()
    hvd.shutdown()
    hvd.init()
    state = hvd.broadcast_object(optimizer.state_dict())
    optimizer.load_state_dict(state)
    hvd.broadcast_parameters(model.state_dict(), 0)
    for step in range(3):
        optimizer.zero_grad()
        data, target = batch(step)
        loss_of(model, mine(data), mine(target)).backward()
        optimizer.step()
        assert_same_everywhere(model)


check.run(globals())
