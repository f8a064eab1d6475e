"""DistributedDataParallel on the CPU, with the backend that you name: a small classifier of made-up clusters.

    muster run -n 2 examples/pytorch_ddp.py --backend muster
    torchrun --nproc-per-node 2 examples/pytorch_ddp.py --backend gloo

Each rank draws its own samples, and both backends give the same losses. docs/guide/pytorch.md tells about it.
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CLASSES, FEATURES, BATCH = 10, 64, 128


def samples(centres: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch of points, each near the centre of its class."""
    labels = torch.randint(CLASSES, (BATCH,), generator=generator)
    return centres[labels] + torch.randn(BATCH, FEATURES, generator=generator), labels


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, CLASSES))


def train(steps: int) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    centres = torch.randn(CLASSES, FEATURES)
    net = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    started = time.perf_counter()
    for step in range(1, steps + 1):
        x, labels = samples(centres, generator)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, op=dist.ReduceOp.SUM)
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {mean.item() / size:.6f}", flush=True)
    milliseconds = (time.perf_counter() - started) / steps * 1e3
    print(f"rank {rank} of {size}: {milliseconds:.2f} ms a step with {dist.get_backend()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="muster", help="muster, gloo, or another of torch.distributed")
    parser.add_argument("--steps", type=int, default=50)
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(wanted.backend)
    train(wanted.steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
