"""Training steps on images under PyTorch: ResNet-50 (224 by 224) and LeNet-5, as bench_engine runs them.

torch_engine.py resnet50|lenet BATCH THREADS STEPS [channels_last] [bfloat16]: one line of JSON.
"""

import json
import resource
import sys
import time

import torch
from torch import nn

name, batch, threads, steps = sys.argv[1], *map(int, sys.argv[2:5])
settings = sys.argv[5:]
torch.set_num_threads(threads)
torch.manual_seed(1)


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


order = torch.channels_last if "channels_last" in settings else torch.contiguous_format
net = (lenet() if name == "lenet" else resnet50()).to(memory_format=order)
shape = (batch, 1, 32, 32) if name == "lenet" else (batch, 3, 224, 224)
images, labels = torch.randn(shape).to(memory_format=order), torch.arange(batch) % 10
loss_fn, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), 0.01, 0.9)


def step():
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled="bfloat16" in settings):
        loss = loss_fn(net(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


losses, seconds = [], []
warm = 50 if name == "lenet" else 2
for index in range(warm + steps):
    begin = time.perf_counter()
    losses.append(step())
    if index >= warm:
        seconds.append(time.perf_counter() - begin)
peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
right = losses[-1] < losses[0]
print(
    json.dumps(
        {"seconds": seconds, "peak_bytes": peak_bytes, "losses": [losses[0], losses[-1]], "right": right}
    )
)
