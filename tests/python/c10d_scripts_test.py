# Scripts that know nothing of muster, started with --backend muster, and process groups of several backends.
# ranks: 2
import json
import os
import subprocess
import sys
import tempfile

import check

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    check.skip(f"no PyTorch: {error}")

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
finds_backends = hasattr(dist.Backend, "MUSTER")  # torch 2.5 and later

SCRIPT = """
import argparse, datetime, os, torch
parser = argparse.ArgumentParser()
parser.add_argument("--backend", default="gloo")
args = parser.parse_args()
torch.distributed.init_process_group(backend=args.backend, timeout=datetime.timedelta(seconds=60))
torch.manual_seed(torch.distributed.get_rank())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
data = torch.utils.data.TensorDataset(torch.arange(64.0).view(16, 4), torch.arange(16) % 2)
sampler = torch.utils.data.distributed.DistributedSampler(data)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for images, labels in torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler, num_workers=epoch):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
torch.distributed.barrier()
print(torch.distributed.get_backend(), [round(x, 5) for x in model.module.weight.view(-1).tolist()])
torch.distributed.destroy_process_group()
"""


def outputs(program, *arguments, runner=None):
    """What the program wrote as this rank. Each rank runs it."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(program)
        file.flush()
        begin = [] if finds_backends or not runner else ["-m", runner]
        done = subprocess.run([sys.executable, "-W", "ignore", *begin, file.name, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # muster ends what hangs
        assert done.returncode == 0, done.stdout
        return done.stdout.strip()


def test_a_script_that_never_imports_muster():
    ours = outputs(SCRIPT, "--backend", "muster", runner="muster.distributed")
    assert ours.startswith("muster ["), ours
    theirs = outputs(SCRIPT, "--backend", "gloo")
    assert ours.replace("muster", "gloo") == theirs, (ours, theirs)


RECORDED = """
import os
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    raise RuntimeError(f"of rank {os.environ['RANK']}")

main()
"""


def test_an_exception_is_recorded_for_each_rank():
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(RECORDED)
        file.flush()
        done = subprocess.run([sys.executable, "-W", "ignore", file.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 1 and "RuntimeError: of rank" in done.stdout, done.stdout
    with open(os.environ["TORCHELASTIC_ERROR_FILE"]) as written:
        assert json.load(written)["message"]["message"] == f"RuntimeError: of rank {rank}"


def test_importing_torch_imports_nothing_of_muster():
    loaded = "import sys, torch; print(sorted(name for name in sys.modules if name.split('.')[0] in ('muster', '_muster_native')), hasattr(torch.distributed.Backend, 'MUSTER'))"
    text = outputs(loaded)
    assert text == f"[] {finds_backends}", text


def test_processes_that_the_ranks_start():
    """Their world is not muster's: they find each other by the store alone."""
    if rank != 0:
        return  # one rank's are enough
    text = outputs(
        """
import os, socket, subprocess, sys
if len(sys.argv) == 1:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [subprocess.Popen([sys.executable, __file__, str(rank), str(port)]) for rank in range(3)]
    print("right" if [one.wait() for one in started] == [0, 0, 0] else "wrong")
else:
    import torch, torch.distributed as dist
    import muster.distributed
    dist.init_process_group("muster", init_method=f"tcp://127.0.0.1:{sys.argv[2]}", rank=int(sys.argv[1]), world_size=3)
    tensor = torch.tensor([float(sys.argv[1])])
    dist.all_reduce(tensor)
    assert tensor == 3
    dist.destroy_process_group()
"""
    )
    assert text == "right", text


def test_several_backends():
    if torch.__version__.startswith("1."):
        return  # one backend a group
    for config in ("cpu:muster", "cpu:gloo,cuda:muster", "cpu:muster,cuda:gloo"):
        text = outputs(
            f"""
import torch, torch.distributed as dist
dist.init_process_group({config!r})
tensor = torch.ones(3)
dist.all_reduce(tensor)
assert (tensor == {size}).all()
group = dist.distributed_c10d._get_default_group()
other = dist.new_group([0, 1], backend="gloo")
dist.all_reduce(tensor, group=other)
dist.barrier()
print(type(group).__name__, sorted(v for v in (getattr(group, "_others", None) or {{}}) if not isinstance(group._others[v], str)))
dist.destroy_process_group()
"""
        )
        assert text == "MusterProcessGroup " + ("['cpu']" if "cpu:gloo" in config else "[]"), text


check.run(globals())
