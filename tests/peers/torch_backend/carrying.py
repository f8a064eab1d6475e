"""A truncated backpropagation through time that recovers: each step begins with the hidden state of the last.

carrying.py HABIT [hurt=RANK:STEP,...]: HABIT says where that state lies. Prints a digest of what was learned.
"""

import hashlib
import os
import signal
import sys

import muster.torch
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

HABIT = sys.argv[1]
HURT = sys.argv[2].removeprefix("hurt=").split(",") if len(sys.argv) > 2 else []
RANK = int(os.environ["RANK"])
STEPS = 12


class Net(nn.Module):
    """Keeps its hidden state itself, as some scripts write it, and a mask that its first pass makes."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 8), nn.Linear(8, 1)
        self.hidden, self.mask, self.shown = None, None, None

    def forward(self, x: torch.Tensor, hidden=None) -> tuple:
        if self.mask is None:
            self.mask = torch.linspace(0, 1, 8)
        if HABIT == "attribute":
            out, self.hidden = self.lstm(x, self.hidden)
            self.hidden = detached(self.hidden)
        else:
            out, hidden = self.lstm(x, hidden)
        self.shown = out.detach()
        return self.head(self.shown.mean() + out * self.mask), hidden


class Kept:
    """What a step leaves for the next one."""

    value = None

    def state_dict(self) -> dict:
        return {"value": self.value}

    def load_state_dict(self, state: dict) -> None:
        self.value = state["value"]


def detached(hidden):
    return None if hidden is None else tuple(each.detach() for each in hidden)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("muster")
    torch.manual_seed(7)
    net = DistributedDataParallel(Net())
    optimizer = torch.optim.Adam(net.parameters(), 0.05)
    rows = torch.randn(STEPS, 5, 3, 4, generator=torch.Generator().manual_seed(RANK))
    own, hidden, outer = Kept(), None, []
    weights, parameters = torch.ones(5, 3, 1), list(net.parameters())
    average = torch.zeros(5, 3, 1)
    named = {"own_states": {"hidden": own}} if HABIT == "own" else {}
    for _, step, x in muster.torch.recoverable(net, optimizer, rows, save_steps=2, **named):
        if HABIT == "own" and step % 6 == 0:
            own.value = None  # where a text begins
        if HABIT == "carried":
            given = hidden
        elif HABIT == "list":
            given = tuple(outer) or None
        else:
            given = own.value
        optimizer.zero_grad()
        out, after = net(x, given)
        loss = ((out - x.mean(2, keepdim=True)) * weights).pow(2).mean()
        loss.backward()
        if f"{RANK}:{step}" in HURT and not int(os.environ.get("MUSTER_RESTART_COUNT") or 0):
            print("is hurt", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if HABIT == "carried":
            hidden = detached(after)
        elif HABIT == "list":
            outer[:] = detached(after)
        else:
            own.value = detached(after) if HABIT == "own" else None
        if HABIT == "in-place":
            average.mul_(0.5).add_(out.detach())
    kept = [value for state in optimizer.state.values() for value in state.values()]
    flat = torch.cat([each.detach().flatten() for each in (*net.parameters(), *kept)])
    digest = hashlib.sha256(bytes(flat.view(torch.uint8).tolist())).hexdigest()[:16]
    print(f"rank {RANK} end {digest}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
