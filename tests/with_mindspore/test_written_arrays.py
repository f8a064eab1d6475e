"""Arrays of tensors, which scripts scale, round and clip in place."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

_MADE = {
    "list": lambda: Tensor([[0.0, 0.0]]),
    "array": lambda: Tensor(np.zeros((1, 2))),
    "sum": lambda: Tensor([[-1.0, -1.0]]) + 1,
    "part": lambda: Tensor(np.zeros((2, 2)))[:1],
    "parameter": lambda: Parameter(Tensor(np.zeros((1, 2)))),
    "zeros": lambda: ops.zeros((1, 2), ms.int32),
    "bfloat16": lambda: Tensor([[0.0, 0.0]], ms.bfloat16),
    "prediction": lambda: ms.Model(nn.Dense(2, 2, "zeros", "zeros")).predict(Tensor([[1.0, 1.0]])),
}


@pytest.mark.parametrize("made", _MADE)
def test_the_array_of_a_tensor_may_be_written_and_the_tensor_stays_as_it_is(made):
    tensor = _MADE[made]()
    array = tensor.asnumpy()
    array[:, 0] += 3
    assert array.tolist() == [[3, 0]]
    assert tensor.asnumpy().tolist() == [[0, 0]]


def test_a_scalar_of_a_tensor_is_added_to_in_place():
    total = Tensor(1.0).asnumpy()
    total += 1
    assert total == 2


def test_gradients_of_a_with_grad_cell_are_those_of_training():
    net = nn.SequentialCell(nn.BatchNorm1d(2), nn.Dense(2, 1))
    rows, labels = Tensor([[1.0, 2.0], [3.0, 5.0]]), Tensor([[1.0], [0.0]])
    cell = nn.WithGradCell(net, nn.MSELoss())
    assert net.training
    given = [each.asnumpy() for each in cell(rows, labels)]
    loss = nn.WithLossCell(net, nn.MSELoss())
    wanted = ms.grad(loss, None, net.trainable_params())(rows, labels)
    for each, right in zip(given, wanted, strict=True):
        np.testing.assert_allclose(each, right.asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_tensor_of_one_number_has_no_entries():
    for number in (Tensor(1.0), Parameter(Tensor(3), name="p")):
        with pytest.raises(TypeError, match="iterate"):
            list(number)
    rows = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert [row.asnumpy().tolist() for row in rows] == [[1, 2], [3, 4]]
    first, _ = rows
    assert sum(first).asnumpy() == 3
    assert list(ops.zeros((0, 2))) == []


def test_gradients_go_through_the_entries():
    def product(x):
        first, second = x
        return first * second

    assert ms.grad(product)(Tensor([2.0, 5.0])).asnumpy().tolist() == [5, 2]
