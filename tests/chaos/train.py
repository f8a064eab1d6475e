"""What chaos.py breaks: a small training whose every bit depends on every step before it.

CHAOS_DATA: a folder of digits. CHAOS_MODE: model, loop, calls (two of train, and a loop), norm (each worker
has state of its own) or placed. It ends with a hash of all parameters; where parameter servers hold them
(CHAOS_ON_SERVERS), without the optimizer's state, which is there. CHAOS_NET=lookups: a table of embeddings on
the servers, whose rows belong to the hash.
"""

import hashlib
import os

import numpy as np
from muster.dataset import MnistDataset, transforms, vision

import muster
from muster import nn, ops, train

EPOCHS = int(os.environ.get("CHAOS_EPOCHS", "12"))
BATCH = 32
SAVE_STEPS = 20


def digits(shards, shard):
    data = MnistDataset(os.environ["CHAOS_DATA"], shuffle=True, num_shards=shards, shard_id=shard)
    data = data.map(vision.Rescale(1 / 255.0, 0), "image").map(transforms.TypeCast(muster.int32), "label")
    return data.batch(BATCH // shards, drop_remainder=True)


def layers(*more):
    return [nn.Flatten(), nn.Dense(28 * 28, 256), *more, nn.ReLU(), nn.Dropout(p=0.3), nn.Dense(256, 10)]


class Placed(nn.Cell):
    """The same layers, dealt out to all workers."""

    def __init__(self, workers):
        super().__init__()
        self.cells = nn.CellList(layers())
        for i, cell in enumerate(self.cells):
            cell.place("MS_WORKER", i * workers // len(self.cells))

    def construct(self, x):
        for cell in self.cells:
            x = cell(x)
        return x


class Lookups(nn.Cell):
    """A row for each place of a picture and each of two shades, whose sum is the class's score."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(2 * 28 * 28, 10, where="servers")
        self.fc = nn.Dense(10, 10)
        self.places = muster.Tensor(2 * np.arange(28 * 28, dtype=np.int32))

    def construct(self, x):
        dark = ops.cast(ops.greater(ops.reshape(x, (x.shape[0], -1)), 0.5), muster.int32)
        return self.fc(ops.reduce_sum(self.table(dark + self.places), 1))

    def rows(self):
        return self.table(muster.Tensor(np.arange(2 * 28 * 28, dtype=np.int32))).asnumpy()


def train_model(net, optimizer, data, calls=(EPOCHS,)):
    model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
    config = train.CheckpointConfig(save_checkpoint_steps=SAVE_STEPS, keep_checkpoint_max=3)
    for epochs in calls:
        model.train(
            epochs, data, [train.ModelCheckpoint("train", f"checkpoints/{muster.get_rank()}", config)]
        )


def train_by_hand(net, optimizer, data, epochs=EPOCHS):
    loss_fn = nn.CrossEntropyLoss()
    net.set_train()
    grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
    reducer = nn.DistributedGradReducer(optimizer.parameters)
    steps = muster.recoverable(net, optimizer, data, epochs=epochs, save_steps=SAVE_STEPS)
    for _epoch, _step, (image, label) in steps:
        _loss, gradients = grad_fn(image, label)
        optimizer(reducer(gradients))


def elements(parameter):
    try:
        return parameter.asnumpy().tobytes()
    except (ValueError, NotImplementedError):  # another worker has it, or servers have its rows
        return b""


def main():
    on_servers = "CHAOS_ON_SERVERS" in os.environ
    muster.set_ps_context(enable_ps=on_servers)
    muster.init()
    workers, rank = muster.get_group_size(), muster.get_rank()
    mode = os.environ["CHAOS_MODE"]
    muster.set_seed(3)
    if "CHAOS_EAGER" in os.environ:
        muster.set_context(mode="eager")
    looks_up = os.environ.get("CHAOS_NET") == "lookups"
    if mode == "placed":
        net, data = Placed(workers), digits(1, 0)
    else:
        muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
        more = [nn.BatchNorm1d(256)] if mode == "norm" else []
        net = Lookups() if looks_up else nn.SequentialCell(*layers(*more))
        data = digits(workers, rank)
    if on_servers:
        net.set_param_ps()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    if mode == "loop":
        train_by_hand(net, optimizer, data)
    elif mode == "calls":
        third = EPOCHS // 3
        train_model(net, optimizer, data, [third, third])
        train_by_hand(net, optimizer, data, EPOCHS - 2 * third)
    else:
        train_model(net, optimizer, data)
    state = hashlib.sha256(net.rows().tobytes() if looks_up else b"")
    for parameter in [*net.get_parameters(), *([] if on_servers else optimizer.get_parameters())]:
        state.update(parameter.name.encode() + elements(parameter))
    print("state", state.hexdigest(), flush=True)


main()
