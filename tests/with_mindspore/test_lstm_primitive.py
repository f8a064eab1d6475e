"""ops.LSTM beside nn.LSTM, whose weights it takes in one piece."""

import mindspore
import numpy
import pytest
from mindspore import Tensor, nn, ops

MODES = pytest.mark.parametrize("mode", [mindspore.GRAPH_MODE, mindspore.PYNATIVE_MODE])
T, N, INPUTS, HIDDEN = 4, 2, 3, 2


def numbers(*sizes, seed):
    return Tensor(numpy.random.RandomState(seed).randn(*sizes).astype(numpy.float32))


@MODES
@pytest.mark.parametrize("has_bias", [True, False])
def test_it_is_a_layer_of_nn_lstm(mode, has_bias):
    mindspore.set_context(mode=mode)
    layer = nn.LSTM(INPUTS, HIDDEN, has_bias=has_bias)
    biases = [layer.bias_ih_l0 + layer.bias_hh_l0] if has_bias else []
    w = ops.concat([each.reshape(-1, 1, 1) for each in (layer.weight_ih_l0, layer.weight_hh_l0, *biases)])
    x, h, c = numbers(T, N, INPUTS, seed=0), numbers(1, N, HIDDEN, seed=1), numbers(1, N, HIDDEN, seed=2)
    wanted, (h_after, c_after) = layer(x, (h, c))
    op = ops.LSTM(INPUTS, HIDDEN, 1, has_bias, False, 0.0)
    found = op(x, h, c, w)
    assert len(found) == 5
    for each, by_layer in zip(found, (wanted, h_after, c_after), strict=False):
        assert numpy.abs(each.asnumpy() - by_layer.asnumpy()).max() <= 1e-6
    of_w = mindspore.grad(lambda w: op(x, h, c, w)[0].sum())(w)
    of_layer = mindspore.grad(lambda: layer(x, (h, c))[0].sum(), None, layer.trainable_params())()
    gradients = [each.asnumpy().ravel() for each in of_layer[: 3 if has_bias else 2]]
    assert numpy.abs(of_w.asnumpy().ravel() - numpy.concatenate(gradients)).max() <= 1e-5


def test_what_does_not_fit_is_named():
    with pytest.raises(NotImplementedError, match="num_layers"):
        ops.LSTM(INPUTS, HIDDEN, 2, True, False, 0.0)
    op = ops.LSTM(INPUTS, HIDDEN, 1, True, False, 0.0)
    state = numbers(1, N, HIDDEN, seed=0)
    with pytest.raises(ValueError, match="need 48"):
        op(numbers(T, N, INPUTS, seed=0), state, state, numbers(40, 1, 1, seed=0))
    with pytest.raises(ValueError, match=r"x \(4, 2, 5\)"):
        op(numbers(T, N, 5, seed=0), state, state, numbers(48, 1, 1, seed=0))
