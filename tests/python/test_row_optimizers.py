"""Optimizers that are made from the rows of their updates: each has what all optimizers have."""

import numpy
import pytest

import muster
from muster import _core, nn

NAMES = sorted(_core._optimizers)
SHAPES = {"fc.weight": (5, 3), "fc.bias": (3,), "bn.gamma": (4,)}


def numbers(stream, shape):
    return numpy.random.default_rng(stream).normal(size=shape).astype(numpy.float32)


def parameters():
    return [muster.Parameter(numbers(i, shape), name=name) for i, (name, shape) in enumerate(SHAPES.items())]


def gradients(step):
    return tuple(muster.Tensor(numbers(100 * step + i, shape)) for i, shape in enumerate(SHAPES.values()))


def made(name, updated, learning_rate=0.05, **arguments):
    """The optimizer `name` with as much state as it can have."""
    more = {"Momentum": {"momentum": 0.9}, "SGD": {"momentum": 0.9}, "RMSProp": {"centered": True}}
    more["Adam"] = {"use_amsgrad": True}
    given = {"learning_rate": learning_rate, **more.get(name, {}), **arguments}
    return getattr(nn, name)(updated, **given)


def values(tensors):
    return [tensor.asnumpy().copy() for tensor in tensors]


def assert_equal_bits(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.tobytes() == b.tobytes()


def run(optimizer, steps):
    for step in steps:
        optimizer(gradients(step))


@pytest.mark.parametrize("name", NAMES)
def test_state_that_is_loaded_goes_on_with_the_same_bits(name, tmp_path):
    updated = parameters()
    optimizer = made(name, updated, weight_decay=0.1)
    run(optimizer, range(3))
    muster.save_checkpoint(optimizer, str(tmp_path / "optimizer.ckpt"))
    weights = values(updated)
    run(optimizer, range(3, 6))

    others = parameters()
    for parameter, weight in zip(others, weights, strict=True):
        parameter.set_data(muster.Tensor(weight))
    other = made(name, others, weight_decay=0.1)
    left = muster.load_param_into_net(other, muster.load_checkpoint(str(tmp_path / "optimizer.ckpt")))
    assert left[0] == []
    assert other.global_step.tolist() == [3]
    run(other, range(3, 6))
    assert_equal_bits(values(others), values(updated))


@pytest.mark.parametrize("name", NAMES)
def test_rates_may_be_lists_and_schedules(name):
    by_list, by_cell = parameters(), parameters()
    run(made(name, by_list, [0.0, 0.05, 0.1]), range(3))
    run(made(name, by_cell, nn.WarmUpLR(0.1, 2)), range(3))
    for a, b in zip(values(by_list), values(by_cell), strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    assert (values(by_list)[0] != values(parameters())[0]).all()


@pytest.mark.parametrize("name", NAMES)
def test_decay_may_be_a_cell_and_groups_have_their_own(name):
    class Constant(nn.Cell):
        def construct(self, step):
            return muster.ops.cast(step, muster.float32) * 0.0 + 0.25

    def groups(updated, decay):
        return [{"params": updated[:1], "weight_decay": decay, "lr": 0.02}, {"params": updated[1:]}]

    by_number, by_cell, bare = parameters(), parameters(), parameters()
    run(made(name, groups(by_number, 0.25)), range(2))
    run(made(name, groups(by_cell, Constant())), range(2))
    run(made(name, groups(bare, 0.0)), range(2))
    for a, b in zip(values(by_number), values(by_cell), strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert (values(by_number)[0] != values(bare)[0]).any()
    assert_equal_bits(values(by_number)[1:], values(bare)[1:])


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (
            lambda p: nn.Adam(p, beta=0.9),
            TypeError,
            r"Adam.*argument.*beta=0\.9",
        ),
        (lambda p: nn.Adam(p, 0.1, learning_rate=0.1), TypeError, r"Adam.*learning_rate.*twice"),
        (
            lambda p: nn.Adam(),
            TypeError,
            r"Adam.*called.*learning_r",
        ),
        (lambda p: nn.Momentum(p, 0.1), TypeError, "Momentum: momentum is missing"),
        (lambda p: nn.Adagrad(p, *range(9)), TypeError, "Adagrad: 10 arguments were given"),
        (lambda p: nn.Adam(p, beta1="a"), TypeError, r"Adam.*beta1.*float.*\('a'\)"),
        (lambda p: nn.SGD(p, nesterov=1), TypeError, r"SGD.*nesterov.*\(1\)"),
        (lambda p: nn.RMSProp(p, momentum=-1), ValueError, r"RMSProp.*momentum.*least 0.*-1"),
        (lambda p: nn.RMSProp(p, epsilon=numpy.inf), ValueError, r"RMSProp.*finite"),
    ],
)
def test_errors_name_the_optimizer_the_argument_and_what_is_allowed(make, kind, message):
    with pytest.raises(kind, match=message):
        make([muster.Parameter(numbers(0, (2,)), name="weight")])


def test_arguments_come_by_place_or_by_name():
    by_place, by_name = parameters(), parameters()
    run(nn.RMSProp(by_place, 0.05, 0.8, 0.5, 1e-3), range(2))
    run(nn.RMSProp(params=by_name, epsilon=1e-3, momentum=0.5, decay=0.8, learning_rate=0.05), range(2))
    assert_equal_bits(values(by_place), values(by_name))


def test_may_be_subclassed():
    class Slow(nn.Adam):
        def __init__(self, params):
            super().__init__(params, learning_rate=0.001)

    optimizer = Slow(parameters())
    run(optimizer, range(1))
    assert isinstance(optimizer, nn.Adam) and optimizer.global_step.tolist() == [1]


@pytest.mark.parametrize("compiled", [False, True])
def test_an_argument_that_is_set_counts_from_the_next_step_on(compiled):
    parameter = muster.Parameter(numbers(1, (4,)), name="w")
    optimizer = nn.Momentum([parameter], 0.1, 0.9)

    def one(gradient):
        return optimizer((gradient,))

    step = muster.jit(one) if compiled else one
    weight, moment = numbers(1, (4,)), numpy.zeros(4, numpy.float32)
    for number, momentum in enumerate([0.9, 0.5, muster.Tensor(0.25), muster.Tensor([0.75])]):
        optimizer.momentum = momentum
        gradient = numbers(10 + number, (4,))
        step(muster.Tensor(gradient))
        moment = moment * numpy.float32([0.9, 0.5, 0.25, 0.75][number]) + gradient
        weight = weight - numpy.float32(0.1) * moment
    numpy.testing.assert_allclose(parameter.asnumpy(), weight, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_decay_that_is_set_counts_from_the_next_step_on(name):
    decays = [0.0, 0.0, 0.1, 0.1]
    set_later, always_new = parameters(), parameters()
    optimizer = made(name, set_later)
    for step, decay in enumerate(decays):
        optimizer.weight_decay = muster.Tensor(decay) if step == 3 else decay
        run(optimizer, [step])
    state = {}
    for step, decay in enumerate(decays):
        optimizer = made(name, always_new, weight_decay=decay)
        muster.load_param_into_net(optimizer, state, strict=step > 0)
        run(optimizer, [step])
        state = {each.name: muster.Tensor(each.asnumpy()) for each in optimizer.get_parameters()}
    assert_equal_bits(values(set_later), values(always_new))


def test_a_decay_that_is_set_leaves_groups_with_their_own_and_names_of_norms_alone():
    weight, bias, gamma = parameters()
    groups = [{"params": [weight], "weight_decay": 0.0}, {"params": [bias, gamma]}]
    before = values([weight, bias, gamma])
    optimizer = nn.SGD(groups, 1.0)
    optimizer.weight_decay = 0.5
    optimizer(tuple(muster.ops.zeros_like(each) for each in (weight, bias, gamma)))
    assert_equal_bits(values([weight, bias, gamma]), [before[0], before[1] / 2, before[2] / 2])
    weight, bias, gamma = parameters()
    optimizer = nn.SGD([weight, gamma], 1.0)
    optimizer.weight_decay = 0.5
    optimizer((muster.ops.zeros_like(weight), muster.ops.zeros_like(gamma)))
    assert_equal_bits(values([weight, gamma]), [before[0] / 2, before[2]])


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda p: setattr(nn.SGD(p), "weight_decay", -1.0), ValueError, "weight_decay.*-1"),
        (lambda p: setattr(nn.SGD(p), "weight_decay", "much"), TypeError, "set to a number, not to str"),
        (lambda p: setattr(nn.SGD(p[2:]), "weight_decay", 0.1), ValueError, "for no parameter"),
        (lambda p: setattr(nn.Momentum(p, 0.1, 0.9), "momentum", -1.0), ValueError, "momentum must be"),
        (lambda p: setattr(nn.Adam(p), "beta1", "much"), TypeError, "beta1 must be float"),
        (lambda p: setattr(nn.SGD(p, 0.1), "momentum", 0.9), ValueError, "keeps other state.*new optimizer"),
        (
            lambda p: setattr(nn.Momentum(p, 0.1, 0.9), "momentum", p[0]),
            NotImplementedError,
            "set to a number, not to a Parameter",
        ),
    ],
)
def test_an_argument_that_cannot_be_set_says_why_and_stays(change, kind, words):
    with pytest.raises(kind, match=words):
        change(parameters())
