"""A training for parallel.py: NET divided as LAYOUT says. It prints losses, the median step, the bytes held.

NET: mlp, convolution or transformer. LAYOUT: "data,model,zero" for parallel.plan, "zero N" for data parallel
with that level of Zero, "stages data,model,stages,parts" for a transformer whose blocks lie on so many meshes
and whose batch goes through them in parts, or "none". STEPS: in all. BATCH: of all workers. BLOCKS, LENGTH:
of the transformer.
"""

import os
import statistics
import time

import numpy

import muster
from muster import dataset, nn, ops, parallel, train

NET, LAYOUT = os.environ.get("NET", "mlp"), os.environ.get("LAYOUT", "none")
STEPS, BATCH, WIDTH, BLOCKS, LENGTH = (
    int(os.environ.get(name, value))
    for name, value in (("STEPS", 24), ("BATCH", 32), ("WIDTH", 256), ("BLOCKS", 2), ("LENGTH", 16))
)
WARM_UP = 4


class Block(nn.Cell):
    """Attention with four heads, then two products, as in a transformer."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.q, self.k, self.v, self.out = (nn.Dense(width, width) for _ in range(4))
        self.up, self.down, self.act = nn.Dense(width, 4 * width), nn.Dense(4 * width, width), nn.GELU()
        self.width = width

    def construct(self, x):
        """x: float32 (samples, LENGTH, width)."""
        y = self.norm(x)

        def heads(each):
            return ops.transpose(ops.reshape(each, (-1, LENGTH, 4, self.width // 4)), (0, 2, 1, 3))

        q, k, v = heads(self.q(y)), heads(self.k(y)), heads(self.v(y))
        weights = ops.softmax(ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * (self.width / 4) ** -0.5, -1)
        y = ops.reshape(ops.transpose(ops.matmul(weights, v), (0, 2, 1, 3)), (-1, LENGTH, self.width))
        x = x + self.out(y)
        return x + self.down(self.act(self.up(self.norm2(x))))


def made():
    """The network and the shape of a sample."""
    if NET == "mlp":
        return nn.SequentialCell(
            nn.Dense(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Dense(4 * WIDTH, WIDTH), nn.ReLU(), nn.Dense(WIDTH, 16)
        ), (WIDTH,)
    if NET == "convolution":
        return nn.SequentialCell(
            nn.Conv2d(3, 16, 3),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Flatten(),
            nn.Dense(32 * 8 * 8, 16),
        ), (3, 16, 16)
    blocks = [Block(WIDTH) for _ in range(BLOCKS)]
    net = nn.SequentialCell(*blocks, nn.Flatten(), nn.Dense(LENGTH * WIDTH, 16))
    return net, (LENGTH, WIDTH)


class Staged(nn.Cell):
    """The transformer, whose samples and weights are divided, and whose blocks lie on `stages` meshes."""

    def __init__(self, net, stages):
        super().__init__()
        self.net = net
        for number, block in enumerate(net.cells()[:BLOCKS]):
            if stages > 1 and muster.get_group_size() > 1:
                block.place("MS_WORKER", number * stages // BLOCKS)
            for cell in (block.q, block.k, block.v, block.up):
                parallel.shard(cell.weight, ("model", None))
            for cell in (block.out, block.down):
                parallel.shard(cell.weight, (None, "model"))

    def construct(self, x):
        """x: float32 (samples, LENGTH, width)."""
        return self.net(parallel.shard(x, ("data", None, None)))


class Times(train.Callback):
    """Each step's loss, and when it ended."""

    def __init__(self):
        super().__init__()
        self.ends = []

    def on_train_step_end(self, run_context):
        """Reads the loss, so that the step is done."""
        loss = float(run_context.net_outputs.asnumpy())
        self.ends.append(time.perf_counter())
        if muster.get_rank() == 0:
            print(f"loss {loss!r}", flush=True)


def main():
    """Trains."""
    muster.init()
    muster.set_seed(1)
    shards, parts = {}, 1
    if LAYOUT.startswith("zero"):
        zero = parallel.Zero(int(LAYOUT.split()[1]), threshold_bytes=0)
        muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, zero=zero)
        shards = {"num_shards": muster.get_group_size(), "shard_id": muster.get_rank()}
    elif LAYOUT.startswith("stages"):
        data, model, stages, parts = map(int, LAYOUT.split()[1].split(","))
        parallel.mesh(data=data, model=model, stages=stages)
    elif LAYOUT != "none":
        parallel.plan(*map(int, LAYOUT.split(",")))
    net, shape = made()
    if LAYOUT.startswith("stages"):
        net = Staged(net, stages)
    numbers = numpy.random.default_rng(1)
    rows = [
        (numbers.standard_normal(shape, numpy.float32), numpy.int32(numbers.integers(16)))
        for _ in range(STEPS * BATCH)
    ]
    workers = muster.get_group_size() if shards else 1
    batches = dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False, **shards).batch(BATCH // workers)
    optimizer, times = nn.Adam(net.trainable_params(), 1e-3), Times()
    train.Model(net, nn.CrossEntropyLoss(), optimizer).train(1, batches, times, micro_batches=parts)
    steps = [end - begin for begin, end in zip(times.ends[WARM_UP:], times.ends[WARM_UP + 1 :], strict=False)]
    if muster.get_rank() == 0:
        print(f"median_step_seconds {statistics.median(steps)!r}")
        print(f"held {parallel.held_bytes(net)} {parallel.held_bytes(optimizer)}", flush=True)


main()
