"""What torch.distributed costs over a backend, on ranks that share this host's cores.

RANK=... WORLD_SIZE=... MASTER_ADDR=... MASTER_PORT=... torch_backend.py gloo|muster|alone PART

Rank 0 prints one line of JSON: seconds of a call or of a step (the median; `start` gives none: whoever
started the ranks has timed them). `alone` trains without a group.
"""

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch_engine import resnet50

CALLS = {"gloo": 200, "muster": 4000}


def median(step, warm: int, counted: int) -> float:
    for _ in range(warm):
        step()
    taken = []
    for _ in range(counted):
        begin = time.perf_counter()
        step()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def all_reduce(backend: str) -> float:
    """1 KiB. The mean, since calls overlap: a rank may leave one call before the others do."""
    values = torch.zeros(256)
    for _ in range(20):
        dist.all_reduce(values)
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(CALLS[backend]):
        dist.all_reduce(values)
    return (time.perf_counter() - begin) / CALLS[backend]


def training(net: nn.Module, backend: str, x, y, loss_fn):
    if backend != "alone":
        net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)

    def step() -> None:
        optimizer.zero_grad()
        loss_fn(net(x), y).backward()
        optimizer.step()

    return step


def small(backend: str):
    net = nn.Sequential(nn.Linear(784, 10), nn.ReLU())
    return training(net, backend, torch.randn(32, 784), torch.randint(10, (32,)), nn.CrossEntropyLoss())


def resnet(backend: str):
    images = torch.randn(8, 3, 224, 224).contiguous(memory_format=torch.channels_last)
    net = resnet50().to(memory_format=torch.channels_last)
    return training(net, backend, images, torch.randint(10, (8,)), nn.CrossEntropyLoss())


def fsdp(_: str):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    width, depth = 512, 8
    layer = {"nhead": 8, "dim_feedforward": 4 * width, "dropout": 0.0, "batch_first": True}
    blocks = [nn.TransformerEncoderLayer(width, **layer) for _ in range(depth)]
    net = nn.Sequential(*blocks)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(net, mesh=mesh)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4)
    x = torch.randn(2, 32, width)

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return step


def main(backend: str, part: str) -> None:
    torch.set_num_threads(1)
    if backend != "alone":
        dist.init_process_group(backend)
    torch.manual_seed(0)
    taken = None
    if part == "all_reduce":
        taken = all_reduce(backend)
    elif part == "start":
        small(backend)()
    else:
        warm, counted = {"small": (20, 200), "resnet": (1, 5), "fsdp": (3, 15)}[part]
        taken = median(globals()[part](backend), warm, counted)
    if backend == "alone" or dist.get_rank() == 0:
        print(json.dumps({"seconds": taken}), flush=True)
    if backend != "alone":
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
