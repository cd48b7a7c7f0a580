# timeout: 120
# A script written for torchrun comes up as it stands: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are where PyTorch looks for them.
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
$python -c 'import torch.distributed as d; assert d.is_available()' 2>/dev/null || skip "no python3-torch"
cat >train.py <<'PY'
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
assert rank == int(os.environ["LOCAL_RANK"])
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimiser.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimiser.step()
weights = [torch.zeros(4) for _ in range(size)]
dist.all_gather(weights, model.module.weight.detach()[0])
assert all(torch.equal(w, weights[0]) for w in weights)
print(f"rank {rank} of {size}")
dist.destroy_process_group()
PY
for n in 1 2 4; do
    expect_exit 0 "$MUSTER" run -q -n $n --timeout 60s -- $python train.py
    expect_equal "$(grep -c "^rank [0-9] of $n\$" "$OUT")" $n "ranks in a world of $n"
done
