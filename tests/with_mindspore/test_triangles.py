"""Functions that read one triangle of a matrix, as MindSpore 2.7.0 does."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import ops

WHOLE = np.array([[2.0, 0.7, 0.1], [0.5, 3.0, 0.4], [0.3, 0.2, 1.5]], np.float32)


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_solve_reads_one_triangle_of_the_factor(upper):
    half = np.triu(WHOLE) if upper else np.tril(WHOLE)
    matrix = half.T @ half if upper else half @ half.T
    right = ms.Tensor(np.eye(3, dtype=np.float32))
    for factor in (WHOLE, half):
        found = ops.cholesky_solve(right, ms.Tensor(factor), upper).asnumpy()
        np.testing.assert_allclose(found, np.linalg.inv(matrix), 1e-5, 1e-6)
