"""A training that recovers: prints a digest of all that it has learned, and of each step's loss.

Options as NAME=VALUE: epochs, rows, pause (seconds in each step), slow (the same, of rank 1 alone), limit
(seconds of a call), workers (of the loader). Who is to be hurt when: hurt=RANK:STEP:HOW, in the first life of
that rank, several with a comma. look=graph, look=plain: evaluates at the end of a step, with and without a
graph, and begins steps with a backward pass under no_sync(). static=1: of a static graph.
"""

import hashlib
import os
import random
import signal
import sys
import time
from datetime import timedelta

import muster.torch
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

OPTIONS = dict(word.split("=", 1) for word in sys.argv[1:])
RANK = int(os.environ["RANK"])
LIFE = int(os.environ.get("MUSTER_RESTART_COUNT") or 0)


def option(name: str, default: str) -> str:
    return OPTIONS.get(name, default)


def hurts() -> dict[tuple[int, str], str]:
    """By step and place: how this rank is hurt in this life."""
    found = {}
    for word in option("hurt", "").split(",") if option("hurt", "") else []:
        rank, life, step, place, how = word.split(":")
        if (int(rank), int(life)) == (RANK, LIFE):
            found[int(step), place] = how
    return found


HURTS = hurts()


def hurt(step: int, place: str) -> None:
    how = HURTS.pop((step, place), None)  # once: a step may be made again
    if how is not None:
        print(f"rank {RANK} is hurt at {time.time():.3f}", flush=True)
        os.kill(os.getpid(), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[how])


def model() -> nn.Module:
    return nn.Sequential(
        nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 32), nn.Linear(32, 4)
    )


class Noisy(TensorDataset):
    """Rows that are moved by all generators, as transforms of images are."""

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x + 0.01 * torch.randn(16) + 0.01 * random.random(), y


class Average:
    """State of the script's own."""

    def __init__(self) -> None:
        self.value = torch.zeros(4, 32)

    def update(self, weight: torch.Tensor) -> None:
        self.value = 0.9 * self.value + 0.1 * weight.detach()

    def state_dict(self) -> dict:
        return {"value": self.value}

    def load_state_dict(self, state: dict) -> None:
        self.value = state["value"]


def digest(*tensors: torch.Tensor) -> str:
    summed = hashlib.sha256()
    for tensor in tensors:
        summed.update(bytes(tensor.detach().flatten().contiguous().view(torch.uint8).tolist()))
    return summed.hexdigest()[:16]


def look(net: nn.Module, x: torch.Tensor) -> None:
    """An evaluation in the middle of training, without a backward pass."""
    net.eval()
    with torch.set_grad_enabled(option("look", "") == "graph"):
        net(x)
    net.train()


def main() -> None:
    print(f"rank {RANK} is process {os.getpid()}", flush=True)
    hurt(-1, "import")
    torch.set_num_threads(1)
    dist.init_process_group("muster", timeout=timedelta(seconds=float(option("limit", "60"))))
    torch.manual_seed(7)
    net = DistributedDataParallel(model(), static_graph=bool(option("static", "")))
    torch.manual_seed(100 + RANK)
    random.seed(RANK)
    rows = Noisy(torch.rand(int(option("rows", "64")), 16), torch.randint(0, 4, (int(option("rows", "64")),)))
    loader = DataLoader(
        rows, 4, sampler=DistributedSampler(rows, seed=3), num_workers=int(option("workers", "0"))
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.9)
    average = Average()
    steps = muster.torch.recoverable(
        net,
        optimizer,
        loader,
        int(option("epochs", "2")),
        lr_scheduler=scheduler,
        states={"average": average},
        save_steps=int(option("save", "100")),
    )
    hurt(0, "before")
    for epoch, step, (x, y) in steps:
        total = epoch * len(loader) + step
        hurt(total, "begin")
        time.sleep(float(option("pause", "0")))
        optimizer.zero_grad()
        if option("look", ""):
            with net.no_sync():
                nn.functional.cross_entropy(net(x), y).backward()
        loss = nn.functional.cross_entropy(net(x), y)
        hurt(total, "forward")
        time.sleep(float(option("slow", "0")) * RANK)
        loss.backward()
        optimizer.step()
        scheduler.step()
        if option("lonely", "") and RANK == 1:
            dist.all_reduce(torch.zeros(3))
        average.update(net.module[5].weight)
        hurt(total, "update")
        summed = loss.detach().clone()
        dist.all_reduce(summed)
        if option("look", "") and step == 2:
            look(net, x)
        hurt(total, "end")
        if not steps.is_aborted:
            print(
                f"rank {RANK} epoch {epoch} step {step} loss {summed.item():.9f} at {time.time():.3f}",
                flush=True,
            )
    hurt(-1, "after")
    kept = [value for state in optimizer.state.values() for value in state.values()]
    print(
        f"rank {RANK} end {digest(*net.parameters(), *net.buffers(), *kept, average.value, torch.rand(2))}"
        f" rate {scheduler.get_last_lr()[0]:.6f}",
        flush=True,
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
