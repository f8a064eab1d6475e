"""PyTorch's jobs whose ranks are forked from a process that has imported it (`muster run --preload`)."""

import pytest
from peers import ROOT, needs, run

pytestmark = needs("TORCH")
PRELOAD = ("--preload", "torch,torch._dynamo")
TRAINS = """
import os, sys
import torch
import torch.distributed as dist
from torch import nn
assert torch.get_num_threads() == 1, torch.get_num_threads()
drawn = torch.rand(1).item()
dist.init_process_group(sys.argv[1])
torch.manual_seed(0)
net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(5):
    x = torch.rand(16, 8)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
compiled = torch.compile(lambda x: x * 2 + 1, backend="eager")
whole = dist.get_rank() == 0 and compiled(torch.ones(3)).sum().item()
batches = torch.utils.data.DataLoader(torch.arange(4.0), num_workers=1)
print(f"rank {dist.get_rank()} loss {loss.item().hex()} {whole} {sum(batches).item()} drawn {drawn.hex()}")
dist.destroy_process_group()
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", ["gloo", "muster"])
def test_ranks_train_as_with_imports_of_their_own(tmp_path, backend):
    (tmp_path / "train.py").write_text(TRAINS)
    logs = ("--log-dir", str(tmp_path / "logs"))
    lines = []
    for flags in ((), PRELOAD):
        done = run(
            "TORCH",
            str(tmp_path / "train.py"),
            *("-n", "2", *logs, *flags),
            arguments=(backend,),
            PYTHONPATH=str(ROOT / "build/python"),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found = sorted(line for line in done.stdout.splitlines() if " loss " in line)
        assert len({line.split(" drawn ")[1] for line in found}) == 2  # each rank begins elsewhere
        lines.append([line.split(" drawn ")[0] for line in found])
    assert lines[0] == lines[1]
    assert len(lines[0]) == 2
