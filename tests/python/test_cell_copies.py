"""copy.deepcopy and pickle of cells."""

import copy
import pickle

import numpy
import pytest

import muster
from muster import nn, ops


def pickled(value):
    return pickle.loads(pickle.dumps(value))


COPIES = pytest.mark.parametrize("made", [copy.deepcopy, pickled])


def floats(*shape, seed=1):
    return muster.Tensor(numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32))


def values(net):
    return {parameter.name: parameter.asnumpy() for parameter in net.get_parameters()}


def assert_alike(one, other):
    assert type(one) is type(other)
    assert repr(one) == repr(other)
    for (name, first), (again, second) in zip(one.cells_and_names(), other.cells_and_names(), strict=True):
        assert (name, type(first), first.param_prefix) == (again, type(second), second.param_prefix)
        assert first.training == second.training
        assert first is not second
    ours, theirs = one.get_parameters(), other.get_parameters()
    for first, second in zip(ours, theirs, strict=True):
        assert first is not second
        assert (first.name, first.requires_grad) == (second.name, second.requires_grad)
        numpy.testing.assert_array_equal(first.asnumpy(), second.asnumpy())


BUILT_IN = {
    "Dense": (lambda: nn.Dense(4, 3, has_bias=False, activation="relu"), [(2, 4)]),
    "DenseOfACell": (lambda: nn.Dense(4, 3, activation=nn.LeakyReLU(0.3)), [(2, 4)]),
    "Conv2d": (
        lambda: nn.Conv2d(3, 4, 3, stride=2, pad_mode="pad", padding=1, has_bias=True),
        [(2, 3, 8, 8)],
    ),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3, eps=1e-3, momentum=0.8), [(2, 3, 4, 4)]),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4, affine=False), [(2, 4)]),
    "LayerNorm": (lambda: nn.LayerNorm((4,), epsilon=1e-3), [(2, 4)]),
    "Dropout": (lambda: nn.Dropout(p=0.3), [(2, 4)]),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, 2, pad_mode="pad", ceil_mode=True), [(2, 3, 5, 5)]),
    "AvgPool2d": (lambda: nn.AvgPool2d(2, 2, count_include_pad=False), [(2, 3, 5, 5)]),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((2, 3)), [(2, 3, 6, 6)]),
    "Flatten": (lambda: nn.Flatten(), [(2, 3, 4)]),
    "ReLU": (lambda: nn.ReLU(), [(2, 4)]),
    "ELU": (lambda: nn.ELU(0.5), [(2, 4)]),
    "GELU": (lambda: nn.GELU(approximate=False), [(2, 4)]),
    "Softmax": (lambda: nn.Softmax(axis=0), [(2, 4)]),
    "get_activation": (lambda: nn.get_activation("leakyrelu"), [(2, 4)]),
    "SequentialCell": (lambda: nn.SequentialCell(nn.Dense(4, 3), nn.Tanh(), nn.Dense(3, 2)), [(2, 4)]),
    "MSELoss": (lambda: nn.MSELoss("sum"), [(2, 4), (2, 4)]),
    "BCELoss": (
        lambda: nn.BCEWithLogitsLoss(pos_weight=muster.Tensor([1.0, 2.0, 3.0, 4.0])),
        [(2, 4), (2, 4)],
    ),
    "WithLossCell": (lambda: nn.WithLossCell(nn.Dense(4, 3), nn.MSELoss()), [(2, 4), (2, 3)]),
}


@COPIES
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_cell(made, name):
    make, shapes = BUILT_IN[name]
    cell = make()
    again = made(cell)
    assert_alike(cell, again)
    inputs = [floats(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    numpy.testing.assert_array_equal(cell(*inputs).asnumpy(), again(*inputs).asnumpy())


class Block(nn.Cell):
    """Its arguments are no attributes, and its construct reads attributes of all kinds."""

    def __init__(self, width, *, scale):
        super().__init__()
        self.fc = nn.Dense(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.scale = muster.Parameter(muster.Tensor([float(scale)]), requires_grad=False)
        self.offset = muster.Tensor([0.5])
        self.settings = {"twice": True}

    def construct(self, x):
        y = self.norm(self.fc(x)) * self.scale + self.offset
        return y + y if self.settings["twice"] else y


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.blocks = nn.CellList([Block(4, scale=2), Block(4, scale=3)])
        self.again = self.blocks[0]  # one block twice
        self.tied = Tied(self.blocks[1].fc)
        self.head = nn.SequentialCell({"fc": nn.Dense(4, 2), "act": nn.Sigmoid()})

    def construct(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(self.tied(self.again(x)))


class Tied(nn.Cell):
    """Uses another cell's weight, in the other direction."""

    def __init__(self, other):
        super().__init__()
        self.weight = other.weight

    def construct(self, x):
        return ops.matmul(x, self.weight)


def trained_net():
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    step.set_train()
    for seed in range(3):
        step(floats(5, 4, seed=seed), floats(5, 2, seed=seed + 9))
    return net


@COPIES
def test_a_network_of_cells_of_ones_own(made):
    net = trained_net()
    net.blocks[1].norm.set_train(False)
    net.head.fc.weight.requires_grad = False
    again = made(net)
    assert_alike(net, again)
    net.set_train(False)
    again.set_train(False)
    numpy.testing.assert_array_equal(net(floats(5, 4)).asnumpy(), again(floats(5, 4)).asnumpy())


@COPIES
def test_who_shares_goes_on_sharing_and_the_original_is_left_alone(made):
    net = Net()
    before = values(net)
    again = made(net)
    assert again.again is again.blocks[0]
    assert again.tied.weight is again.blocks[1].fc.weight
    assert again.tied.weight is not net.tied.weight
    again.tied.weight.set_data(ops.zeros((4, 4)))
    assert (again.blocks[1].fc.weight.asnumpy() == 0).all()
    for name, value in values(net).items():
        numpy.testing.assert_array_equal(value, before[name])


@COPIES
def test_who_shares_goes_on_sharing_in_whatever_order(made):
    """The user of a weight comes before the cell that made it, and a list holds it too."""

    class Both(nn.Cell):
        def __init__(self):
            super().__init__()
            dense = nn.Dense(4, 4)
            self.kept = [dense.weight]
            self.tied = Tied(dense)
            self.dense = dense

        def construct(self, x):
            return self.tied(self.dense(x))

    net = Both()
    if made is pickled:
        net = nn.SequentialCell(Tied(net.dense), net.dense)
        again = made(net)
        assert again[0].weight is again[1].weight
        return
    again = made(net)
    assert again.tied.weight is again.dense.weight is again.kept[0]
    assert len(again.get_parameters()) == len(net.get_parameters()) == 2


@COPIES
def test_a_copy_trains_as_the_original_would(made):
    muster.set_seed(4)
    net = trained_net()
    again = made(net)

    def trained(one):
        optimizer = nn.Momentum(one.trainable_params(), 0.1, 0.9)
        step = nn.TrainOneStepCell(nn.WithLossCell(one, nn.MSELoss()), optimizer)
        step.set_train()
        losses = [step(floats(5, 4, seed=seed), floats(5, 2, seed=seed)).item() for seed in range(3)]
        return losses, [value.tobytes() for value in values(one).values()]

    assert trained(net) == trained(again)


@COPIES
def test_precision_and_place_are_kept(made):
    net = Net()
    net.head.place("MS_WORKER", 1)
    net.blocks[0].fc.to_float(muster.float32)
    again = made(net)
    assert muster._core._cell_state(again.head) == muster._core._cell_state(net.head)
    assert "test_cell_copies.py" in str(muster._core._cell_state(again.head))
    assert muster._core._cell_state(again.blocks[0].fc) == muster._core._cell_state(net.blocks[0].fc)


@COPIES
def test_a_sequence_that_grew_since_it_was_made(made):
    net = nn.SequentialCell(nn.Dense(4, 3))
    net.append(nn.ReLU())
    again = made(net)
    assert_alike(net, again)
    again.append(nn.Dense(3, 2))
    assert len(net) == 2


class WithState(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(2, 2)
        self.file = open(__file__, encoding="utf-8")  # noqa: SIM115 - cannot be pickled

    def __getstate__(self):
        state = super().__getstate__()
        del state["attributes"]["file"]
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        self.file = None


@COPIES
def test_getstate_and_setstate_are_ones_own(made):
    net = WithState()
    again = made(net)
    assert again.file is None
    assert_alike(net.fc, again.fc)
    net.file.close()


@COPIES
def test_an_optimizer_says_what_to_do_instead(made):
    net = nn.Dense(2, 2)
    old = nn.Adam(net.trainable_params(), 0.01)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), old)
    step(floats(3, 2), floats(3, 2))
    for holder in (old, step):
        with pytest.raises(TypeError, match=r"Adam: an optimizer belongs.*load_param_into_net"):
            made(holder)
    again = made(net)
    new = nn.Adam(again.trainable_params(), 0.01)
    assert muster.load_param_into_net(new, {p.name: p for p in old.get_parameters()}) == ([], [])
    for one, other in zip(old.get_parameters(), new.get_parameters(), strict=True):
        assert one is not other
        numpy.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


def test_a_shallow_copy_is_refused():
    with pytest.raises(TypeError, match=r"copy\.deepcopy"):
        copy.copy(Net())


def test_a_pickle_of_a_network_that_never_ran_draws_what_the_original_would():
    muster.set_seed(9)
    net = Net()
    again = pickled(net)
    assert_alike(net, again)
