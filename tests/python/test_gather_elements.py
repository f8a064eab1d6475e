"""gather_elements, under all its names, beside numpy.take_along_axis."""

import numpy
import pytest

import muster
from muster import ops

X = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("dtype", [numpy.int32, numpy.int64])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_it_is_numpys_take_along_axis(axis, dtype):
    index = numpy.random.default_rng(axis % 3).integers(-X.shape[axis], X.shape[axis], X.shape).astype(dtype)
    expected = numpy.take_along_axis(X, index.astype(numpy.int64), axis)
    x = muster.Tensor(X)
    assert (ops.gather_elements(x, muster.Tensor(index), axis).asnumpy() == expected).all()
    assert (x.gather_elements(axis, muster.Tensor(index)).asnumpy() == expected).all()


def test_the_gradient_adds_up():
    index = muster.Tensor(numpy.array([[0, 0, 2], [1, 1, 1]], numpy.int32))
    weights = muster.Tensor(numpy.array([[1, 2, 3], [4, 5, 6]], numpy.float32))

    def loss(x):
        return ops.reduce_sum(ops.gather_elements(x, index, 1) * weights)

    _, gradient = muster.value_and_grad(loss)(muster.Tensor(numpy.zeros((2, 3), numpy.float32)))
    assert gradient.asnumpy().tolist() == [[3, 0, 3], [0, 15, 0]]


def test_an_index_out_of_range_is_named():
    with pytest.raises(ValueError, match=r"gather_elements: index 3 .* out of range for axis 0, which has 2"):
        ops.gather_elements(muster.Tensor([1.0, 2.0]), muster.Tensor([3]), 0)


def test_mindspores_names(run_with_mindspore):
    run_with_mindspore("""
        x = Tensor(numpy.arange(6).reshape(2, 3).astype(numpy.float32))
        index = Tensor(numpy.array([[0, -1], [2, 1]], numpy.int32))
        for y in (
            ops.gather_elements(x, 1, index),
            ops.gather_elements(input=x, dim=1, index=index),
            ops.gather_d(x, 1, index),
            ops.GatherD()(x, 1, index),
            x.gather_elements(dim=1, index=index),
        ):
            assert y.asnumpy().tolist() == [[0, 2], [5, 4]]
    """)
