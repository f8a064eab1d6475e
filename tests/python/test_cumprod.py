"""cumprod, under all its names, beside numpy.cumprod; its gradient beside differences."""

import numpy
import pytest

import muster
from muster import ops

X = numpy.array([[2, 0, 3, -1], [0, 4, 0, 5], [1.5, -2, 0.5, 3]], numpy.float64)


def cumprod(x, axis, exclusive=False, reverse=False):
    x = numpy.flip(x, axis) if reverse else x
    y = numpy.cumprod(x, axis)
    if exclusive:
        y = numpy.roll(y, 1, axis)
        numpy.moveaxis(y, axis, 0)[0] = 1
    return numpy.flip(y, axis) if reverse else y


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_values_and_gradients_also_beside_zeros(axis, exclusive, reverse):
    weights = numpy.random.default_rng(1).standard_normal(X.shape)

    def loss(x):
        y = ops.cumprod(x, axis, exclusive=exclusive, reverse=reverse)
        return ops.reduce_sum(y * muster.Tensor(weights))

    def difference(place):
        step = numpy.zeros_like(X)
        step[place] = 1  # a product is linear in each element: any step is exact
        ends = [cumprod(X + sign * step, axis, exclusive, reverse) for sign in (1, -1)]
        return ((ends[0] - ends[1]) * weights).sum() / 2

    y = ops.cumprod(muster.Tensor(X), axis, exclusive=exclusive, reverse=reverse)
    numpy.testing.assert_allclose(y.asnumpy(), cumprod(X, axis, exclusive, reverse))
    _, gradient = muster.value_and_grad(loss)(muster.Tensor(X))
    expected = numpy.array([difference(place) for place in numpy.ndindex(*X.shape)]).reshape(X.shape)
    numpy.testing.assert_allclose(gradient.asnumpy(), expected, rtol=1e-12, atol=1e-12)


def test_dtype_is_that_of_the_products():
    x = muster.Tensor(numpy.array([200, 2], numpy.uint8))
    y = x.cumprod(0, muster.int32)
    assert y.dtype == muster.int32 and y.asnumpy().tolist() == [200, 400]


def test_arguments_are_checked_by_name():
    x = muster.Tensor([1.0])
    with pytest.raises(TypeError, match=r"cumprod.*axis.*missing.*cumprod\(x, axis, "):
        ops.cumprod(x)
    with pytest.raises(TypeError, match=r"cumprod.*axis.*int.*str \('0'\)"):
        ops.cumprod(x, "0")
    with pytest.raises(TypeError, match=r"cumprod.*exclusive.*bool.*int \(1\)"):
        ops.cumprod(x, 0, exclusive=1)
    with pytest.raises(TypeError, match=r"cumprod.*argument dim=0"):
        ops.cumprod(x, dim=0)


def test_mindspores_names(run_with_mindspore):
    run_with_mindspore("""
        x = Tensor(numpy.array([2, 3, 4], numpy.float32))
        assert ops.cumprod(x, 0).asnumpy().tolist() == [2, 6, 24]
        assert ops.cumprod(input=x, dim=0, dtype=ms.int32).dtype == ms.int32
        assert x.cumprod(dim=0).asnumpy().tolist() == [2, 6, 24]
        assert ops.CumProd(exclusive=True)(x, 0).asnumpy().tolist() == [1, 2, 6]
        assert ops.CumProd(False, True)(x, 0).asnumpy().tolist() == [24, 12, 4]
        assert repr(ops.CumProd(True)) == "Prim[CumProd]<exclusive=True, reverse=False>"
    """)
