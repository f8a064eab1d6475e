"""Attention whose weights nobody asks for: the same, and zeros where a query sees no key, as in MindSpore."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn


def draw(*shape, dtype="float32"):
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def mode(request):
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=before)


@pytest.mark.parametrize(
    "settings", [{}, {"add_bias_kv": True, "add_zero_attn": True}, {"dtype": ms.float64}]
)
def test_attention_gives_the_same_with_and_without_its_weights(mode, settings):
    cell = nn.MultiheadAttention(8, 2, batch_first=True, **settings)
    dtype = "float64" if "dtype" in settings else "float32"
    x, y = Tensor(draw(3, 4, 8, dtype=dtype)), Tensor(draw(3, 5, 8, dtype=dtype))
    padding = np.arange(5) >= np.array([5, 2, 4])[:, None]
    future = np.triu(np.ones((4, 5), bool), 1)
    for masks in ({}, {"key_padding_mask": Tensor(padding)}, {"attn_mask": Tensor(future)}):
        one, weights = cell(x, y, y, **masks)
        other, none = cell(x, y, y, need_weights=False, **masks)
        assert weights is not None and none is None
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), atol=2e-6)
    both = {"key_padding_mask": Tensor(padding), "attn_mask": Tensor(future)}
    one, other = (cell(x, y, y, need_weights=needs, **both)[0] for needs in (True, False))
    np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), atol=2e-6)


def test_a_sample_that_is_padding_alone_leaves_the_others_and_all_gradients_numbers(mode):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    x = Tensor(draw(2, 3, 8))
    padding = Tensor(np.array([[False, False, True], [True, True, True]]))

    def loss(x, padding):
        y = layer(x, src_key_padding_mask=padding)
        return (y * y * x).sum(), y

    found = ms.value_and_grad(loss, None, layer.trainable_params(), has_aux=True)
    (_, y), gradients = found(x, padding)
    alone = layer(x[:1], src_key_padding_mask=padding[:1])
    np.testing.assert_allclose(y[:1].asnumpy(), alone.asnumpy(), atol=2e-6)
    assert np.isfinite(y.asnumpy()).all()
    assert all(np.isfinite(each.asnumpy()).all() for each in gradients)
