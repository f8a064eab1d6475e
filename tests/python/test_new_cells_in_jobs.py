"""Newer cells and scaled losses in jobs of two, beside one process with the whole batch."""

import json

import numpy as np
import pytest
from job import Job, run_alone

BEGIN = """
import json, os
import numpy as np
import mindspore as ms
from mindspore import Tensor, amp, nn, ops
from mindspore.communication import get_group_size, get_rank, init

init()
rank, size = get_rank(), get_group_size()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
ms.set_seed(3)

def tell(value):
    print("TOLD", json.dumps(value), flush=True)
"""

STEPS = """
class Net(nn.Cell):
    def __init__(self, body, width, pool):
        super().__init__()
        self.body, self.pool, self.head = body, pool, nn.Dense(width, 1)

    def construct(self, x):
        return self.head(self.pool(self.body(x)))

def recurrent(kind):
    return Net(kind(4, 5, num_layers=2, bidirectional=True, batch_first=True), 10, lambda y: y[0][:, -1])

class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layer = nn.MultiheadAttention(4, 2, batch_first=True)

    def construct(self, x):
        return self.layer(x, x, x)[0]

def images(norm):
    return Net(nn.SequentialCell(nn.Conv2d(4, 8, 3), norm, nn.ReLU()), 8, lambda y: y.mean((2, 3)))

NETS = {
    "LSTM": (lambda: recurrent(nn.LSTM), (6, 4)),
    "GRU": (lambda: recurrent(nn.GRU), (6, 4)),
    "GroupNorm": (lambda: images(nn.GroupNorm(2, 8)), (4, 6, 6)),
    "SyncBatchNorm": (lambda: images(nn.SyncBatchNorm(8)), (4, 6, 6)),
    "Conv3d": (lambda: Net(nn.Conv3d(2, 4, 3), 4, lambda y: y.mean((2, 3, 4))), (2, 5, 5, 5)),
    "MultiheadAttention": (lambda: Net(Attention(), 4, lambda y: y.mean(1)), (6, 4)),
}
for name, (make, shape) in NETS.items():
    net = make()
    draws = np.random.RandomState(0)
    own = slice(rank * 8 // size, (rank + 1) * 8 // size)
    x = Tensor(draws.randn(8, *shape).astype(np.float32)[own])
    y = Tensor(draws.randn(8, 1).astype(np.float32)[own])
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    step.set_train()
    losses = [float((ops.AllReduce()(step(x, y)) / size).asnumpy()) for _ in range(3)]
    moving = [float(p.asnumpy().sum()) for p in net.get_parameters() if "moving" in p.name]
    tell([name, losses + moving])
"""


def told(text):
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("TOLD ")]


def told_by_two(script):
    with Job(BEGIN + script, workers=2) as job:
        ends = [worker.wait() for worker in job.workers]
        outputs = [worker.output() for worker in job.workers]
    assert ends == [0, 0], outputs
    return [told(text) for text in outputs]


@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
def test_losses_of_two_workers_are_those_of_one_process_with_the_whole_batch(mode):
    script = f"ms.set_context(mode=ms.{mode})\n" + STEPS
    code, text, _ = run_alone(BEGIN + script)
    assert code == 0, text
    alone = dict(told(text))
    assert len(alone) == 6
    for each in told_by_two(script):
        for name, losses in each:
            np.testing.assert_allclose(losses, alone[name], rtol=0, atol=1e-6, err_msg=name)


OPTIMIZERS = """
from mindspore.parallel.auto_parallel import AutoParallel

for name in ("ASGD", "AdaFactor", "AdaMax", "Adadelta", "LazyAdam", "ProximalAdagrad", "Rprop"):
    ms.set_seed(3)
    net = AutoParallel(nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1)))
    net.dataset_strategy("data_parallel")
    draws = np.random.RandomState(0)
    own = slice(rank * 8 // size, (rank + 1) * 8 // size)
    x = Tensor(draws.randn(8, 4).astype(np.float32)[own])
    y = Tensor(draws.randn(8, 1).astype(np.float32)[own])
    optimizer = getattr(nn, name)(net.trainable_params())
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    tell([name, [float((ops.AllReduce()(step(x, y)) / size).asnumpy()) for _ in range(3)]])
"""


def test_optimizers_of_ops_and_auto_parallel_share_the_data_of_two_workers():
    code, text, _ = run_alone(BEGIN + OPTIMIZERS)
    assert code == 0, text
    alone = dict(told(text))
    assert len(alone) == 7
    for each in told_by_two(OPTIMIZERS):
        for name, losses in each:
            np.testing.assert_allclose(losses, alone[name], rtol=1e-4, atol=1e-6, err_msg=name)


OVERFLOW = """
net = nn.Dense(3, 1)
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
scale = nn.DynamicLossScaleUpdateCell(loss_scale_value=2**10, scale_factor=2, scale_window=2)
step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, nn.MSELoss()), optimizer, scale_sense=scale)
step.set_train()
for at in range(5):
    x = np.random.RandomState(10 * at + rank).randn(4, 3).astype(np.float32)
    if at == 2 and rank == 1:
        x[0, 0] = np.inf
    before = net.weight.asnumpy().tolist()
    _, overflow, factor = step(Tensor(x), ops.ones((4, 1)))
    after = net.weight.asnumpy().tolist()
    tell([bool(overflow.asnumpy()), float(factor.asnumpy()), before == after, after])
"""


def test_an_overflow_on_one_worker_is_one_on_all_and_leaves_the_weights():
    first, second = told_by_two(OVERFLOW)
    assert first == second
    assert [each[0] for each in first] == [False, False, True, False, False]
    assert [each[2] for each in first] == [False, False, True, False, False]


BRANCH = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense, self.other = nn.Dense(4, 1), nn.Dense(4, 1)

    def construct(self, x):
        if x.sum() > 0:
            return self.dense(x)
        return self.dense(x) + self.other(x)

class Written(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 1)
        self.count = ms.Parameter(ops.zeros((3,)), name="count", requires_grad=False)

    def construct(self, x):
        x = x * 1.0
        x[:, 0] = x[:, 1] * 2
        x += 1
        self.count[0] += 1
        return self.dense(x)

rows = np.random.RandomState(0).randn(12, 4).astype(np.float32)
for make in (Net, Written):
    net = make()
    data = {"x": rows, "y": rows.sum(1, keepdims=True)}
    dataset = ms.dataset.NumpySlicesDataset(data, shuffle=False, num_shards=size, shard_id=rank).batch(2)
    model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.05, 0.9))
    model.train(2, dataset, dataset_sink_mode=False)
    tell([each.asnumpy().tolist() for each in net.get_parameters()])
"""


def test_workers_that_take_other_branches_and_write_into_tensors_keep_equal_weights():
    first, second = told_by_two(BRANCH)
    assert first == second
    assert [6.0, 0.0, 0.0] in first[1]
