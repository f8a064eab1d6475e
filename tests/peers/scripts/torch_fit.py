"""A line is fitted by DistributedDataParallel: each rank has its own points, all get the same line."""

import torch
import torch.distributed as dist
from torch import nn


def fit(rank: int) -> None:
    torch.manual_seed(rank)
    x = torch.rand(64, 1)
    y = 3 * x + 1
    torch.manual_seed(0)
    net = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    for _ in range(200):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    weight, bias = net.module.weight.item(), net.module.bias.item()
    size = dist.get_world_size()
    print(f"rank {rank} of {size}: weight {weight:.6f} bias {bias:.6f}", flush=True)
