"""Training steps on images under PyTorch: ResNet-50 (224 by 224) and LeNet-5, as bench_engine runs them.

torch_engine.py resnet50|lenet BATCH THREADS STEPS [channels_last] [bfloat16]: one line of JSON.
"""

import json
import resource
import sys
import time

import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        out = channels * 4
        self.path = nn.Sequential(
            *norm(channels_in, channels, 1), nn.ReLU(), *norm(channels, channels, 3, stride), nn.ReLU(),
            *norm(channels, out, 1),
        )  # fmt: skip
        same = stride == 1 and channels_in == out
        self.shortcut = nn.Identity() if same else nn.Sequential(*norm(channels_in, out, 1, stride))

    def forward(self, x):
        return torch.relu(self.path(x) + self.shortcut(x))


def norm(channels_in, channels, kernel, stride=1):
    conv = nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, bias=False)
    return conv, nn.BatchNorm2d(channels)


def resnet50():
    layers = [*norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels_in = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        channels = 64 << stage
        for block in range(blocks):
            layers.append(Bottleneck(channels_in, channels, 2 if block == 0 and stage > 0 else 1))
            channels_in = channels * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 10))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, bias=False), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5, bias=False), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


class Training:
    """A net that learns one batch, wrapped by `wrap` (DistributedDataParallel) or not."""

    def __init__(self, name, batch, settings, wrap=lambda net: net):
        torch.manual_seed(1)
        order = torch.channels_last if "channels_last" in settings else torch.contiguous_format
        self.net = wrap((lenet() if name == "lenet" else resnet50()).to(memory_format=order))
        shape = (batch, 1, 32, 32) if name == "lenet" else (batch, 3, 224, 224)
        self.images, self.labels = torch.randn(shape).to(memory_format=order), torch.arange(batch) % 10
        self.loss_fn = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.01, 0.9)
        self.autocast = "bfloat16" in settings
        self.losses = []

    def step(self):
        """How long the next step takes."""
        begin = time.perf_counter()
        self.optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            loss = self.loss_fn(self.net(self.images), self.labels)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())
        return time.perf_counter() - begin

    def is_right(self):
        return self.losses[-1] < self.losses[0]


def main():
    name, batch, threads, steps = sys.argv[1], *map(int, sys.argv[2:5])
    torch.set_num_threads(threads)
    training = Training(name, batch, sys.argv[5:])
    for _ in range(50 if name == "lenet" else 2):
        training.step()
    seconds = [training.step() for _ in range(steps)]
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes, "right": training.is_right()}))


if __name__ == "__main__":
    main()
