"""A Dense net learns handwritten digits on all workers of a cluster.

    muster run -n 4 examples/mnist.py

or, without the launcher, once for each process with MS_ROLE=MS_SCHED or MS_WORKER, MS_WORKER_NUM,
MS_SCHED_HOST and MS_SCHED_PORT set; without any of these variables it trains alone.
DATA_PATH is the folder of the training digits (default: MNIST_Data/train); digits to test with are looked for
in the folder `test` beside it.
"""

import os
import time
from pathlib import Path

import muster
from muster import dataset as ds
from muster import nn, ops

EPOCHS = 10
BATCH = 32
LEARNING_RATE = 1e-2
SEED = 1
SHOW_EVERY = 0.05  # seconds between two states of the progress line


class Network(muster.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(28 * 28, 10, weight_init="normal", bias_init="zeros")
        self.relu = nn.ReLU()

    def construct(self, x: muster.Tensor) -> muster.Tensor:
        x = self.relu(self.fc(self.flatten(x)))
        return x


def digits(folder: Path, num_shards: int | None = None, shard_id: int | None = None) -> ds.Dataset:
    image = [
        ds.vision.Rescale(1.0 / 255.0, 0),
        ds.vision.Normalize(mean=(0.1307,), std=(0.3081,)),
        ds.vision.HWC2CHW(),
    ]
    dataset: ds.Dataset = ds.MnistDataset(str(folder), num_shards=num_shards, shard_id=shard_id)
    dataset = dataset.map(image, "image")
    dataset = dataset.map(ds.transforms.TypeCast(muster.int32), "label")
    return dataset.batch(BATCH)


def train(net: Network, dataset: ds.Dataset, rank: int) -> int:
    """Trains for EPOCHS; worker 0 shows how far it is. Returns how many images this worker has seen."""
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.SGD(net.trainable_params(), LEARNING_RATE)
    reducer = nn.DistributedGradReducer(optimizer.parameters)

    def forward(image: muster.Tensor, label: muster.Tensor) -> muster.Tensor:
        loss: muster.Tensor = loss_fn(net(image), label)
        return loss

    grad_fn = muster.value_and_grad(forward, None, net.trainable_params())
    images, shown, loss = 0, 0.0, muster.Tensor(0.0)
    for epoch in range(1, EPOCHS + 1):
        for image, label in dataset:
            loss, grads = grad_fn(image, label)
            optimizer(reducer(grads))
            images += len(label)
            if rank == 0 and time.monotonic() - shown > SHOW_EVERY:
                shown = time.monotonic()
                print(
                    f"\repoch {epoch} of {EPOCHS}, {images} images, loss {loss.item():.3f}",
                    end="",
                    flush=True,
                )
        if rank == 0:
            print(f"\repoch {epoch} of {EPOCHS}, {images} images, loss {loss.item():.3f}", flush=True)
    return images


def accuracy(net: Network, dataset: ds.Dataset) -> float:
    right, total = 0.0, 0
    for image, label in dataset:
        hits = ops.equal(ops.cast(ops.argmax(net(image)), muster.int32), label)
        right += ops.reduce_sum(ops.cast(hits, muster.float32)).item()
        total += len(label)
    return right / total


def main() -> None:
    muster.init()  # the scheduler's process ends in here, when the job has ended
    muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    muster.set_seed(SEED)
    rank, workers = muster.get_rank(), muster.get_group_size()
    folder = Path(os.environ.get("DATA_PATH", "MNIST_Data/train"))

    net = Network()
    dataset = digits(folder, num_shards=workers, shard_id=rank)
    begin = time.monotonic()
    images = train(net, dataset, rank)
    print(f"rank {rank} of {workers}: {images / (time.monotonic() - begin):,.0f} images/s")

    test = folder.parent / "test"
    if rank == 0 and test.is_dir():
        print(f"test accuracy: {accuracy(net, digits(test)):.3f}")


if __name__ == "__main__":
    main()
