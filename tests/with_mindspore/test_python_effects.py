"""Code whose Python counts, notes or draws: it does so at each call, as in MindSpore's default mode."""

import collections
import random
import sys

import numpy
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops

CALLS = 0


def value(result):
    return float(result.asnumpy().flatten()[0])


x = Tensor(numpy.ones(2, numpy.float32))


class Counts(nn.Cell):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def construct(self, x):
        self.calls += 1
        return x * self.calls


class Notes(nn.Cell):
    def __init__(self):
        super().__init__()
        self.sizes = []
        self.table = {"calls": 0}

    def construct(self, x):
        self.sizes.append(x.shape[0])
        self.table["calls"] += 1
        return x * len(self.sizes) * self.table["calls"]


class Tallies(nn.Cell):
    def __init__(self):
        super().__init__()
        self.tally = collections.Counter()

    def construct(self, x):
        self.tally["calls"] += 1
        return x * self.tally["calls"]


class Sums(nn.Cell):
    def construct(self, x):
        return x.sum()


class CountsInModule(nn.Cell):
    def construct(self, x):
        global CALLS
        CALLS += 1
        return x * CALLS


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(Tallies, [1, 2, 3]), (Counts, [1, 2, 3]), (Notes, [1, 4, 9]), (CountsInModule, [1, 2, 3])],
)
def test_what_construct_counts_goes_on_at_each_call(kind, expected):
    net = kind()
    assert [value(net(x)) for _ in expected] == expected


class CountsAndBranches(nn.Cell):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def construct(self, x):
        self.calls += 1
        scale = random.random()
        if x.sum() > 1e9:  # code that decides by elements runs op by op
            return x
        return x * self.calls + scale * 0


def test_what_code_did_before_it_left_its_trace_counts_once():
    net = CountsAndBranches()
    random.seed(3)
    assert [value(net(x)) for _ in range(3)] == [1, 2, 3]
    drawn = random.random()
    random.seed(3)
    assert drawn == [random.random() for _ in range(4)][-1]


def test_a_model_counts_its_steps():
    net = Counts()
    net.weight = Parameter(Tensor(numpy.ones(2, numpy.float32)), name="weight")
    rows = ms.dataset.NumpySlicesDataset({"x": numpy.ones((3, 2), numpy.float32)}, shuffle=False).batch(1)
    loss = nn.TrainOneStepCell(nn.SequentialCell(net, Sums()), nn.SGD([net.weight], 0.0))
    ms.Model(loss).train(1, rows)
    assert net.calls == 3


def test_a_variable_around_the_function_that_it_counts_in_goes_on_at_each_call():
    calls = 0

    def forward(x):
        nonlocal calls
        calls += 1
        return ops.reduce_sum(x * calls)

    step = ms.value_and_grad(forward, 0)
    assert [value(step(x)[1]) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("seed", "draw"),
    [
        (random.seed, lambda: random.random()),  # as users write it
        (numpy.random.seed, lambda: float(numpy.random.rand())),
        (numpy.random.seed, lambda: float(numpy.random.randint(0, 1000))),
    ],
)
def test_random_numbers_of_python_are_drawn_at_each_call_from_the_first(seed, draw):
    class Drops(nn.Cell):
        def construct(self, x):
            return x * draw()

    net = Drops()
    seed(7)
    drawn = [value(net(x)) for _ in range(4)]
    seed(7)
    assert drawn == [numpy.float32(draw()) for _ in range(4)]


def test_a_loss_that_a_loop_anneals_in_a_variable_takes_its_value():
    beta = 0.0
    weight = Parameter(Tensor(numpy.ones(2, numpy.float32)), name="weight")
    step = ms.value_and_grad(lambda x: (weight * x * beta).sum(), None, [weight])
    gradients = []
    for epoch in range(3):
        beta = epoch * 0.5
        gradients.append(value(step(x)[1][0]))
    assert gradients == [0.0, 0.5, 1.0]


class Decay(nn.Cell):
    def construct(self, step):
        return 0.5 + step.astype(ms.float32)


class Own(nn.Optimizer):
    def construct(self, gradients):
        return self.get_weight_decay()


@pytest.mark.parametrize("make", [lambda *given, **more: nn.Momentum(given[1], given[0], 0.9, **more), Own])
def test_the_weight_decay_of_an_optimizer_is_that_of_its_groups(make):
    net = nn.Dense(2, 2)
    weight, bias = net.trainable_params()
    decays = make(0.1, [{"params": [weight], "weight_decay": 0.25}, {"params": [bias]}], weight_decay=0.5)
    assert [value(decay) for decay in decays.get_weight_decay()] == [0.25, 0.5]
    assert [value(decay) for decay in decays.weight_decay] == [0.25, 0.5]
    assert value(make(0.1, [weight, bias], weight_decay=0.5).get_weight_decay()) == 0.5
    changing = make(0.1, [weight, bias], weight_decay=Decay())
    assert value(changing.get_weight_decay()) == 0.5


class Array(nn.Cell):
    def __init__(self):
        super().__init__()
        self.array = numpy.array([1.0, 2.0], numpy.float32)
        self.arrays = {"a": numpy.array([1.0], numpy.float32)}
        self.memo = None


class Replaced(Array):
    def construct(self, x):
        self.array = self.array + 1
        return x * Tensor(self.array)


class Written(Array):
    def construct(self, x):
        self.array += 1
        return x * Tensor(self.array)


class Item(Array):
    def construct(self, x):
        self.arrays["a"] = self.arrays["a"] + 1
        return x * Tensor(self.arrays["a"] + 0)


class Given(Array):
    def construct(self, x):
        self.array = self.array + 1
        return self.array


@pytest.mark.parametrize("kind", [Replaced, Written, Item, Given])
def test_an_array_that_construct_changes_counts_with_each_call(kind):
    ms.set_context(mode=ms.GRAPH_MODE)
    net = kind()
    results = [net(x) for _ in range(3)]
    assert [float(numpy.asarray(each)[0]) for each in results] == [2, 3, 4]
    held = net.arrays["a"] if kind is Item else net.array
    assert float(held[0]) == 4


def test_an_array_that_construct_makes_once_is_a_memo(capfd):
    class Memo(Array):
        def construct(self, x):
            if self.memo is None:
                self.memo = numpy.arange(2, dtype=numpy.float32)
            return x * Tensor(self.memo)

    ms.set_context(mode=ms.GRAPH_MODE)
    net = Memo()
    assert [net(x).asnumpy().tolist() for _ in range(2)] == [[0, 1], [0, 1]]
    assert "op by op" not in capfd.readouterr().err


class Holds(nn.Cell):
    def __init__(self, held):
        super().__init__()
        self.held = held


class AppendsTensors(Holds):
    def construct(self, x):
        self.held.append(x)
        return x * len(self.held)


class KeepsTensors(Holds):
    def construct(self, x):
        self.held["last"] = x
        return x * len(self.held)


@pytest.mark.parametrize(
    "net, last",
    [
        (AppendsTensors([]), -1),
        (AppendsTensors([Tensor([0.0])]), -1),
        (KeepsTensors({}), "last"),
        (KeepsTensors({"last": 0, "other": Tensor([0.0])}), "last"),
    ],
    ids=["list", "list of tensors", "dict", "dict of tensors"],
)
def test_a_tensor_that_construct_puts_into_a_container_has_elements(net, last):
    ms.set_context(mode=ms.GRAPH_MODE)
    before = len(net.held)
    results = [value(net(each)) for each in (x, x + 1)]
    assert net.held[last].asnumpy().tolist() == [2, 2]
    counts = [before + 1, before + 2] if isinstance(net, AppendsTensors) else [len(net.held)] * 2
    assert results == [counts[0], 2 * counts[1]]
