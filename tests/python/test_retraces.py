"""Why something is traced again: `traces` and a warning name the attribute or the argument."""

import resource

import numpy
import pytest

import muster
from muster import nn, ops


class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        self.scale = 2
        self.fc = nn.Dense(3, 3)

    def construct(self, x):
        return self.fc(x) * self.scale


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def construct(self, x):
        return self.inner(x)


def tensor(*shape):
    return muster.Tensor(numpy.ones(shape, numpy.float32))


def set_scale(net):
    net.inner.scale = 3


def delete(net):
    net.other = 1
    del net.other


def replace_child(net):
    net.inner.fc = nn.Dense(3, 4)


def freeze(net):
    net.inner.fc.weight.requires_grad = False


def change_context(net):
    muster.set_auto_parallel_context(gradients_mean=True)


@pytest.fixture(autouse=True)
def _context():
    yield
    muster.reset_auto_parallel_context()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (set_scale, "Inner 'inner': attribute 'scale' was set"),
        (delete, "Net: attribute 'other' was deleted"),
        (replace_child, "Inner 'inner': child 'fc' was inserted"),
        (freeze, "parameter 'inner.fc.weight' was made, renamed, or its requires_grad set"),
        (lambda net: net.to_float(muster.float32), "Dense 'inner.fc': its precision was set"),
        (lambda net: net.set_train(), "Net: it, or a cell below, was set to training or back"),
        (change_context, "the context was changed"),
    ],
)
def test_a_change_of_a_network_is_named(change, reason):
    net = Net()
    net_fn = muster.jit(lambda x: net(x))
    net_fn(tensor(2, 3))
    change(net)
    net_fn(tensor(2, 3))
    net_fn(tensor(2, 3))
    assert [trace["reason"] for trace in net_fn.traces] == ["first call", reason]


def plus(x, *more, **named):
    return x


@pytest.mark.parametrize(
    ("first", "then", "reason"),
    [
        (((1,), {}), ((2,), {}), "argument 1 is int 2, was int 1"),
        (((1,), {}), ((1.0,), {}), "argument 1 is float 1.0, was int 1"),
        (((), {}), ((None,), {}), "argument 1 is NoneType None, was not given"),
        (((1, "a"), {}), ((1,), {}), "argument 2 is not given, was str 'a'"),
        (((), {"rate": 0.5}), ((), {"rate": 0.25}), "argument 'rate' is float 0.25, was float 0.5"),
        (((), {"rate": 1}), ((), {"scale": 1}), "argument 'scale' is given, argument 'rate' before"),
        (((["a=b"],), {}), ((["a=c"],), {}), "argument 1 is [str 'a=c';), was [str 'a=b';)"),
        (((abs,), {}), ((len,), {}), "argument 1 is another object than before"),
        (((tensor(1),), {}), ((tensor(2),), {}), "input 1 is float32 (2,), was float32 (1,)"),
    ],
)
def test_an_argument_that_differs_is_named(first, then, reason):
    function = muster.jit(plus)
    for positional, named in (first, then):
        function(tensor(2), *positional, **named)
    assert function.traces[-1]["reason"] == reason


def test_what_is_traced_again_and_again_is_told_once_with_the_reason(capfd):
    net = Net()
    for step in range(20):
        net.inner.scale = step
        net(tensor(2, 3))
    told = [line for line in capfd.readouterr().err.splitlines() if "was traced" in line]
    assert len(told) == 1
    assert "'Net' was traced 9 times" in told[0] and "Inner 'inner': attribute 'scale' was set" in told[0]


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_plans_of_many_lengths_have_the_memory_of_the_largest_together():
    columns = 20_000
    weights = tensor(4, columns)

    @muster.jit
    def total(x):
        return ops.reduce_sum(ops.exp(ops.matmul(x, weights) * 0.25 - 1.0))

    assert float(total(tensor(400, 4))) == pytest.approx(400 * columns)
    before = resident_bytes()
    for rows in (*range(390, 290, -10), 400):
        assert float(total(tensor(rows, 4))) == pytest.approx(rows * columns)
    assert len(total.traces) == 11
    assert resident_bytes() - before < 64 << 20  # a plan of its own takes 24 to 31 MB for each


def test_an_attribute_that_construct_sets_is_a_part_of_its_trace():
    class Counts(nn.Cell):
        def construct(self, x):
            self.runs = getattr(self, "runs", 0) + 1
            return x

    cell = Counts()
    for _ in range(3):
        cell(tensor(2))
    assert cell.runs == 1
