"""rms_norm, under all its names, beside numpy; its gradients beside differences."""

import numpy
import pytest

import muster
from muster import ops

RANDOM = numpy.random.default_rng(1)
X, GAMMA = RANDOM.standard_normal((2, 3, 4)), RANDOM.standard_normal((3, 4))


def rms_norm(x, gamma, epsilon=1e-6):
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    rstd = 1 / numpy.sqrt((x * x).mean(axes, keepdims=True) + epsilon)
    return x * rstd * gamma, rstd


@pytest.mark.parametrize(("dtype", "near"), [(numpy.float32, 1e-5), (numpy.float64, 1e-12)])
@pytest.mark.parametrize("gamma", [GAMMA, GAMMA[0]], ids=["two axes", "one axis"])
def test_it_is_numpys(gamma, dtype, near):
    y, rstd = ops.rms_norm(muster.Tensor(X.astype(dtype)), muster.Tensor(gamma.astype(dtype)), 1e-3)
    for found, expected in zip((y, rstd), rms_norm(X, gamma, 1e-3), strict=True):
        assert found.asnumpy().dtype == dtype and found.shape == expected.shape
        numpy.testing.assert_allclose(found.asnumpy(), expected, rtol=near, atol=near)


def test_gradients_of_both_inputs_through_both_outputs():
    weights = [RANDOM.standard_normal((2, 3, 4)), RANDOM.standard_normal((2, 1, 1))]

    def loss(x, gamma):
        y, rstd = ops.rms_norm(x, gamma)
        first, second = map(muster.Tensor, weights)
        return ops.reduce_sum(y * first) + ops.reduce_sum(rstd * second)

    def difference(which, place):
        ends = []
        for step in (1e-6, -1e-6):
            inputs = [X.copy(), GAMMA.copy()]
            inputs[which][place] += step
            y, rstd = rms_norm(*inputs)
            ends.append((y * weights[0]).sum() + (rstd * weights[1]).sum())
        return (ends[0] - ends[1]) / 2e-6

    _, gradients = muster.value_and_grad(loss, (0, 1))(muster.Tensor(X), muster.Tensor(GAMMA))
    for which, given in enumerate((X, GAMMA)):
        expected = [difference(which, place) for place in numpy.ndindex(*given.shape)]
        numpy.testing.assert_allclose(gradients[which].asnumpy().ravel(), expected, rtol=1e-6, atol=1e-8)


def test_bfloat16_is_normalized_in_float32():
    x, gamma = muster.Tensor(X.astype(numpy.float32)), muster.Tensor(GAMMA.astype(numpy.float32))
    low = ops.cast(x, muster.bfloat16)
    y, rstd = ops.rms_norm(low, gamma)
    wide, _ = ops.rms_norm(ops.cast(low, muster.float32), gamma)
    assert y.dtype == muster.bfloat16 and rstd.dtype == muster.float32
    numpy.testing.assert_allclose(
        ops.cast(y, muster.float32).asnumpy(), wide.asnumpy(), rtol=1 / 128, atol=1e-6
    )

    def loss(x, gamma):
        return ops.reduce_sum(ops.cast(ops.rms_norm(x, gamma)[0], muster.float32))

    _, (dx, dgamma) = muster.value_and_grad(loss, (0, 1))(low, gamma)
    assert dx.dtype == muster.bfloat16 and dgamma.dtype == muster.float32


def test_epsilon_has_a_range():
    with pytest.raises(ValueError, match=r"rms_norm.*epsilon.*-1.*least 0"):
        ops.rms_norm(muster.Tensor([1.0]), muster.Tensor([1.0]), epsilon=-1.0)
    with pytest.raises(TypeError, match=r"rms_norm.*argument.*eps=1e-05"):
        ops.rms_norm(muster.Tensor([1.0]), muster.Tensor([1.0]), eps=1e-5)


def test_mindspores_names(run_with_mindspore):
    run_with_mindspore("""
        x, gamma = Tensor([[3.0, 4.0]]), Tensor([1.0, 2.0])
        for y, rstd in (
            ops.rms_norm(x, gamma),
            ops.rms_norm(x, gamma=gamma, epsilon=1e-6),
            ops.RmsNorm()(x, gamma),
            ops.RmsNorm(epsilon=1e-6)(x, gamma),
        ):
            root = 12.5 ** 0.5
            numpy.testing.assert_allclose(y.asnumpy(), [[3 / root, 8 / root]], rtol=1e-5)
            numpy.testing.assert_allclose(rstd.asnumpy(), [[1 / root]], rtol=1e-5)
    """)
