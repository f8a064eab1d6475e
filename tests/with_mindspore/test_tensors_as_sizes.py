"""Tensors where axes, shapes and sizes are asked for; answers as MindSpore 2.7.0 gives them."""

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


@pytest.mark.parametrize("name", OVER_AXES)
@pytest.mark.parametrize("axes", [(0, 1), (2,), (-1, 0)])
def test_a_tensor_names_axes_as_a_tuple_does(name, axes):
    function, wanted = OVER_AXES[name]
    assert np.array_equal(function(Tensor(X), Tensor(axes)).asnumpy(), wanted(X, axes))
