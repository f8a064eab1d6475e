"""Functions of images: their Python signatures; what they compute is in tests/unit/graph/cases."""

import numpy as np
import pytest

import muster
from muster import ops


def images(*shape):
    return muster.Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def ones(*shape):
    return muster.Tensor(np.ones(shape, dtype=np.float32))


def test_conv2d_pads_as_its_mode_says():
    x, weight = images(1, 1, 5, 4), ones(2, 1, 3, 3)
    assert ops.conv2d(x, weight).shape == (1, 2, 3, 2)
    assert ops.conv2d(x, weight, stride=2, pad_mode="same").shape == (1, 2, 3, 2)
    assert ops.conv2d(x, weight, pad_mode="pad", padding=1).shape == (1, 2, 5, 4)
    assert ops.conv2d(x, weight, pad_mode="pad", padding=(1, 0, 2, 0)).shape == (1, 2, 4, 4)
    assert ops.conv2d(x, weight, dilation=(2, 1)).shape == (1, 2, 1, 2)


def test_same_padding_puts_the_odd_pixel_last():
    x = images(1, 1, 1, 4) + 1.0
    y = ops.conv2d(x, ones(1, 1, 1, 2), pad_mode="same")
    np.testing.assert_array_equal(y.asnumpy()[0, 0, 0], [3, 5, 7, 4])


def test_conv2d_adds_the_bias_and_divides_groups():
    x = ones(1, 2, 2, 2)
    y = ops.conv2d(x, ones(4, 1, 1, 1), ones(4), groups=2)
    np.testing.assert_array_equal(y.asnumpy(), np.full((1, 4, 2, 2), 2, np.float32))


def test_wrong_settings_are_named():
    x, weight = images(1, 1, 3, 3), ones(1, 1, 2, 2)
    with pytest.raises(ValueError, match=r"pad_mode.*'valid', 'same'.*'pad'.*'some'"):
        ops.conv2d(x, weight, pad_mode="some")
    with pytest.raises(ValueError, match=r"padding.*pad_mode='pad'"):
        ops.conv2d(x, weight, padding=1)
    with pytest.raises(ValueError, match="has 1 channels, the weight"):
        ops.conv2d(x, ones(1, 2, 2, 2))
    with pytest.raises(TypeError, match=r"stride.*ints"):
        ops.conv2d(x, weight, stride="2")


def test_pooling():
    x = images(1, 1, 4, 4)
    np.testing.assert_array_equal(ops.max_pool2d(x, 2).asnumpy()[0, 0], [[5, 7], [13, 15]])
    np.testing.assert_array_equal(ops.avg_pool2d(x, 2, 2).asnumpy()[0, 0], [[2.5, 4.5], [10.5, 12.5]])
    np.testing.assert_array_equal(ops.adaptive_avg_pool2d(x, 1).asnumpy(), [[[[7.5]]]])
    assert ops.adaptive_avg_pool2d(x, (None, 2)).shape == (1, 1, 4, 2)
    assert ops.max_pool2d(x, 3, stride=2, padding=1).shape == (1, 1, 2, 2)


def test_batch_norm_moves_the_running_statistics_in_training_only():
    x = muster.Tensor(np.array([[1.0], [3.0], [5.0], [7.0]], np.float32))
    mean = muster.Parameter(np.zeros(1, np.float32), name="mean")
    variance = muster.Parameter(np.ones(1, np.float32), name="variance")
    gamma, beta = ones(1), muster.Tensor(np.zeros(1, np.float32))
    ops.batch_norm(x, mean, variance, gamma, beta)
    assert mean.asnumpy()[0] == 0
    y = ops.batch_norm(x, mean, variance, gamma, beta, training=True)
    assert abs(float(y.asnumpy().mean())) < 1e-6
    np.testing.assert_allclose(mean.asnumpy(), [0.4], rtol=1e-6)
    np.testing.assert_allclose(variance.asnumpy(), [0.9 + 0.1 * 20 / 3], rtol=1e-6)
