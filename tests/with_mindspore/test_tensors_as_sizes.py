"""Tensors where axes, shapes and sizes are asked for; answers as MindSpore 2.7.0 gives them."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, ops

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
OVER_AXES = {
    "Tensor.sum": (lambda x, axes: x.sum(axes), np.sum),
    "Tensor.mean": (lambda x, axes: x.mean(axes), np.mean),
    "Tensor.amax": (lambda x, axes: x.amax(axes), np.max),
    "Tensor.any": (lambda x, axes: (x > 20).any(axes), lambda x, axes: np.any(x > 20, axes)),
    "mint.sum": (mint.sum, np.sum),
    "mint.mean": (mint.mean, np.mean),
    "amin": (ops.amin, np.min),
}
OF_ROWS = {
    "sum": (ops.sum, np.sum),
    "reduce_sum": (ops.reduce_sum, np.sum),
    "mean": (ops.mean, np.mean),
    "prod": (ops.prod, np.prod),
    "ReduceMean": (ops.ReduceMean(), np.mean),
    "nansum": (ops.nansum, np.sum),
    "all": (lambda x, axes: ops.all(x > 3, axes), lambda x, axes: np.all(x > 3, axes)),
}
SIZED = {
    "reshape": (lambda x, sizes: ops.reshape(x, sizes), [4, 6], X.reshape(4, 6)),
    "Tensor.reshape": (lambda x, sizes: x.reshape(sizes), [4, -1], X.reshape(4, 6)),
    "mint.reshape": (mint.reshape, [4, 6], X.reshape(4, 6)),
    "tile": (ops.tile, [1, 2, 1], np.tile(X, (1, 2, 1))),
    "broadcast_to": (ops.broadcast_to, [2, 2, 3, 4], np.broadcast_to(X, (2, 2, 3, 4))),
    "fill": (lambda x, sizes: ops.fill(ms.float32, sizes, 2), [2, 3], np.full((2, 3), 2)),
    "pad": (ops.pad, [1, 1, 0, 2], np.pad(X, ((0, 0), (0, 2), (1, 1)))),
    "slice": (lambda x, begin: ops.slice(x, begin, Tensor([2, 1, 2])), [0, 1, 1], X[:, 1:2, 1:3]),
    "Slice": (lambda x, begin: ops.Slice()(x, begin, (2, 1, 2)), [0, 1, 1], X[:, 1:2, 1:3]),
}


@pytest.mark.parametrize("name", OVER_AXES)
@pytest.mark.parametrize("axes", [(0, 1), (2,), (-1, 0)])
def test_a_tensor_names_axes_as_a_tuple_does(name, axes):
    function, wanted = OVER_AXES[name]
    assert np.array_equal(function(Tensor(X), Tensor(axes)).asnumpy(), wanted(X, axes))


@pytest.mark.parametrize("name", OF_ROWS)
@pytest.mark.parametrize("axes", [(0, 1), (2,), (-1, 0)])
def test_a_tensor_names_the_axes_of_an_op_as_a_tuple_does(name, axes):
    function, wanted = OF_ROWS[name]
    assert np.array_equal(function(Tensor(X), Tensor(axes)).asnumpy(), wanted(X, axes))


@pytest.mark.parametrize("name", SIZED)
def test_a_tensor_says_sizes_as_a_tuple_does(name):
    function, sizes, wanted = SIZED[name]
    assert np.array_equal(function(Tensor(X), Tensor(sizes)).asnumpy(), wanted)


def test_a_tensor_of_two_axes_is_no_list_of_axes():
    with pytest.raises((TypeError, ValueError)):
        ops.sum(Tensor(X), Tensor([[0, 1]]))
