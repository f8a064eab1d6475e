"""Methods of Tensor under the names of arguments that MindSpore's overloads have."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, mint, ops

_X = Tensor([[1.0, 2.0], [3.0, 4.0]])


def _lists(tensors):
    return [each.asnumpy().tolist() for each in tensors]


def test_an_axis_may_be_called_dim():
    one = Tensor([1], ms.int32)
    assert _X.index_select(dim=0, index=one).tolist() == [[3, 4]]
    assert _X.index_select(1, one).tolist() == [[2], [4]]
    assert _X.repeat_interleave(2, dim=1).tolist() == [[1, 1, 2, 2], [3, 3, 4, 4]]
    assert _lists(_X.split([1, 1], dim=1)) == [[[1], [3]], [[2], [4]]]
    assert _lists(_X.split(1, 0)) == [[[1, 2]], [[3, 4]]]


def test_the_names_of_a_call_choose_among_the_two_ways_of_max_and_min():
    upper = Tensor([[True, True], [False, False]])
    assert _lists(_X.max(0)) == [[3, 4], [1, 1]]
    assert _lists(_X.max(0, True)) == _lists(_X.max(dim=0, keepdim=True)) == [[[3, 4]], [[1, 1]]]
    # A name of the older method asks for the values alone, also with its default.
    assert _X.max(0, initial=9).tolist() == [9, 9]
    assert _X.min(0, False, initial=9, where=upper).tolist() == [1, 2]
    assert _X.max(0, keepdims=True).tolist() == _X.max(0, True, where=True).tolist() == [[3, 4]]
    assert _X.max(0, True, return_indices=False).tolist() == [[3, 4]]
    assert _lists(_X.max(axis=1, initial=3.5, return_indices=True))[0] == [3.5, 4]
    assert _X.max(None, True).shape == _X.min(keepdims=True).shape == ()


def test_itemset_gives_another_tensor():
    assert _X.itemset((0, 1), 9.0).tolist() == [[1, 9], [3, 4]]
    assert _X.itemset(2, 9.0).tolist() == [[1, 2], [9, 4]]
    assert Tensor([5.0]).itemset(6).tolist() == [6]
    assert _X.tolist() == [[1, 2], [3, 4]]


def test_itemset_of_a_place_that_is_not_there_is_an_error():
    with pytest.raises(IndexError, match="of 4"):
        _X.itemset(3.0)
    with pytest.raises(ValueError, match="1 numbers name no element of a tensor of 2 axes"):
        _X.itemset((0,), 3.0)


def test_round_of_a_tensor_is_a_tensor():
    assert round(Tensor([2.5, 3.56])).tolist() == [2, 4]
    assert round(Tensor([2.25], ms.float64), 1).tolist() == [2.2]


def test_numbers_of_a_cauchy_distribution_have_the_shape_and_dtype_of_the_tensor():
    drawn = Tensor([[1.0, 2.0, 3.0]], ms.float64).cauchy(2.0, 0.5)
    assert (drawn.shape, drawn.dtype) == ((1, 3), ms.float64)


_NO = Tensor([[False, True], [True, False]])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: x.isclose(x2=x), [[True, True], [True, True]]),
        (lambda x: (x > 1).logical_and(y=x < 4), [[False, True], [True, False]]),
        (lambda x: (x < 2).logical_or(y=x > 3), [[True, False], [False, True]]),
        (lambda x: x.masked_scatter(mask=_NO, source=Tensor([8.0, 9.0])), [[1, 8], [9, 4]]),
        (lambda x: x.matmul(tensor2=x), [[7, 10], [15, 22]]),
        (lambda x: x.mm(mat2=x), [[7, 10], [15, 22]]),
        (lambda x: x.nansum(dim=1, keepdim=True), [[3], [7]]),
        (lambda x: x.narrow(dim=0, start=1, length=1), [[3, 4]]),
        (lambda x: x.new_ones((2,), ms.int32), [1, 1]),
        (lambda x: x.repeat(repeats=(1, 2)), [[1, 2, 1, 2], [3, 4, 3, 4]]),
        (lambda x: x.repeat_interleave(2, dim=1, output_size=4), [[1, 1, 2, 2], [3, 3, 4, 4]]),
        (lambda x: x.reshape(shape=(4,)), [1, 2, 3, 4]),
        (lambda x: x.scatter(1, Tensor([[0], [1]]), x[:, 1:], "add"), [[3, 2], [3, 8]]),
        (lambda x: x.scatter_add(Tensor([[0, 0]], ms.int32), Tensor([9.0])), [[10, 2], [3, 4]]),
        (
            lambda x: x.scatter_add(indices=Tensor([[0, 0]], ms.int32), updates=Tensor([9.0])),
            [[10, 2], [3, 4]],
        ),
        (lambda x: x.scatter_add(1, Tensor([[0], [1]]), x[:, 1:]), [[3, 2], [3, 8]]),
        (lambda x: x.sort(1, True, True)[0], [[2, 1], [4, 3]]),
        (lambda x: x.sub(y=x), [[0, 0], [0, 0]]),
        (lambda x: x.subtract(x, 2), [[-1, -2], [-3, -4]]),
        (lambda x: x.copy().sub_(x, 2), [[-1, -2], [-3, -4]]),
        (lambda x: x.copy().div_(2, "floor"), [[0, 1], [1, 2]]),
        (lambda x: x.sum(1, True, dtype=ms.int32), [[3], [7]]),
        (lambda x: x.sum(1, ms.int32, True, 5), [[8], [12]]),
        (lambda x: x.sum(dtype=ms.int32), 10),
        (lambda x: x.take(index=Tensor([0, 3])), [1, 4]),
        (lambda x: x.tile(dims=(2, 1)), [[1, 2], [3, 4], [1, 2], [3, 4]]),
        (lambda x: x.tile(reps=(1, 2)), [[1, 2, 1, 2], [3, 4, 3, 4]]),
        (lambda x: x.transpose(axes=(1, 0)), [[1, 3], [2, 4]]),
        (lambda x: x.transpose(0, dim1=1), [[1, 3], [2, 4]]),
        (lambda x: x.true_divide(other=2), [[0.5, 1], [1.5, 2]]),
        (lambda x: x.unsqueeze(axis=0), [[[1, 2], [3, 4]]]),
        (lambda x: x.where(condition=_NO, other=0.0), [[0, 2], [3, 0]]),
    ],
)
def test_arguments_of_all_overloads_have_their_names_and_places(call, expected):
    assert call(_X).tolist() == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: ops.softshrink(input=x, lambd=1.5), [[0, 0.5], [1.5, 2.5]]),
        (lambda x: ops.hardshrink(input=x, lambd=2.5), [[0, 0], [3, 4]]),
        (lambda x: ops.expand(input_x=x[:1], size=(2, 2)), [[1, 2], [1, 2]]),
        (lambda x: ops.dstack(tensors=(x, x))[0], [[1, 1], [2, 2]]),
        (lambda x: ops.row_stack(tensors=(x[0], x[1])), [[1, 2], [3, 4]]),
        (lambda x: ops.swapdims(x, dim0=0, dim1=1), [[1, 3], [2, 4]]),
        (lambda x: ops.mm(input=x, mat2=x), [[7, 10], [15, 22]]),
        (lambda x: mint.mm(input=x, mat2=x), [[7, 10], [15, 22]]),
        (lambda x: mint.bmm(input=x[None], mat2=x[None]), [[[7, 10], [15, 22]]]),
        (lambda x: mint.mv(input=x, vec=x[0]), [5, 11]),
        (lambda x: mint.narrow(input=x, dim=0, start=1, length=1), [[3, 4]]),
        (lambda x: mint.sqrt(input=x * x), [[1, 2], [3, 4]]),
        (lambda x: mint.frac(input=x + 0.5), [[0.5, 0.5], [0.5, 0.5]]),
    ],
)
def test_functions_take_their_arguments_by_the_names_of_mindspore(call, expected):
    assert call(_X).tolist() == expected
