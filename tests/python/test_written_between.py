"""Ops that become one read what they read apart, although the network writes it between them."""

import numpy as np
import pytest
from job import output_alone, outputs_of_workers

import muster
from muster import Parameter, Tensor, nn, ops


class Written(nn.Cell):
    """A network that writes a parameter which `first` has read, before `second` takes what `first` gave."""

    def __init__(self, first, second, shape, bias=(1.0, 2.0)):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(shape, np.float32)), name="weight")
        self.bias = Parameter(Tensor(np.float32(bias)), name="bias")
        self.first, self.second = first, second

    def construct(self, x: Tensor) -> Tensor:
        made = self.first(x, self.weight, self.bias)
        for parameter in (self.weight, self.bias):
            ops.assign(parameter, ops.add(parameter, 5.0))
        return self.second(made, self.bias)


def product(x, weight, bias):
    return ops.matmul(x, weight)


def dense(x, weight, bias):
    return ops.bias_add(ops.matmul(x, weight), bias)


def sum_of(x, weight, bias):
    return ops.add(weight, x)


def pads(x, weight, bias):
    return ops.pad(bias, (0, 2)), ops.pad(bias, (2, 0))


KINDS = {
    "bias": (product, ops.bias_add, (3, 2), (4, 3), [9.0, 10.0]),  # the bias is read behind the write
    "relu": (dense, lambda y, _: ops.relu(y), (3, 2), (4, 3), [4.0, 5.0]),
    "tanh": (dense, lambda y, _: ops.tanh(y), (3, 2), (4, 3), list(np.tanh([4.0, 5.0]))),
    "images": (
        lambda x, w, _: ops.conv2d(x, w),
        lambda y, _: ops.relu(y),
        (2, 3, 1, 1),
        (4, 3, 1, 1),
        [3.0, 3.0],
    ),
    "sum": (sum_of, lambda y, _: ops.relu(y), (4, 2), (4, 2), [2.0, 2.0]),
    "pads": (pads, lambda y, _: ops.add(*y), (2,), (2,), [1.0, 2.0]),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_read_before_a_write_counts_in_ops_that_become_one(name):
    first, second, weight, shape, wanted = KINDS[name]
    found = Written(first, second, weight)(muster.ops.ones(shape, muster.float32)).asnumpy()
    np.testing.assert_allclose(found.reshape(-1)[:2], wanted, rtol=1e-6)


STAGES = """
import numpy as np
import mindspore as ms
from mindspore import Tensor, mint, nn, ops
from mindspore.communication import get_group_size, init

init()
ms.set_seed(3)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(12, 16, activation="relu"), nn.Dense(16, 4)
        self.middle, self.loss = nn.Dense(16, 16), nn.CrossEntropyLoss()
        if get_group_size() == 2:
            for cell, stage in ((self.first, 0), (self.middle, 0), (self.last, 1)):
                cell.pipeline_stage = stage

    def construct(self, x, y):
        return self.loss(self.last(ops.tanh(self.middle(self.first(x)))), y)

ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=get_group_size())
net = Net()
optimizer = mint.optim.AdamW(net.trainable_params(), lr=0.01, weight_decay=20.0)
numbers = np.random.RandomState(0)
x, y = numbers.randn(8, 12).astype(np.float32), numbers.randint(0, 4, 8).astype(np.int32)
grad = ms.value_and_grad(nn.PipelineCell(net, 4), None, optimizer.parameters)

@ms.jit
def step(x, y):
    loss, gradients = grad(x, y)
    optimizer(gradients)
    return loss

print("loss", repr(float(step(Tensor(x), Tensor(y)).asnumpy())))
"""


def loss_of(text):
    return float(text.partition("loss ")[2].split()[0])


def test_a_decay_that_needs_no_gradient_does_not_reach_the_parts_of_a_batch_that_are_under_way():
    alone = loss_of(output_alone(STAGES))
    for text in outputs_of_workers(STAGES, 2):
        assert loss_of(text) == pytest.approx(alone, rel=1e-6)
