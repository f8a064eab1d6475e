"""A training of equal layers, the first half of them on worker 0 and the others on worker 1, for pipeline.py.

WIDTH: neurons of each layer. STEPS: in all. MICRO_BATCHES: into which each batch is split.
"""

import itertools
import os
import statistics
import time

import numpy
from muster.dataset import NumpySlicesDataset

import muster
from muster import nn, train

WIDTH, STEPS, MICRO_BATCHES = (int(os.environ[name]) for name in ("WIDTH", "STEPS", "MICRO_BATCHES"))
LAYERS, BATCH, WARM_UP = 8, 1024, 3


class Times(train.Callback):
    """Each step's loss, and how long it took."""

    def __init__(self):
        super().__init__()
        self.ends = []

    def on_train_step_end(self, run_context):
        loss = float(run_context.net_outputs.asnumpy())
        self.ends.append(time.perf_counter())
        print(f"rank {muster.get_rank()} loss {loss.hex()}", flush=True)


def main():
    muster.init()
    muster.set_seed(1)
    layers = [nn.Dense(WIDTH, WIDTH) for _ in range(LAYERS)]
    for index, layer in enumerate(layers):
        layer.place("MS_WORKER", 2 * index // LAYERS)
    net = nn.SequentialCell(*(cell for layer in layers for cell in (layer, nn.Tanh())))
    random = numpy.random.default_rng(7)
    rows = random.standard_normal((BATCH * STEPS, WIDTH)).astype(numpy.float32)
    labels = random.integers(0, WIDTH, len(rows)).astype(numpy.int32)
    data = NumpySlicesDataset((rows, labels), ["data", "label"], shuffle=False).batch(BATCH)
    model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.01))
    times = Times()
    model.train(1, data, times, micro_batches=MICRO_BATCHES)
    steps = [end - begin for begin, end in itertools.pairwise(times.ends[WARM_UP:])]
    print(f"rank {muster.get_rank()} median_step_seconds {statistics.median(steps)}", flush=True)


main()
