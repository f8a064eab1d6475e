"""Matrices kept by rows and ragged tensors: numbers as MindSpore's, which has no answer for ragged ones."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor
from mindspore.ops.operations import sparse_ops

INTEGERS, FLOATS = (np.int32, np.int64), (np.float32, np.float64)


@pytest.fixture(params=INTEGERS, ids=["int32", "int64"])
def whole(request):
    return lambda *values: Tensor(np.array(values, request.param))


@pytest.fixture(params=FLOATS, ids=["float32", "float64"])
def real(request):
    return lambda *values: Tensor(np.array(values, request.param))


def batch(whole, real):
    return (
        whole(2, 2, 4),
        whole(0, 3, 6),
        whole(0, 1, 3, 0, 1, 3),
        whole(1, 2, 3, 1, 2, 3),
        real(1, 4, 3, 1, 4, 3),
    )


def matrix(whole, real):
    return whole(3, 4), whole(0, 4), whole(0, 2, 2, 4), whole(0, 3, 1, 2), real(1, 2, 3, 4)


def lists(made):
    return [each.asnumpy().tolist() for each in made]


def test_a_batch_becomes_places_and_comes_back(whole, real):
    given = batch(whole, real)
    places, values, shape = sparse_ops.CSRSparseMatrixToSparseTensor()(*given)
    assert places.asnumpy().tolist() == [[0, 0, 1], [0, 1, 2], [0, 1, 3], [1, 0, 1], [1, 1, 2], [1, 1, 3]]
    back = sparse_ops.SparseTensorToCSRSparseMatrix()(places, values, shape)
    assert lists(back) == lists(given)
    assert [each.dtype for each in back] == [each.dtype for each in given]


def test_a_matrix_is_transposed(whole, real):
    made = sparse_ops.SparseMatrixTranspose()(*matrix(whole, real))
    assert lists(made) == [[4, 3], [0, 4], [0, 1, 2, 3, 4], [0, 2, 2, 0], [1, 3, 4, 2]]


def test_the_values_of_each_batch_are_counted(whole, real):
    made = sparse_ops.SparseMatrixNNZ()(*batch(whole, real))
    assert made.dtype == ms.int32 and made.asnumpy().tolist() == [3, 3]


def test_a_softmax_is_over_the_values_that_a_row_has(whole, real):
    given = matrix(whole, real)
    made = sparse_ops.SparseMatrixSoftmax(given[-1].dtype)(*given)[-1]
    assert np.allclose(made.asnumpy(), [0.26894, 0.73106, 0.26894, 0.73106], atol=1e-5)


def test_matrices_are_added_where_either_has_a_value(whole, real):
    other = whole(3, 4), whole(0, 3), whole(0, 1, 2, 3), whole(3, 1, 2), real(5, 6, 7)
    factors = real(2).reshape(()), real(3).reshape(())
    made = sparse_ops.SparseMatrixAdd()(*matrix(whole, real), *other, *factors)
    assert lists(made) == [[3, 4], [0, 5], [0, 2, 3, 5], [0, 3, 1, 1, 2], [2, 19, 18, 6, 29]]


@pytest.mark.parametrize(
    "types, partitions, sizes, expected",
    [
        (["ROW_SPLITS"], [[0, 3, 3, 5]], [3, 4], [[1, 2, 3, 7], [7] * 4, [4, 5, 7, 7]]),
        (["ROW_SPLITS"], [[0, 3, 3, 5]], [2, 2], [[1, 2], [7, 7]]),
        (["ROW_SPLITS"], [[0, 3, 3, 5]], [-1, -1], [[1, 2, 3], [7] * 3, [4, 5, 7]]),
        (["FIRST_DIM_SIZE", "VALUE_ROWIDS"], [3, [0, 0, 2, 2, 2]], [3, 3], [[1, 2, 7], [7] * 3, [3, 4, 5]]),
        (["ROW_SPLITS"] * 2, [[0, 2, 3], [0, 1, 3, 5]], [2, 2, 2], [[[1, 7], [2, 3]], [[4, 5], [7, 7]]]),
    ],
)
def test_ragged_rows_are_filled_with_the_default(types, partitions, sizes, expected, whole, real):
    given = tuple(whole(*each) if isinstance(each, list) else whole(each) for each in partitions)
    op = sparse_ops.RaggedTensorToTensor(types)
    made = op(whole(*sizes), real(1, 2, 3, 4, 5), real(7).reshape(()), given)
    assert made.asnumpy().tolist() == expected
