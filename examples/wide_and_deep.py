"""Wide&Deep learns who clicks, with its embeddings on parameter servers.

    muster data synthetic-clicks clicks
    muster run -n 2 --servers 2 examples/wide_and_deep.py

or, without the launcher, once for each process with MS_ROLE=MS_SCHED, MS_WORKER or MS_PSERVER, MS_WORKER_NUM,
MS_SERVER_NUM, MS_SCHED_HOST and MS_SCHED_PORT set; without any of these variables it trains alone, and the
tables are its own. DATA_PATH is the folder of the clicks (default: clicks). It ends with the AUC on the test
samples, and with how much that is of the best that can be had. Cheng et al., "Wide & Deep Learning for
Recommender Systems", 2016.
"""

import os
import time
from pathlib import Path

import numpy as np

import muster
from muster import dataset as ds
from muster import nn, ops

EPOCHS = int(os.environ.get("EPOCHS", "3"))
BATCH = int(os.environ.get("BATCH", "512"))  # of all workers together
WIDTH = 8  # of an embedding
HIDDEN = 64
SEED = 1


class WideAndDeep(muster.Cell):
    """The log odds of a click (batch,) of ids (batch, fields) and numbers (batch, count)."""

    def __init__(self, vocabulary: int, fields: int, numbers: int) -> None:
        super().__init__()
        # Ids that training has not seen are zeros.
        self.wide = nn.Embedding(
            vocabulary, 1, embedding_table="zeros", where="servers", out_of_range="zeros"
        )
        first = muster.initializers.normal(0.3)
        self.deep = nn.Embedding(
            vocabulary, WIDTH, embedding_table=first, where="servers", out_of_range="zeros"
        )
        self.size = fields * WIDTH
        self.of_numbers = nn.Dense(numbers, 1)
        self.layers = nn.SequentialCell(
            nn.Dense(self.size + numbers, HIDDEN),
            nn.ReLU(),
            nn.Dense(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Dense(HIDDEN, 1),
        )

    def construct(self, ids: muster.Tensor, numbers: muster.Tensor) -> muster.Tensor:
        wide = ops.reduce_sum(self.wide(ids), 1) + self.of_numbers(numbers)
        embedded = ops.reshape(self.deep(ids), (ids.shape[0], self.size))
        deep = self.layers(ops.concat((embedded, numbers), 1))
        return ops.reshape(wide + deep, (-1,))


def clicks(folder: Path, part: str) -> list[np.ndarray]:
    return [np.load(folder / f"{part}_{name}.npy") for name in ("ids", "numbers", "labels")]


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """How often a click has a higher score than what is none."""
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    hits = int(labels.sum())
    return float((rank[labels > 0].sum() - hits * (hits + 1) / 2) / (hits * (len(labels) - hits)))


def train(net: WideAndDeep, data: ds.Dataset, rank: int) -> None:
    loss_fn = nn.BCEWithLogitsLoss()
    wide = net.wide.trainable_params()
    deep = [parameter for parameter in net.trainable_params() if not parameter.name.startswith("wide.")]
    of_wide = nn.FTRL(wide, learning_rate=0.3, l1=1e-6, l2=1e-6)
    of_deep = nn.Adam(deep, learning_rate=5e-3)
    reducer = nn.DistributedGradReducer(deep)

    def forward(ids: muster.Tensor, numbers: muster.Tensor, label: muster.Tensor) -> muster.Tensor:
        loss: muster.Tensor = loss_fn(net(ids, numbers), label)
        return loss

    grad_fn = muster.value_and_grad(forward, None, wide + deep)
    for epoch in range(1, EPOCHS + 1):
        begin, samples, loss = time.monotonic(), 0, muster.Tensor(0.0)
        for ids, numbers, label in data:
            loss, gradients = grad_fn(ids, numbers, label)
            of_wide(gradients[: len(wide)])
            of_deep(reducer(gradients[len(wide) :]))
            samples += len(label)
        if rank == 0:
            rate = samples / (time.monotonic() - begin)
            print(f"epoch {epoch} of {EPOCHS}: loss {loss.item():.3f}, {rate:,.0f} samples/s", flush=True)


def main() -> None:
    muster.set_ps_context(enable_ps=True)
    muster.init()  # the scheduler's and the servers' processes end in here, when the job has ended
    muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    muster.set_seed(SEED)
    rank, workers = muster.get_rank(), muster.get_group_size()
    folder = Path(os.environ.get("DATA_PATH", "clicks"))
    ids, numbers, labels = clicks(folder, "train")
    vocabulary = int(ids.max()) + 1

    net = WideAndDeep(vocabulary, ids.shape[1], numbers.shape[1])
    data = ds.NumpySlicesDataset(
        (ids, numbers, labels), ["ids", "numbers", "label"], shuffle=True, num_shards=workers, shard_id=rank
    )
    train(net, data.batch(BATCH // workers, drop_remainder=True), rank)

    ids, numbers, labels = clicks(folder, "test")
    net.set_train(False)
    parts = range(0, len(ids), BATCH)
    scores = [
        net(muster.Tensor(ids[at : at + BATCH]), muster.Tensor(numbers[at : at + BATCH])) for at in parts
    ]
    reached = auc(np.concatenate([each.asnumpy() for each in scores]), labels)
    limit = float((folder / "auc_limit.txt").read_text())
    if rank == 0:
        print(f"AUC {reached:.4f}, {reached / limit:.4f} of the limit {limit:.4f}")


if __name__ == "__main__":
    main()
