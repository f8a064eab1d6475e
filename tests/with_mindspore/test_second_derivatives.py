"""Gradients of gradients through layers whose gradients are fused."""

import mindspore
import numpy
import pytest
from mindspore import Tensor, nn, ops

MODES = pytest.mark.parametrize("mode", [mindspore.GRAPH_MODE, mindspore.PYNATIVE_MODE])


def numbers(*sizes, seed=0):
    return Tensor(numpy.random.RandomState(seed).randn(*sizes).astype(numpy.float32))


def normalized_by_hand(x, gamma, beta):
    """BatchNorm in training, of ops that have gradients of any order."""
    axes = (0, 2, 3)
    away = x - x.mean(axes, keep_dims=True)
    variance = ops.square(away).mean(axes, keep_dims=True)
    return away * ops.rsqrt(variance + 1e-5) * gamma.reshape(1, -1, 1, 1) + beta.reshape(1, -1, 1, 1)


def penalty_of(layer, x, *weights):
    """A gradient penalty: how steep a bent function of the layer is at x."""

    def steep(x, *weights):
        gradient = mindspore.grad(lambda x: (layer(x, *weights) ** 3).sum())(x)
        return (ops.sqrt(ops.square(gradient).sum((1, 2, 3)) + 1e-6) - 1).pow(2).mean()

    value, found = mindspore.value_and_grad(steep, tuple(range(1 + len(weights))))(x, *weights)
    return value, found if isinstance(found, tuple) else (found,)


def require_near(found, wanted):
    greatest = max(numpy.abs(each.asnumpy()).max() for each in wanted)
    for each, by_hand in zip(found, wanted, strict=True):
        assert numpy.abs(each.asnumpy() - by_hand.asnumpy()).max() <= 1e-5 * greatest


@MODES
def test_a_gradient_penalty_passes_through_batch_norm(mode):
    mindspore.set_context(mode=mode)
    x, gamma, beta = numbers(3, 2, 4, 4), numbers(2, seed=1), numbers(2, seed=2)
    net = nn.BatchNorm2d(2)
    net.set_train()

    def fused(x, gamma, beta):
        zero, one = Tensor([0.0, 0.0]), Tensor([1.0, 1.0])
        return ops.batch_norm(x, zero, one, gamma, beta, training=True, eps=1e-5)

    loss, gradients = penalty_of(fused, x, gamma, beta)
    wanted, by_hand = penalty_of(normalized_by_hand, x, gamma, beta)
    require_near([loss, *gradients], [wanted, *by_hand])
    loss, gradients = penalty_of(net, x)  # gamma is 1, beta 0
    wanted, by_hand = penalty_of(normalized_by_hand, x, Tensor([1.0, 1.0]), Tensor([0.0, 0.0]))
    require_near([loss, gradients[0]], [wanted, by_hand[0]])


@MODES
@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 1), (3, 2)])
def test_a_gradient_penalty_passes_through_max_pooling(mode, kernel, stride):
    mindspore.set_context(mode=mode)
    x = numbers(2, 3, 6, 6)
    pooling = nn.MaxPool2d(kernel, stride)

    def by_hand(x):
        windows = [
            x[:, :, i : i + 6 - kernel + 1 : stride, j : j + 6 - kernel + 1 : stride]
            for i in range(kernel)
            for j in range(kernel)
        ]
        return ops.amax(ops.stack(windows), 0)

    loss, gradients = penalty_of(pooling, x)
    wanted, expected = penalty_of(by_hand, x)
    require_near([loss, gradients[0]], [wanted, expected[0]])


@MODES
def test_third_derivatives_pass_through_batch_norm(mode):
    mindspore.set_context(mode=mode)
    x = numbers(3, 2, 1, 2)
    net = nn.BatchNorm2d(2)
    net.set_train()

    def third(layer):
        first = mindspore.grad(lambda x: (layer(x) ** 3).sum())
        second = mindspore.grad(lambda x: (first(x) * ops.sin(x)).sum())
        return mindspore.grad(lambda x: (second(x) * ops.cos(x)).sum())(x)

    require_near(
        [third(net)], [third(lambda x: normalized_by_hand(x, Tensor([1.0, 1.0]), Tensor([0.0, 0.0])))]
    )


class _Two(nn.Cell):
    def construct(self, x, y):
        return x**3 + y, x * 3


def test_cells_of_products_with_jacobians_give_what_mindspore_gives():
    class One(nn.Cell):
        def construct(self, x):
            return x**2

    x, v = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[1.0, 1.0], [1.0, 2.0]])
    outputs, products = nn.Jvp(One())(x, v)
    assert outputs.asnumpy().tolist() == [[1, 4], [9, 16]]
    assert products.asnumpy().tolist() == [[2, 4], [6, 16]]
    outputs, (first, second) = nn.Jvp(_Two())(x, x, (v, v))
    assert first.asnumpy().tolist() == [[4, 13], [28, 98]]  # 3 x^2 v + v
    assert second.asnumpy().tolist() == [[3, 3], [3, 6]]
    outputs, products = nn.Vjp(One())(x, v)
    assert products.asnumpy().tolist() == [[2, 4], [6, 16]]
    outputs, (of_x, of_y) = nn.Vjp(_Two())(x, x, (v, v))
    assert outputs[1].asnumpy().tolist() == [[3, 6], [9, 12]]
    assert of_x.asnumpy().tolist() == [[6, 15], [30, 102]]  # 3 x^2 v + 3 v
    assert of_y.asnumpy().tolist() == v.asnumpy().tolist()


@MODES
def test_a_tensor_that_is_given_twice_is_two_inputs(mode):
    mindspore.set_context(mode=mode)

    def product(a, b):
        return (a**2 * b).sum()

    def values(gradients):
        return [each.asnumpy().tolist() for each in gradients]

    @mindspore.jit
    def compiled(a):
        return mindspore.grad(product, (0, 1))(a, a)

    x = Tensor([1.0, 2.0])
    wanted = [[2.0, 8.0], [1.0, 4.0]]  # 2 a b and a^2
    assert values(mindspore.grad(product, (0, 1))(x, x)) == wanted
    assert values(compiled(x)) == wanted
    assert values([mindspore.grad(product, 0)(x, x), mindspore.grad(product, 1)(x, x)]) == wanted
    assert values(mindspore.vjp(lambda a, b: a**2 * b, x, x)[1](x * 0 + 1)) == wanted
    assert values(mindspore.jvp(lambda a, b: a**2 * b, (x, x), (x, x * 0))) == [[1.0, 8.0], [2.0, 16.0]]
    second = mindspore.grad(lambda c: mindspore.grad(product, 0)(c, c).sum())(x)  # of 2 c^2
    assert second.asnumpy().tolist() == [4.0, 8.0]
    assert values([mindspore.grad(lambda a, b: (a * b).sum(), 0)(x, x)]) == [[1.0, 2.0]]
