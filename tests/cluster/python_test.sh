# timeout: 300
# The Python package over the nodes of a job: Horovod's calls, process sets, mpi4py's communicators, torch.distributed with groups of ranks on several nodes, messages, DDP, a rank that is lost.
. "$(dirname "$0")/cluster_lib.sh"
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip 'no torch for /usr/bin/python3'
start_cluster 2 2
cmake --install "$MUSTER_BIN/.." --prefix "$work/prefix" --component launcher >/dev/null && cmake --install "$MUSTER_BIN/.." --prefix "$work/prefix" --component libraries >/dev/null &&
    cmake --install "$MUSTER_BIN/.." --prefix "$work/prefix" --component python >/dev/null || exit 1
chmod -R a+rX "$work/prefix"
[ -d "$work/prefix/lib/muster/python" ] || skip 'no Python package was built'

cat >"$work/horovod.py" <<'PY'
import os, sys
import torch
import muster.torch as hvd

hvd.init(process_sets="dynamic")
rank = hvd.rank()
assert (hvd.size(), hvd.local_size(), hvd.cross_size(), hvd.is_homogeneous()) == (4, 2, 2, True)
assert hvd.allreduce(torch.tensor([float(rank)]), op=hvd.Sum).item() == 6
assert hvd.allgather(torch.full((rank, 2), rank)).shape == (6, 2)
ends = hvd.add_process_set([0, 3])
if ends.included():
    assert hvd.allreduce(torch.tensor([rank]), op=hvd.Sum, process_set=ends).item() == 3
torch.manual_seed(rank)
model = torch.nn.Linear(8, 4)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
weights = hvd.allgather(model.weight.detach().reshape(1, -1))
assert all(torch.equal(weights[0], other) for other in weights)
print("rank", rank, "well", hvd.mpi_enabled())
if len(sys.argv) > 1 and rank == 3:
    os.kill(os.getpid(), 9)
hvd.allreduce(torch.zeros(1), name="after")
PY

cat >"$work/groups.py" <<'PY'
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import muster.torch

dist.init_process_group("muster")
rank = dist.get_rank()
ends = dist.new_group([0, 3])
odd = dist.new_group([1, 3])
if rank in (0, 3):
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=ends)
    assert tensor.item() == 3
    tensor = torch.tensor([float(rank)])
    dist.broadcast(tensor, 3, group=ends)
    assert tensor.item() == 3
    dist.barrier(group=ends)
if rank in (1, 3):
    both = [None, None]
    dist.all_gather_object(both, {"rank": rank}, group=odd)
    assert both == [{"rank": 1}, {"rank": 3}]
if rank == 0:
    dist.send(torch.arange(5), 3)
if rank == 3:
    got = torch.zeros(5, dtype=torch.int64)
    dist.recv(got, 0)
    assert got.tolist() == [0, 1, 2, 3, 4]
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(8, 4))
for step in range(3):
    model(torch.randn(4, 8)).square().mean().backward()
weights = [torch.zeros_like(model.module.weight.grad) for _ in range(4)]
dist.all_gather(weights, model.module.weight.grad)
assert all(torch.equal(weights[0], other) for other in weights)
dist.destroy_process_group()
print("rank", rank, "well")
PY

cat >"$work/split.py" <<'PY'
from mpi4py import MPI
import torch
import muster.torch as hvd

world = MPI.COMM_WORLD
rank = world.Get_rank()
across = world.Split(rank % 2, rank)  # a rank of each node
total = sum(range(rank % 2, 4, 2))
ends = hvd.ProcessSet(across)
hvd.init(comm=world, process_sets=[ends])
assert ends.ranks == [rank % 2, rank % 2 + 2] and hvd.size() == 4
assert hvd.allreduce(torch.tensor([float(rank)]), op=hvd.Sum, process_set=ends).item() == total
hvd.shutdown()
for comm in (across, world.Split(rank // 2, rank), world.Split(0, -rank)):  # over the nodes, within one, all in another order
    hvd.init(comm=comm)
    assert (hvd.rank(), hvd.size()) == (comm.Get_rank(), comm.Get_size())
    assert hvd.allgather(torch.tensor([rank])).tolist() == comm.allgather(rank)
    hvd.shutdown()
print("rank", rank, "well")
PY

allocate -N2 --ntasks-per-node=2
longest_s=120 # four ranks that import PyTorch, on cores that are busy
run() { inside prefix/bin/muster run --timeout 100s "$@"; }
expect_exit 0 run -- /usr/bin/python3 horovod.py
expect_equal "$(sort "$OUT")" "$(for r in 0 1 2 3; do echo "rank $r well True"; done)" 'what ranks said'
expect_exit 0 run -- /usr/bin/python3 groups.py
expect_equal "$(sort "$OUT")" "$(for r in 0 1 2 3; do echo "rank $r well"; done)" 'what ranks said'
if /usr/bin/python3 -c 'import mpi4py' 2>/dev/null; then
    expect_exit 0 run -- /usr/bin/python3 split.py
    expect_equal "$(sort "$OUT")" "$(for r in 0 1 2 3; do echo "rank $r well"; done)" 'what ranks said'
fi
expect_exit 137 run -- /usr/bin/python3 horovod.py lost
expect_matches stderr 'muster: error: rank 3 on node2 was killed by signal 9'
release
spared=': file /tmp/tmp[a-z0-9_]{8}(/|$)' # PyTorch's own, of ranks that were killed
expect_nothing_left
