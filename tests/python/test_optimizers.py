"""Optimizers from Python: what they take, what they keep, what they refuse."""

import numpy
import pytest

import muster
from muster import nn, ops


def weight(values, name="weight"):
    return muster.Parameter(numpy.array(values, numpy.float32), name=name)


def tensor(*values):
    return muster.Tensor(numpy.array(values, numpy.float32))


def test_rates_may_be_numbers_tensors_lists_and_schedules():
    rates = [
        0.5,
        muster.Tensor(0.5),
        numpy.float32(0.5),
        [0.5, 0.25],
        (rate for rate in (0.5, 0.25)),
        tensor(0.5, 0.25),
    ]
    for rate in rates:
        p = weight([1.0])
        nn.SGD([p], learning_rate=rate)(tensor(1.0))
        assert p.tolist() == [0.5]


def test_a_schedule_may_be_written_in_python():
    class Halving(nn.LearningRateSchedule):
        def construct(self, global_step):
            return 1.0 / (1.0 + global_step.astype(muster.float32))

    p = weight([0.0])
    optimizer = nn.SGD([p], Halving())
    seen = []
    for _ in range(3):
        optimizer(tensor(-6.0))
        seen.append(p.tolist()[0])
    assert seen == [6.0, 9.0, 11.0]
    assert optimizer.global_step.tolist() == [3]
    assert optimizer.get_lr().item() == 0.25


def test_a_list_that_is_too_short_says_so():
    p = weight([1.0])
    optimizer = nn.Momentum([p], [0.5], 0.0)
    optimizer(tensor(1.0))
    with pytest.raises(ValueError, match=r"1 learning.*rates.*step 1"):
        optimizer(tensor(1.0))


def test_groups_have_rates_of_their_own_and_an_order():
    a, b = weight([1.0], "a"), weight([1.0], "b")
    optimizer = nn.SGD(
        [{"params": [a], "lr": 0.5, "weight_decay": 1.0}, {"params": [b]}, {"order_params": [b, a]}],
        learning_rate=0.25,
    )
    assert [parameter.name for parameter in optimizer.parameters] == ["b", "a"]
    optimizer((tensor(1.0), tensor(0.0)))
    assert (b.tolist(), a.tolist()) == ([0.75], [0.5])
    assert [rate.item() for rate in optimizer.learning_rate] == [0.25, 0.5]
    assert [rate.item() for rate in optimizer.get_lr()] == [0.25, 0.5]
    assert optimizer.is_group


@pytest.mark.parametrize(
    ("params", "kind", "message"),
    [
        ([], ValueError, r"SGD\(params\) is empty"),
        ([{"params": []}], ValueError, "is empty"),
        ([{"lr": 0.1}], KeyError, "needs the key 'params'"),
        ([{"params": [weight([1.0])], "rate": 0.1}], KeyError, "not 'rate'"),
        ([{"params": [weight([1.0])]}, {"order_params": [], "lr": 1}], ValueError, "no other key"),
        ([{"params": [weight([1.0])]}, weight([1.0])], TypeError, "not both"),
        ([3], TypeError, "takes Parameters, not int"),
    ],
)
def test_groups_that_make_no_sense_are_refused(params, kind, message):
    with pytest.raises(kind, match=message):
        nn.SGD(params)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda p: nn.SGD(p, -0.1), ValueError, r"SGD.*learning_rate.*least 0.*-0\.1"),
        (lambda p: nn.SGD(p, "fast"), TypeError, "LearningRateSchedule, not str"),
        (lambda p: nn.SGD(p, weight_decay="much"), TypeError, r"number.*cell"),
        (lambda p: nn.Adam(p, beta1=1.0), ValueError, r"beta1.*\(0, 1\).*not 1"),
        (lambda p: nn.WarmUpLR(0.1, 0), ValueError, r"warmup_steps.*least 1.*not 0"),
        (lambda p: nn.CosineDecayLR(0.2, 0.1, 4), ValueError, r"max_lr.*above.*min_lr = 0\.2.*0\.1"),
        (lambda p: nn.warmup_lr(0.1, 0, 1, 1), ValueError, r"total_step.*least 1.*not 0"),
    ],
)
def test_arguments_are_checked_when_the_optimizer_is_made(make, kind, message):
    with pytest.raises(kind, match=message):
        make([weight([1.0])])


@pytest.mark.parametrize("argument", ["use_lazy", "use_offload"])
def test_adam_takes_what_changes_nothing_on_processors(argument):
    """As scripts of Wide&Deep say for tables on parameter servers."""
    p, q = weight([1.0]), weight([1.0])
    optimizer, plain = nn.Adam([p], 0.1, **{argument: True}), nn.Adam([q], 0.1)
    for gradient in (1.0, -3.0):
        optimizer(tensor(gradient))
        plain(tensor(gradient))
    assert p.asnumpy() == q.asnumpy()


def test_the_rate_is_a_parameter_that_can_be_written():
    p = weight([1.0])
    optimizer = nn.Adagrad([p], learning_rate=0.5)
    optimizer.learning_rate = 0.0
    optimizer(tensor(1.0))
    assert p.tolist() == [1.0]
    optimizer.learning_rate.set_data(0.5)
    optimizer(tensor(1.0))
    assert p.tolist() != [1.0]
    scheduled = nn.SGD([p], nn.WarmUpLR(0.1, 2))
    with pytest.raises(ValueError, match="not one number"):
        scheduled.learning_rate = 0.1


def test_lars_asks_its_filter():
    a, b = weight([3.0, 4.0], "a"), weight([3.0, 4.0], "b")
    asked = []

    def only_b(parameter):
        asked.append(parameter.name)
        return parameter is b

    optimizer = nn.LARS(nn.SGD([a, b], 1.0), epsilon=1e-9, coefficient=0.5, lars_filter=only_b)
    optimizer((tensor(0.0, 1.0), tensor(0.0, 1.0)))
    assert asked == ["a", "b"]
    assert a.tolist() == [3.0, 3.0]
    assert b.tolist() == [3.0, pytest.approx(1.5)]


def test_an_optimizer_may_be_written_in_python():
    class Plain(nn.Optimizer):
        def __init__(self, params, learning_rate):
            super().__init__(learning_rate, params, weight_decay=0.5)

        def construct(self, gradients):
            rate = self.get_lr()
            stepped = self.decay_weight(gradients)
            self.count_step()
            return [rate * gradient for gradient in stepped]

    p = weight([2.0])
    optimizer = Plain([p], 0.5)
    assert [step.tolist() for step in optimizer((tensor(3.0),))] == [[2.0]]
    assert optimizer.global_step.tolist() == [1]


def test_gradients_are_clipped_by_the_length_of_all_together():
    gradients = (tensor(3.0, 0.0), tensor(4.0))
    clipped = ops.clip_by_global_norm(gradients, 2.5)
    assert [part.tolist() for part in clipped] == [[1.5, 0.0], [2.0]]
    assert [part.tolist() for part in ops.clip_by_global_norm(list(gradients), 10)] == [[3.0, 0.0], [4.0]]
    assert ops.clip_by_norm(tensor(3.0, 4.0), 2.5).tolist() == pytest.approx([1.5, 2.0], rel=1e-6)
    assert ops.clip_by_norm(tensor(3.0, 4.0), 10.0).tolist() == [3.0, 4.0]
    greatest = ops.clip_by_norm(tensor(3.0, -4.0), 2.0, float("inf"))
    assert greatest.tolist() == pytest.approx([1.5, -2.0], rel=1e-6)
    with pytest.raises(ValueError, match=r"clip_norm.*above 0"):
        ops.clip_by_global_norm(gradients, 0.0)


def test_parameters_are_written_in_place():
    p = weight([1.0, 2.0])
    ops.assign_add(p, tensor(1.0, 1.0))
    assert p.tolist() == [2.0, 3.0]
    ops.assign(p, tensor(5.0, 6.0))
    assert p.tolist() == [5.0, 6.0]
    with pytest.raises(ValueError, match=r"assign.*value"):
        ops.assign(p, tensor(1.0))
