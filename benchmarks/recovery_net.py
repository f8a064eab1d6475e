"""A training that says when each of its steps was done, for recovery.py.

HIDDEN: neurons of the middle layer. SAVE_STEPS: between two recovery points. STEPS: in all. BY_HAND=1: a
loop by hand, which writes recovery points alone; else a Model with a ModelCheckpoint, which writes its
.ckpt files beside them.
"""

import os
import time

import numpy
from muster.dataset import NumpySlicesDataset

import muster
from muster import nn, train

HIDDEN, STEPS, SAVE_STEPS = (int(os.environ[name]) for name in ("HIDDEN", "STEPS", "SAVE_STEPS"))
WIDTH, BATCH = 784, 32


class Steps(train.Callback):
    """Steps and when they were done: the clock is that of the whole machine."""

    def on_train_step_end(self, run_context):
        print(f"step {run_context.cur_step_num} {time.monotonic():.6f}", flush=True)

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def train_by_hand(net, data, optimizer):
    criterion = nn.CrossEntropyLoss()
    gradients_of = muster.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)
    reducer = nn.DistributedGradReducer(optimizer.parameters, True)
    steps = muster.recoverable(net, optimizer, data, epochs=STEPS // 10, save_steps=SAVE_STEPS)
    for number, (_, _, (images, labels)) in enumerate(steps, 1):
        _, gradients = gradients_of(images, labels)
        optimizer(reducer(gradients))
        print(f"step {number} {time.monotonic():.6f}", flush=True)


def train_a_model(net, data, optimizer):
    model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
    config = train.CheckpointConfig(save_checkpoint_steps=SAVE_STEPS, keep_checkpoint_max=2)
    saver = train.ModelCheckpoint("bench", f"checkpoints/{muster.get_rank()}", config)
    model.train(STEPS // 10, data, [Steps(), saver])


def main():
    print("imported", flush=True)
    muster.init()
    muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    muster.set_seed(1)
    net = nn.SequentialCell(nn.Dense(WIDTH, HIDDEN), nn.ReLU(), nn.Dense(HIDDEN, 10))
    random = numpy.random.default_rng(muster.get_rank())
    images = random.standard_normal((BATCH * 10, WIDTH)).astype(numpy.float32)
    labels = random.integers(0, 10, len(images)).astype(numpy.int32)
    data = NumpySlicesDataset((images, labels), ["image", "label"], shuffle=False).batch(BATCH)
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    (train_by_hand if os.environ.get("BY_HAND") == "1" else train_a_model)(net, data, optimizer)


main()
