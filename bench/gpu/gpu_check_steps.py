"""Steps of muster-bench gpu-check with PyTorch: gpu_check_steps.py STEP [cuda | cpu], started by muster run.

Every rank trains a small model on other numbers; afterwards all ranks' weights, and those of one process that saw all numbers, must agree.
Lines NAME<tab>VERSION are versions. Exit code 77: the step cannot run here, and the last line says why.
"""

import sys

try:
    import torch
except ImportError as missing:
    print(f"{sys.executable} has no torch ({missing}); give the one of your training by --python")
    sys.exit(77)
import torch.distributed as dist

STEPS = 5


def model_and_data(rank, device):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 10)).to(device)
    generator = torch.Generator().manual_seed(100 + rank)
    return model, torch.randn(32, 64, generator=generator).to(device), torch.randn(32, 10, generator=generator).to(device)


def loss_of(model, x, y):
    return torch.nn.functional.mse_loss(model(x), y)


def expected_weights(ranks, device):
    """Returns the weights of one process that averages all ranks' gradients itself."""
    model, _, _ = model_and_data(0, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = [model_and_data(rank, device)[1:] for rank in range(ranks)]
    for _ in range(STEPS):
        optimizer.zero_grad()
        for x, y in data:
            (loss_of(model, x, y) / ranks).backward()
        optimizer.step()
    return [each.detach() for each in model.parameters()]


def check_weights(model, rank, ranks, device):
    for index, (found, expected) in enumerate(zip(model.parameters(), expected_weights(ranks, device))):
        off = (found.detach() - expected).abs().max().item()
        if not off < 1e-4:
            sys.exit(f"rank {rank}: parameter {index} is off by {off} after {STEPS} steps")


def train(model, optimizer, x, y):
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()


def hvd_step(device):
    import muster.torch as hvd

    hvd.init()
    model, x, y = model_and_data(hvd.rank(), device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    train(model, optimizer, x, y)
    check_weights(model, hvd.rank(), hvd.size(), device)
    hvd.shutdown()


def ddp_step(backend):
    def run(device):
        if backend == "muster":
            import muster.torch  # noqa: F401  registers the backend
        dist.init_process_group(backend if device.type == "cuda" or backend == "muster" else "gloo")
        model, x, y = model_and_data(dist.get_rank(), device)
        wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)
        train(wrapped, torch.optim.SGD(model.parameters(), lr=0.1), x, y)
        check_weights(model, dist.get_rank(), dist.get_world_size(), device)
        dist.destroy_process_group()

    return run


def graph_step(device):
    """Captures one step (forward, backward and the gradients' allreduce by NCCL) and replays it."""
    if device.type != "cuda":
        print("a CUDA graph needs a GPU")
        sys.exit(77)
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model, x, y = model_and_data(rank, device)

    def step():
        for each in model.parameters():
            each.grad = None
        loss_of(model, x, y).backward()
        for each in model.parameters():
            dist.all_reduce(each.grad)
        with torch.no_grad():
            for each in model.parameters():
                each.sub_(each.grad, alpha=0.1 / ranks)

    start = [each.detach().clone() for each in model.parameters()]
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):  # what is made at the first steps cannot be captured
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    with torch.no_grad():
        for each, value in zip(model.parameters(), start):
            each.copy_(value)
    for _ in range(STEPS):
        graph.replay()
    torch.cuda.synchronize()
    check_weights(model, rank, ranks, device)
    dist.destroy_process_group()


STEP_OF = {"hvd": hvd_step, "ddp-muster": ddp_step("muster"), "ddp-nccl": ddp_step("nccl"), "graph": graph_step}


def main():
    import os

    name, kind = sys.argv[1], (sys.argv[2:] or ["cuda"])[0]
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    if rank == 0:
        print(f"torch\t{torch.__version__}")
    if kind == "cuda":
        if not torch.cuda.is_available():
            print(f"torch {torch.__version__} of {sys.executable} sees no GPU; give a python with torch for CUDA by --python")
            sys.exit(77)
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        if rank == 0:
            print(f"CUDA of torch\t{torch.version.cuda}")
            print(f"NCCL of torch\t{'.'.join(map(str, torch.cuda.nccl.version()))}")
    else:
        device = torch.device("cpu")
    STEP_OF[name](device)
    print(f"rank {rank}: {STEPS} steps on {device}, weights as computed by one process")


main()
