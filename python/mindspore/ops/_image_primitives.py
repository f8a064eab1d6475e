"""Convolution, pooling and batch normalisation as classes."""

from mindspore import _names
from mindspore.ops import _image, _math
from mindspore.ops._primitive import Primitive
from muster import nn, ops


def _refuse_formats(call, data_format):
    _names.refuse(f"mindspore.ops.{call}", data_format=(data_format, "NCHW"))


def _pair(name, value):
    """One number or [h, w] as it is; [1, 1, h, w] as [h, w]."""
    if isinstance(value, int) or len(value) == 2:
        return value
    if len(value) == 4 and tuple(value[:2]) == (1, 1):
        return tuple(value[2:])
    raise ValueError(f"{name} is a number, (h, w) or (1, 1, h, w), not {value!r}")


class Conv2D(Primitive):
    """muster.ops.conv2d, called with the images and the weight; `pad` is for pad_mode 'pad'."""

    def __init__(
        self,
        out_channel,
        kernel_size,
        mode=1,
        pad_mode="valid",
        pad=0,
        stride=1,
        dilation=1,
        group=1,
        data_format="NCHW",
    ):
        super().__init__()
        _names.refuse("mindspore.ops.Conv2D", mode=(mode, 1))
        _refuse_formats("Conv2D", data_format)
        self.out_channel = out_channel
        self.kernel_size = kernel_size
        self.pad_mode = pad_mode.lower()
        self.pad = pad
        self.stride = _pair("stride", stride)
        self.dilation = _pair("dilation", dilation)
        self.group = group

    def compute(self, x, weight):
        """The images x (N, C, H, W) convolved with the weight (out_channel, C / group, h, w)."""
        kernel = (self.kernel_size,) * 2 if isinstance(self.kernel_size, int) else tuple(self.kernel_size)
        if (weight.shape[0], *weight.shape[2:]) != (self.out_channel, *kernel):
            raise ValueError(
                f"Conv2D: a weight for {self.out_channel} channels and a kernel {kernel} is needed, not "
                f"{weight.shape}"
            )
        return ops.conv2d(x, weight, None, self.stride, self.pad_mode, self.pad, self.dilation, self.group)


class _Pool(Primitive):
    cell = None

    def __init__(self, kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"):
        super().__init__()
        _refuse_formats(self.name, data_format)
        if pad_mode.lower() not in ("valid", "same"):
            raise ValueError(f"{self.name}: pad_mode is 'valid' or 'same', not {pad_mode!r}")
        self.kernel_size = _pair("kernel_size", kernel_size)
        self.strides = _pair("strides", strides)
        self.pad_mode = pad_mode.lower()
        self._cell = type(self).cell(self.kernel_size, self.strides, self.pad_mode)

    def compute(self, x):
        """The pooled images."""
        return self._cell.construct(x)


class MaxPool(_Pool):
    """The greatest pixel of each window, as muster.nn.MaxPool2d gives it."""

    cell = nn.MaxPool2d


class AvgPool(_Pool):
    """The average of each window, as muster.nn.AvgPool2d gives it."""

    cell = nn.AvgPool2d


class AdaptiveAvgPool2D(Primitive):
    """muster.ops.adaptive_avg_pool2d."""

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def compute(self, x):
        """The images averaged down to output_size."""
        return _image.adaptive_avg_pool2d(x, self.output_size)


class BatchNorm(Primitive):
    """muster.ops.batch_norm, called with x, scale, bias, mean and variance; training updates the last two.

    Gives the result and the statistics that it took: (y, mean, variance, mean, variance).
    """

    def __init__(self, is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW"):
        super().__init__()
        _refuse_formats("BatchNorm", data_format)
        self.is_training = is_training
        self.epsilon = epsilon
        self.momentum = momentum

    def compute(self, input_x, scale, bias, mean, variance):
        """(y, mean, variance, mean, variance)."""
        y = ops.batch_norm(
            input_x, mean, variance, scale, bias, self.is_training, self.momentum, self.epsilon
        )
        if self.is_training:
            axes = (0, *range(2, input_x.ndim))
            mean, variance = ops.reduce_mean(input_x, axes), _math.var(input_x, axes)
        return y, mean, variance, mean, variance


__all__ = ["AdaptiveAvgPool2D", "AvgPool", "BatchNorm", "Conv2D", "MaxPool"]
