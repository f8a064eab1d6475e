"""conv3d and conv3d_transpose beside sums by numpy; each is the other's transposed map, as gradients are."""

import itertools

import numpy
import pytest

import muster
from muster import ops

CASES = {
    "plain": {},
    "strides": {"stride": [2, 1, 3]},
    "padding of its own on each side": {"padding": [1, 0, 0, 2, 1, 1]},
    "dilation": {"dilation": [1, 2, 2]},
    "groups": {"group": 2},
    "all": {"stride": [1, 2, 2], "padding": [2, 1, 1, 0, 0, 1], "dilation": [2, 1, 2], "group": 2},
}


def normal(*shape):
    return numpy.random.default_rng(sum(shape)).standard_normal(shape)


def conv3d(x, weight, stride=(1, 1, 1), padding=(0,) * 6, dilation=(1, 1, 1), group=1):
    pads = [(0, 0), (0, 0), *zip(padding[::2], padding[1::2], strict=True)]
    x = numpy.pad(x, pads)
    sizes = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], weight.shape[2:], stride, dilation, strict=True)
    ]
    y = numpy.zeros((x.shape[0], weight.shape[0], *sizes))
    per_in, per_out = x.shape[1] // group, weight.shape[0] // group
    for place in itertools.product(*map(range, weight.shape[2:])):
        window = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, n, s in zip(place, dilation, sizes, stride, strict=True)
        )
        for g in range(group):
            seen = x[(slice(None), slice(g * per_in, (g + 1) * per_in), *window)]
            rows = slice(g * per_out, (g + 1) * per_out)
            y[:, rows] += numpy.einsum("ncdhw,oc->nodhw", seen, weight[(rows, slice(None), *place)])
    return y


def given(group=1, **_):
    return normal(2, 4, 6, 7, 8), normal(6, 4 // group, 2, 3, 2)


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64])
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_sum_over_the_kernel(name, dtype):
    x, weight = given(**CASES[name])
    y = ops.conv3d(muster.Tensor(x.astype(dtype)), muster.Tensor(weight.astype(dtype)), **CASES[name])
    near = 1e-5 if dtype is numpy.float32 else 1e-12
    numpy.testing.assert_allclose(y.asnumpy(), conv3d(x, weight, **CASES[name]), rtol=near, atol=near * 10)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_the_transposed_maps(name, dtype, compiled):
    """Both maps are linear: <conv3d(x', w), y> - <x', dx> = 0 for every x', and likewise for every weight."""
    x, weight = (array.astype(dtype) for array in given(**CASES[name]))
    y = normal(*conv3d(x, weight, **CASES[name]).shape).astype(dtype)

    def loss(x, weight):
        return ops.reduce_sum(ops.conv3d(x, weight, **CASES[name]) * muster.Tensor(y))

    graded = muster.value_and_grad(loss, (0, 1))
    _, (dx, dweight) = (muster.jit(graded) if compiled else graded)(muster.Tensor(x), muster.Tensor(weight))
    other_x, other_weight = normal(*x.shape) - 0.5, normal(*weight.shape) + 0.5
    near = 2e-4 if dtype is numpy.float32 else 1e-10
    expected = (conv3d(other_x, weight, **CASES[name]) * y).sum()
    assert (other_x * dx.asnumpy()).sum() == pytest.approx(expected, near, near)
    expected = (conv3d(x, other_weight, **CASES[name]) * y).sum()
    assert (other_weight * dweight.asnumpy()).sum() == pytest.approx(expected, near, near)
    transposed = ops.conv3d_transpose(muster.Tensor(y), muster.Tensor(weight), x.shape[2:], **CASES[name])
    numpy.testing.assert_allclose(transposed.asnumpy(), dx.asnumpy(), rtol=near, atol=near)


def test_a_transposed_convolution_has_gradients_too():
    y, weight = normal(1, 2, 2, 2, 2), normal(2, 3, 2, 2, 2)

    def loss(y, weight):
        return ops.reduce_sum(ops.square(ops.conv3d_transpose(y, weight, [3, 3, 3])))

    _, (dy, _) = muster.value_and_grad(loss, (0, 1))(muster.Tensor(y), muster.Tensor(weight))
    step = numpy.zeros_like(y)
    step[0, 1, 1, 0, 1] = 1e-6
    ends = [loss(muster.Tensor(y + sign * step), muster.Tensor(weight)).item() for sign in (1, -1)]
    assert dy.asnumpy()[0, 1, 1, 0, 1] == pytest.approx((ends[0] - ends[1]) / 2e-6, 1e-6)


def test_arguments_are_checked_by_name():
    x, weight = muster.Tensor(normal(1, 1, 2, 2, 2)), muster.Tensor(normal(1, 1, 1, 1, 1))
    with pytest.raises(ValueError, match=r"conv3d: strides? must be 3 numbers of at least 1, not \[1, 1\]"):
        ops.conv3d(x, weight, stride=[1, 1])
    with pytest.raises(ValueError, match=r"conv3d: group is 0; it must be at least 1"):
        ops.conv3d(x, weight, group=0)
    with pytest.raises(ValueError, match=r"x must be volumes \(N, C, D, H, W\), not \(1, 2, 2\)"):
        ops.conv3d(muster.Tensor(normal(1, 2, 2)), weight)
