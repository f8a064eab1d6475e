"""Training steps on images under MindSpore: ResNet-50 (224 by 224) and LeNet-5, as bench_engine runs them.

mindspore_engine.py resnet50|lenet BATCH THREADS STEPS: one line of JSON.
"""

import json
import os
import resource
import sys
import time

name, batch, threads, steps = sys.argv[1], *map(int, sys.argv[2:5])
os.environ["OMP_NUM_THREADS"] = str(threads)

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import nn  # noqa: E402

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", runtime_num_threads=threads)
ms.set_seed(1)


def norm(channels_in, channels, kernel, stride=1):
    settings = {"pad_mode": "pad", "padding": kernel // 2, "has_bias": False}
    return nn.Conv2d(channels_in, channels, kernel, stride, **settings), nn.BatchNorm2d(channels)


class Bottleneck(nn.Cell):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        out = channels * 4
        self.path = nn.SequentialCell(
            *norm(channels_in, channels, 1), nn.ReLU(), *norm(channels, channels, 3, stride), nn.ReLU(),
            *norm(channels, out, 1),
        )  # fmt: skip
        same = stride == 1 and channels_in == out
        self.shortcut = nn.Identity() if same else nn.SequentialCell(*norm(channels_in, out, 1, stride))
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.path(x) + self.shortcut(x))


def resnet50():
    layers = [*norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, pad_mode="same")]
    channels_in = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        channels = 64 << stage
        for block in range(blocks):
            layers.append(Bottleneck(channels_in, channels, 2 if block == 0 and stage > 0 else 1))
            channels_in = channels * 4
    return nn.SequentialCell(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(2048, 10))


def lenet():
    return nn.SequentialCell(
        nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10),
    )  # fmt: skip


net = lenet() if name == "lenet" else resnet50()
shape = (batch, 1, 32, 32) if name == "lenet" else (batch, 3, 224, 224)
images = ms.Tensor(np.random.default_rng(1).standard_normal(shape, np.float32))
labels = ms.Tensor((np.arange(batch) % 10).astype(np.int32))
step = nn.TrainOneStepCell(
    nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.01, 0.9)
)
step.set_train()
losses, seconds = [], []
warm = 50 if name == "lenet" else 2
for index in range(warm + steps):
    begin = time.perf_counter()
    losses.append(float(step(images, labels).asnumpy()))
    if index >= warm:
        seconds.append(time.perf_counter() - begin)
peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
right = losses[-1] < losses[0]
print(
    json.dumps(
        {"seconds": seconds, "peak_bytes": peak_bytes, "losses": [losses[0], losses[-1]], "right": right}
    )
)
