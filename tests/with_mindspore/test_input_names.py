"""Inputs of the library's cells by the names that MindSpore has for them."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, nn

_X = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3) / 7)
_LABELS = Tensor([0, 1, 2, 0], ms.int32)


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], autouse=True)
def _mode(request):
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def _same(one, other):
    np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


def _image(channels=3):
    return Tensor(np.random.default_rng(0).random((2, channels, 6, 6), np.float32))


@pytest.mark.parametrize(
    ("make", "names", "inputs"),
    [
        (lambda: nn.Dense(3, 2), ["x"], [_X]),
        (lambda: nn.Conv2d(3, 2, 3), ["x"], [_image()]),
        (lambda: nn.BatchNorm2d(3), ["x"], [_image()]),
        (lambda: nn.LayerNorm((3,)), ["input_x"], [_X]),
        (lambda: nn.Embedding(3, 2), ["ids"], [_LABELS]),
        (lambda: nn.ReLU(), ["input"], [_X]),
        (lambda: nn.HSwish(), ["input"], [_X]),
        (lambda: nn.LRN(), ["input_x"], [_image()]),
        (lambda: nn.MaxPool2d(2), ["x"], [_image()]),
        (lambda: nn.AdaptiveAvgPool2d(2), ["input"], [_image()]),
        (lambda: nn.SequentialCell(nn.Dense(3, 2), nn.Tanh()), ["input_data"], [_X]),
        (lambda: nn.CrossEntropyLoss(), ["logits", "labels"], [_X, _LABELS]),
        (lambda: nn.MSELoss(), ["logits", "labels"], [_X, _X + 1]),
        (lambda: nn.BCEWithLogitsLoss(), ["input", "target"], [_X, _X]),
        (lambda: nn.WithLossCell(nn.Dense(3, 3), nn.L1Loss()), ["data", "label"], [_X, _X]),
        (lambda: mint.nn.Linear(3, 2), ["input"], [_X]),
        (lambda: mint.nn.LayerNorm(3), ["input"], [_X]),
        (lambda: mint.nn.Conv2d(3, 2, 3), ["input"], [_image()]),
        (lambda: mint.nn.Sigmoid(), ["input"], [_X]),
    ],
)
def test_inputs_have_names(make, names, inputs):
    cell = make()
    expected = cell(*inputs)
    _same(cell(**dict(reversed(list(zip(names, inputs, strict=True))))), expected)
    _same(cell(inputs[0], **dict(zip(names[1:], inputs[1:], strict=True))), expected)


class _Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense, self.loss = nn.Dense(3, 3), nn.CrossEntropyLoss()

    def construct(self, x, labels):
        return self.loss(labels=labels, logits=self.dense(x=x))


def test_names_count_in_construct_and_for_gradients():
    net = _Net()
    loss, gradients = ms.value_and_grad(net, None, net.trainable_params())(_X, _LABELS)
    expected = ms.value_and_grad(lambda: net.loss(net.dense(_X), _LABELS), None, net.trainable_params())()
    _same(loss, expected[0])
    for one, other in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6)


def test_a_subclass_has_the_names_of_its_own_construct():
    class Scaled(nn.Dense):
        def construct(self, hidden, scale=1):
            return super().construct(hidden) * scale

    dense = Scaled(3, 2)
    _same(dense(hidden=_X, scale=2), dense(_X) * 2)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            lambda loss: loss(_X, target=_LABELS),
            "unexpected keyword argument 'target'; it takes logits, labels",
        ),
        (lambda loss: loss(labels=_LABELS), "missing 'logits': it takes logits, labels"),
        (lambda loss: loss(_X, _LABELS, labels=_LABELS), "multiple values for argument 'labels'"),
    ],
)
def test_a_wrong_name_is_an_error_that_says_the_names(given, text):
    with pytest.raises(TypeError, match=text):
        given(nn.CrossEntropyLoss())
