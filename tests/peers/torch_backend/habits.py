"""A training that recovers, with a habit that scripts have: prints a digest of all that it has learned.

habits.py HABIT [hurt=RANK:EPOCH:STEP:PLACE,...]: who is killed when, in the first life of that rank.
"""

import hashlib
import os
import random
import signal
import sys

import muster.torch
import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, Sampler, Subset

HABIT = sys.argv[1]
HURTS = {word for word in sys.argv[-1].removeprefix("hurt=").split(",") if len(sys.argv) > 2}
RANK = int(os.environ["RANK"])
LIFE = int(os.environ.get("MUSTER_RESTART_COUNT") or 0)
EPOCHS = 3


def hurt(epoch: int, step: int, place: str) -> None:
    if LIFE == 0 and f"{RANK}:{epoch}:{step}:{place}" in HURTS:
        print(f"rank {RANK} is hurt", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


class Rows(Dataset):
    """Moved by the generators of whoever reads them, as transforms of images are."""

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> tuple:
        row = torch.full((8,), index / 32) + 0.1 * torch.randn(8) + 0.1 * random.random()
        return row, row[:4].sin()


class NoisyRows(Rows):
    """Moved by generators of its own."""

    def __init__(self) -> None:
        self.numbers, self.choices = numpy.random.default_rng(RANK), random.Random(RANK)
        self.noise, self.older = torch.Generator().manual_seed(RANK), numpy.random.RandomState(RANK)

    def __getitem__(self, index: int) -> tuple:
        moved = self.numbers.normal() + self.choices.random() + self.older.normal()
        row = torch.full((8,), index / 32) + 0.1 * torch.randn(8, generator=self.noise) + 0.1 * moved
        return row, row[:4].sin()


class Shuffled(Sampler):
    """By numpy."""

    def __init__(self, rows: Dataset) -> None:
        self.rows, self.order = rows, numpy.random.default_rng(RANK)

    def __len__(self) -> int:
        return len(self.rows) // 2

    def __iter__(self):
        return iter(self.order.permutation(len(self.rows))[: len(self)].tolist())


class Stream(IterableDataset):
    """Rows that nobody has counted, drawn so many before their turn."""

    def __init__(self, rows: Dataset, early: int) -> None:
        self.rows, self.early = rows, early

    def __iter__(self):
        waiting = []
        for index in range(len(self.rows)):
            waiting.append(self.rows[index])
            if len(waiting) > self.early:
                yield waiting.pop(0)
        yield from waiting


class InTurn:
    """Batches of two loaders, as scripts that mix data write it."""

    def __init__(self, *loaders: DataLoader) -> None:
        self.loaders = loaders

    def __iter__(self):
        for batches in zip(*self.loaders, strict=False):
            yield from batches


class RunningMean(nn.Module):
    """Its buffer is a new tensor in each pass."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return x - self.mean


class Cooling(nn.Module):
    """Gives less in each pass."""

    scale = 1.0

    def get_extra_state(self) -> dict:
        return {"scale": self.scale}

    def set_extra_state(self, state: dict) -> None:
        self.scale = state["scale"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.scale *= 0.9
        return self.scale * x


class WideSgd(torch.optim.Optimizer):
    """Keeps parameters of 16 bits in 32."""

    def __init__(self, parameters) -> None:
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self) -> None:
        for parameter in self.param_groups[0]["params"]:
            wide = self.state[parameter].setdefault("wide", parameter.float())
            parameter.copy_(wide.sub_(0.01 * parameter.grad.float()))


class Kept:
    """A value of the script's own."""

    value = 0.0

    def state_dict(self) -> dict:
        return {"value": self.value}

    def load_state_dict(self, state: dict) -> None:
        self.value = state["value"]


class Shadow:
    """Averages of weights as scripts write them by hand."""

    def __init__(self, net: nn.Module) -> None:
        self.shadow = {name: value.detach().clone() for name, value in net.named_parameters()}

    def update(self, net: nn.Module) -> None:
        for name, value in net.named_parameters():
            self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * value.detach()

    def state_dict(self) -> dict:
        return {"shadow": self.shadow}

    def load_state_dict(self, state: dict) -> None:
        self.shadow = state["shadow"]


def loader() -> DataLoader:
    rows = Rows()
    if HABIT == "generators":
        return DataLoader(rows, 4, shuffle=True, generator=torch.Generator().manual_seed(RANK))
    if HABIT == "own-generators":
        noisy = Subset(NoisyRows(), range(32))
        return DataLoader(noisy, 4, sampler=Shuffled(noisy))
    if "stream" in HABIT:
        return DataLoader(Stream(rows, 6 if HABIT == "early-stream" else 0), 4)
    if HABIT == "two-loaders":
        own = torch.Generator().manual_seed(RANK)
        first = DataLoader(rows, 4, shuffle=True, generator=own, num_workers=1, persistent_workers=True)
        return InTurn(first, DataLoader(rows, 4, sampler=DistributedSampler(rows)))
    workers = {"num_workers": 1, "persistent_workers": True} if HABIT == "persistent-workers" else {}
    return DataLoader(rows, 4, sampler=DistributedSampler(rows, seed=3), **workers)


def begin_to_learn(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Once, in the middle of training: the last layer, and another one learns no statistics any more."""
    net.module[1].eval()
    optimizer.add_param_group({"params": list(net.module[-1].parameters()), "lr": 0.02})


def rate_of_all(optimizer: torch.optim.Optimizer, loss: float) -> None:
    """Decided by rank 0, from what all say."""
    said = [None] * dist.get_world_size()
    dist.all_gather_object(said, {"rank": RANK, "loss": loss})
    rate = 0.001 + sum(each["loss"] for each in said) / 100
    decided = [{"rate": rate} if RANK == 0 else {}]
    dist.broadcast_object_list(decided)
    mine = [{}]
    dist.scatter_object_list(mine, [{"rank": rank} for rank in range(len(said))] if RANK == 0 else None)
    optimizer.param_groups[0]["lr"] = (decided[0] or {}).get("rate", 0.0)


def exchange_by_sizes() -> None:
    """Rows whose number the other rank has said before; -1 stands for what torch.empty() may hold."""
    size, other = torch.tensor([-1]), 1 - RANK
    works = [dist.isend(torch.tensor([2 + RANK]), other), dist.irecv(size, other)]
    for work in works:
        work.wait()
    counts = torch.full((2,), -1)
    dist.all_to_all_single(counts, torch.tensor([1, 2]))
    gathered = [torch.full((1,), -1) for _ in range(2)]
    dist.gather(size, gathered if RANK == 0 else None)
    torch.zeros(size.item(), *counts.tolist(), *[each.item() for each in gathered if RANK == 0])


def digest(*values) -> str:
    summed = hashlib.sha256()
    for value in values:
        flat = value.detach().flatten().contiguous() if isinstance(value, torch.Tensor) else None
        summed.update(repr(value).encode() if flat is None else bytes(flat.view(torch.uint8).tolist()))
    return summed.hexdigest()[:16]


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("muster")
    torch.manual_seed(7)
    random.seed(RANK)
    kinds = {"buffers": RunningMean, "extra-state": Cooling, "stream": nn.Dropout, "early-stream": nn.Dropout}
    first = kinds.get(HABIT, nn.Identity)()
    model = nn.Sequential(first, nn.BatchNorm1d(8), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    dtype = torch.bfloat16 if HABIT == "wide" else torch.float32
    net = DistributedDataParallel(model.to(dtype))
    learning = list(net.parameters())[:-2] if HABIT == "later" else list(net.parameters())
    optimizer = WideSgd(learning) if HABIT == "wide" else torch.optim.Adam(learning, 0.01)
    noise, own, mean = torch.Generator().manual_seed(RANK), Kept(), Kept()
    average, shadow = torch.optim.swa_utils.AveragedModel(model), Shadow(net)
    states = {"generators": {"noise": noise}, "own-losses": {"losses": own}, "numpy": {"losses": mean}}
    states["averages"] = {"average": average, "shadow": shadow}
    critic = nn.Linear(4, 1)
    others = torch.optim.SGD(critic.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, enabled=HABIT == "unnamed")
    rates = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9) if HABIT == "unnamed" else None
    steps = muster.torch.recoverable(net, optimizer, loader(), EPOCHS, states=states.get(HABIT))
    for epoch, step, (x, y) in steps:
        if HABIT == "later" and (epoch, step) == (1, 0):
            begin_to_learn(net, optimizer)
        if HABIT == "generators":
            x = x + 0.1 * torch.randn(x.shape, generator=noise)
        is_last_of_sum = HABIT != "sums" or step % 2 == 1
        if HABIT != "sums" or step % 2 == 0:
            optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x.to(dtype)), y.to(dtype))
        scaler.scale(loss).backward()
        hurt(epoch, step, "update")
        if HABIT == "sizes":
            exchange_by_sizes()
        if is_last_of_sum:
            scaler.step(optimizer)
            scaler.update()
        if rates is not None:
            rates.step()
        if "averages" in HABIT:
            average.update_parameters(model)
            for buffer in average.buffers():
                dist.broadcast(buffer, 0)
            shadow.update(net)
        if HABIT == "untold-averages":
            critic(y).sum().backward()
            others.step()
        own.value += loss.item()
        summed = loss.detach().float()
        dist.all_reduce(summed)
        mean.value = numpy.mean([mean.value, summed.item()])
        if HABIT == "objects":
            rate_of_all(optimizer, summed.item())
        ranks = torch.ones(1)
        dist.all_reduce(ranks)
        if HABIT == "stops" and ((epoch, step) == (2, 1) or ranks.item() != dist.get_world_size()):
            steps.stop()
    kept = [value for state in optimizer.state.values() for value in state.values()]
    rates = [group.get("lr") for group in optimizer.param_groups]
    learned = [*net.parameters(), *net.buffers(), *kept]
    learned += [float(mean.value)] if HABIT == "numpy" else []
    learned += [*average.parameters(), *shadow.shadow.values()]
    print(f"rank {RANK} end {digest(*learned, rates, torch.rand(2))} in epoch {epoch}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
