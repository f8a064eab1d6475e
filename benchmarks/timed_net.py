"""tests/seeds/000/net.py with timestamps: what a step takes, and how long the first one takes to come.

Runs under MindSpore and under Muster's python/mindspore alike. Beside the lines of net.py each worker prints
one line of JSON when it is done:

    rank                 its rank
    first_step_seconds   from BENCH_BEGIN, when the first process was started, to the end of the first step
    step_seconds         mean over all steps after the first epoch, data and printing included
    peak_memory_bytes    peak resident memory of the process
"""

import json
import os
import resource
import time

import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init

EPOCHS, BATCH = 10, 32

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
init()
ms.set_seed(1)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(28 * 28, 10, weight_init="normal", bias_init="zeros")
        self.relu = nn.ReLU()

    def construct(self, x):
        x = self.flatten(x)
        return self.relu(self.fc(x))


def create_dataset():
    dataset = ds.MnistDataset(os.environ["DATA_PATH"], num_shards=get_group_size(), shard_id=get_rank())
    image_transforms = [
        ds.vision.Rescale(1.0 / 255.0, 0),
        ds.vision.Normalize(mean=(0.1307,), std=(0.3081,)),
        ds.vision.HWC2CHW(),
    ]
    dataset = dataset.map(image_transforms, "image")
    dataset = dataset.map(ds.transforms.TypeCast(ms.int32), "label")
    return dataset.batch(BATCH)


data_set = create_dataset()
net = Network()
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 1e-2)


def forward_fn(data, label):
    logits = net(data)
    loss = loss_fn(logits, label)
    return loss, logits


grad_fn = ms.value_and_grad(forward_fn, None, net.trainable_params(), has_aux=True)
grad_reducer = nn.DistributedGradReducer(optimizer.parameters)

first_step = after_epoch = None
steps = 0
for epoch in range(EPOCHS):
    i = 0
    for data, label in data_set:
        (loss, _), grads = grad_fn(data, label)
        grads = grad_reducer(grads)
        optimizer(grads)
        if first_step is None:
            float(loss)  # the step is done, not only asked for
            first_step = time.time()
        if i % 10 == 0:
            print(f"epoch: {epoch}, step: {i}, loss is {loss}")
        i += 1
    float(loss)
    if epoch == 0:
        after_epoch = time.perf_counter()
    else:
        steps += i
step = (time.perf_counter() - after_epoch) / steps
report = {
    "rank": get_rank(),
    "first_step_seconds": first_step - float(os.environ["BENCH_BEGIN"]),
    "step_seconds": step,
    "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}
print(json.dumps(report), flush=True)
