"""place(): where pieces of a network run; here in a process alone, where it changes nothing but errors."""

import re
import subprocess
import sys

import numpy
import pytest
from job import clean_environment

import muster
from muster import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(3, 4).place("MS_WORKER", 2)
        self.fc2 = nn.Dense(4, 2)
        self.fc2.place("MS_WORKER", 1)

    def construct(self, x):
        return self.fc2(self.fc1(x))


def test_place_gives_the_cell_and_changes_nothing_in_a_process_alone():
    muster.set_seed(1)
    net = Net()
    x = muster.Tensor(numpy.ones((2, 3), numpy.float32))
    placed = net(x).asnumpy()
    for cell in (net, net.fc1, net.fc2):
        cell.place(role="MS_WORKER", rank=0)
    assert numpy.array_equal(net(x).asnumpy(), placed)


def test_another_role_is_refused_with_cell_line_and_choices():
    net = Net()
    with pytest.raises(
        ValueError, match=r"Dense 'fc1' \(test_place\.py:\d+\).*'MS_SCHED'.*choose 'MS_WORKER'"
    ):
        net.fc1.place("MS_SCHED", 0)


def test_a_negative_rank_is_refused():
    with pytest.raises(ValueError, match=r"Net \(test_place\.py:\d+\): place: -1 is no rank of a worker"):
        Net().place("MS_WORKER", -1)


PRIMITIVES = """
import mindspore as ms
from mindspore import nn, ops
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu = ops.ReLU()
        self.relu.place("MS_WORKER", 1)
    def construct(self, x):
        return self.relu(x) + ops.ReLU().place("MS_WORKER", 2)(x)
net = Net()
print([net(ms.Tensor([-1.0, 2.0])).tolist() for _ in range(3)])
try:
    net.relu.place("MS_PSERVER", 0)
except ValueError as error:
    print(error)
"""


def test_primitives_of_mindspore_are_placed_too():
    command = [sys.executable, "-c", PRIMITIVES]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, error = done.stdout.splitlines()
    assert first == "[[0.0, 4.0], [0.0, 4.0], [0.0, 4.0]]"
    assert re.match(r"ReLU \(<string>:14\): place: the role 'MS_PSERVER' computes nothing", error)
