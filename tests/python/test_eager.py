"""Eager mode: the same code, op by op."""

import subprocess
import sys

import numpy
import pytest
from job import clean_environment

import muster
from muster import nn


@pytest.fixture(autouse=True)
def eager():
    muster.set_context(mode="eager")
    yield
    muster.set_context(mode="graph")


def tensor(*values):
    return muster.Tensor(numpy.array(values, numpy.float32))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
        self.act = nn.Tanh()
        self.seen = []

    def construct(self, x):
        y = self.act(self.fc(x))
        self.seen.append(y.asnumpy().sum())
        return y


def test_construct_may_look_at_elements():
    net = Net()
    net(tensor([0.1, 0.2, 0.3]))
    net(tensor([0.1, 0.2, 0.3]))
    assert len(net.seen) == 2
    assert net.seen[0] == pytest.approx(2 * numpy.tanh(0.6))


def test_python_may_branch_on_a_tensor():
    def folded(x):
        return (x * 2 if x.sum().item() > 0 else x * -3).sum()

    grad_fn = muster.value_and_grad(folded)
    assert grad_fn(tensor(1, 2))[1].tolist() == [2.0, 2.0]
    assert grad_fn(tensor(-1, -2))[1].tolist() == [-3.0, -3.0]
    assert grad_fn.traces == []


def loss_and_gradients(steps):
    muster.set_seed(3)
    net = nn.SequentialCell([nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 3)])
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
    rng = numpy.random.default_rng(5)
    losses = []
    for _ in range(steps):
        x = muster.Tensor(rng.standard_normal((16, 4), dtype=numpy.float32))
        y = muster.Tensor(rng.integers(0, 3, 16).astype(numpy.int32))
        loss, gradients = grad_fn(x, y)
        optimizer(gradients)
        losses.append(loss.item())
    return losses, [parameter.asnumpy().copy() for parameter in net.trainable_params()]


def test_training_agrees_with_graph_mode():
    eager_losses, eager_parameters = loss_and_gradients(10)
    muster.set_context(mode="graph")
    losses, parameters = loss_and_gradients(10)
    assert eager_losses == pytest.approx(losses, rel=1e-6)
    for ours, theirs in zip(eager_parameters, parameters, strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_a_gradient_has_a_gradient():
    slope = muster.value_and_grad(lambda x: (x * x * x).sum())
    second = muster.value_and_grad(lambda x: slope(x)[1].sum())
    value, gradient = second(tensor(2))
    assert (value.item(), gradient.tolist()) == (12.0, [12.0])


def test_jit_still_compiles():
    seen = []

    @muster.jit
    def twice(x):
        seen.append(1)
        return x + x

    assert [twice(tensor(2)).tolist() for _ in range(3)] == [[4.0]] * 3
    assert len(seen) == 1


def test_an_uncaught_error_of_an_op_is_raised_where_it_happened():
    with pytest.raises(ValueError, match="matmul"):
        muster.ops.matmul(tensor([1, 2]), tensor([1, 2]))


def test_the_old_name_of_the_mode_works():
    code = (
        "import mindspore as ms\n"
        "ms.set_context(mode=ms.PYNATIVE_MODE)\n"
        "x = ms.Tensor([1.0, -2.0])\n"
        "print(ms.value_and_grad(lambda x: (x * x if x.sum().item() < 0 else x).sum())(x)[1].asnumpy())\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, ["[", "2.", "-4.]"]), done.stderr
