"""Lists between the brackets of a tensor, as MindSpore 2.7.0 reads them in both of its modes."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
READ_AS = {
    "a list in a list": ([[0, 1]], ([0, 1],)),
    "two lists": ([[0, 1], [1, 2]], ([0, 1], [1, 2])),
    "lists of several axes": ([[[0, 1]], [[1, 2]]], ([[0, 1]], [[1, 2]])),
    "tuples": ([(0, 1), (1, 2)], ([0, 1], [1, 2])),
    "lists of other lengths": ([[0, 1], [1]], ([0, 1], [1])),
    "a list and a number": ([[0, 1], 1], ([0, 1], 1)),
    "a list and a slice": ([[0, 1], slice(0, 2)], ([0, 1], slice(0, 2))),
    "a list and a new axis": ([[1, 2], None], ([1, 2], None)),
    "a number and dots": ([0, ...], (0, ...)),
    "a mask": ([[True, False, True]], ([True, False, True],)),
    "tensors": ([Tensor([0, 1]), Tensor([1, 2])], ([0, 1], [1, 2])),
    "a tensor and a number": ([Tensor(0), 1], (0, 1)),
    "numbers": ([0, 1], ([0, 1],)),
}


class Part(nn.Cell):
    def __init__(self, index):
        super().__init__()
        self.index = index

    def construct(self, x):
        return x[self.index]


def places(index):
    return tuple(np.array(entry) if isinstance(entry, list) else entry for entry in index)


@pytest.mark.parametrize("case", READ_AS)
def test_a_list_that_holds_more_than_numbers_is_a_tuple_of_its_entries(case):
    given, read = READ_AS[case]
    wanted = X[places(read)]
    assert np.array_equal(Tensor(X)[given].asnumpy(), wanted)
    assert np.array_equal(ms.jit(Part(given).construct)(Tensor(X)).asnumpy(), wanted)
    x, expected = Tensor(X), X.copy()
    x[given] = -1.0
    expected[places(read)] = -1
    assert np.array_equal(x.asnumpy(), expected)


def test_lists_within_a_tuple_are_one_tensor_each():
    x = Tensor(X)
    assert x[[[0, 1], [1, 2]],].shape == (2, 2, 4, 5)
    assert x[0, [[0, 1], [1, 2]]].shape == (2, 2, 5)
