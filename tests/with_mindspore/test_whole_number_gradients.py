"""Gradients of whole numbers and through them: what MindSpore 2.7.0 gives on a CPU in PYNATIVE_MODE."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, nn, ops

_LONG, _INT = Tensor([1, 2, 3]), Tensor([1, 2, 3], ms.int32)
_FLOAT = Tensor([1.5, 2.5, 3.5], ms.float32)
_BOOL = Tensor([True, False, True])


def _one_hot(x, w):
    return ops.one_hot(x, 3, Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)) * w


# A function, its inputs, and dtype and elements of the gradient of each.
_CASES = [
    (lambda x: x * x, [_LONG], [("int64", [2, 4, 6])]),
    (lambda x: x * x, [_INT], [("int32", [2, 4, 6])]),
    (lambda x: x * x, [Tensor([1, 2], ms.uint8)], [("uint8", [2, 4])]),
    (lambda x, y: x + y + x, [_LONG, _LONG], [("int64", [2, 2, 2]), ("int64", [1, 1, 1])]),
    (lambda x: 5 - (-x) * 3, [_LONG], [("int64", [3, 3, 3])]),
    (lambda x: x**2, [_INT], [("int32", [2, 4, 6])]),
    (lambda x: x.sum() * 3, [_INT], [("int32", [3, 3, 3])]),
    (lambda x: x[0] * 5, [_INT], [("int32", [5, 0, 0])]),
    (lambda x: x[Tensor([0, 0, 2])] * 5, [_INT], [("int32", [10, 0, 5])]),
    (lambda x: x.reshape(3, 1) * 5, [_INT], [("int32", [5, 5, 5])]),
    (lambda x: ops.matmul(x.reshape(1, 3), x.reshape(3, 1)), [_INT], [("int32", [2, 4, 6])]),
    (lambda x: ops.stack((x, x)), [_LONG], [("int64", [2, 2, 2])]),
    (lambda x: ops.cat((x, x * 2)), [_LONG], [("int64", [3, 3, 3])]),
    (lambda x: ops.relu(x) * 3, [_INT], [("int32", [3, 3, 3])]),
    (lambda x: ops.where(x > 1, x * 2, x), [_LONG], [("int64", [1, 2, 2])]),
    (lambda x: x // 2, [_INT], [("int32", [0, 0, 0])]),
    (lambda x: x & 1, [_INT], [("int32", [0, 0, 0])]),
    (lambda x: x & x, [_BOOL], [("bool", [False, False, False])]),
    (lambda x: x * 2.5, [_LONG], [("int64", [2, 2, 2])]),
    (lambda x: ops.cast(x, ms.float32).sum() * 2.7, [_LONG], [("int64", [2, 2, 2])]),
    (lambda x, y: x * y, [_LONG, _FLOAT], [("int64", [1, 2, 3]), ("float32", [1, 2, 3])]),
    (lambda x: ops.cast(x, ms.int32) * 2, [_FLOAT], [("float32", [2, 2, 2])]),
    (lambda x: ops.cast(ops.cast(x, ms.int32), ms.float32) * 2.5, [_FLOAT], [("float32", [2, 2, 2])]),
    (lambda x: x.int() * 1.5, [_FLOAT], [("float32", [1, 1, 1])]),
    (lambda x: ops.cast(x > 2, ms.float32) * x, [_FLOAT], [("float32", [0, 1, 1])]),
    (lambda x: x.argmax() * 2, [_FLOAT], [("float32", [0, 0, 0])]),
    (lambda x: x.argmax() * 2, [_LONG], [("int64", [0, 0, 0])]),
    (lambda x, y: ops.where(x, y, y * 2), [_BOOL, _FLOAT], [("bool", [False] * 3), ("float32", [1, 2, 1])]),
    (_one_hot, [Tensor([0, 1, 2], ms.int32), _FLOAT], [("int32", [0, 0, 0]), ("float32", [1, 1, 1])]),
    (lambda x: ops.one_hot(x.argmax(), 3) * x, [_FLOAT], [("float32", [0, 0, 1])]),
    (lambda x: ops.one_hot(x, 3, 2, 1) * 3, [_LONG], [("int64", [0, 0, 0])]),
    (
        lambda x, w: ops.gather(w, x, 0),
        [Tensor([0, 1], ms.int32), _FLOAT],
        [("int32", [0, 0]), ("float32", [1, 1, 0])],
    ),
]


class _Cell(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *inputs):
        return self.function(*inputs)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("number", range(len(_CASES)))
def test_gradients_are_those_of_mindspore(number, compiled):
    function, inputs, wanted = _CASES[number]
    ms.set_context(mode=ms.GRAPH_MODE if compiled else ms.PYNATIVE_MODE)
    try:
        positions = tuple(range(len(inputs)))
        for gradients in (
            ms.grad(_Cell(function), positions)(*inputs),
            ms.value_and_grad(function, positions)(*inputs)[1],
            ops.GradOperation(get_all=True)(_Cell(function))(*inputs),
        ):
            several = gradients if isinstance(gradients, tuple) else (gradients,)
            found = [(each.asnumpy().dtype.name, each.asnumpy().tolist()) for each in several]
            assert found == wanted
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_labels_beside_weights_have_gradients_of_zeros():
    network = nn.Dense(3, 4)
    loss = nn.CrossEntropyLoss()

    def forward(x, labels):
        return loss(network(x), labels)

    both = ms.grad(forward, (0, 1), network.trainable_params())
    (of_x, of_labels), of_weights = both(ops.ones((2, 3)), Tensor([1, 2], ms.int32))
    assert of_x.shape == (2, 3)
    assert of_labels.asnumpy().tolist() == [0, 0]
    assert [each.shape for each in of_weights] == [(4, 3), (4,)]
