"""Cells with parameters."""

import math

import muster
from mindspore.common import initializer as initializers
from mindspore.mint.nn import functional as F  # noqa: N812
from mindspore.nn import Cell
from muster import ops
from muster.nn import initializer


def _parameter(init, shape, dtype, name):
    return muster.Parameter(initializer(init, shape, dtype or muster.float32), name=name)


def _near_zero(count):
    """Numbers from -1 / sqrt(count) to 1 / sqrt(count)."""
    return initializers.Uniform(1 / math.sqrt(count) if count else 0.0)


def _set(cell, **settings):
    for name, value in settings.items():
        setattr(cell, name, value)


def _shown(cell, *names):
    """What print(cell) shows of these attributes."""
    return ", ".join(f"{name}={getattr(cell, name)}" for name in names)


class Linear(Cell):
    """x times the transposed weight (out_features, in_features), plus a bias.

    Args:
        in_features: The size of the last axis.
        out_features: That of the result.
        bias: Whether there is one.
        weight_init: An initializer; uniform within 1 / sqrt(in_features) by default.
        bias_init: Likewise.
        dtype: Of the parameters, float32 by default.
    """

    def __init__(self, in_features, out_features, bias=True, weight_init=None, bias_init=None, dtype=None):
        super().__init__()
        _set(self, in_features=in_features, out_features=out_features)
        own = _near_zero(in_features)
        weight_init = own if weight_init is None else weight_init
        self.weight = _parameter(weight_init, (out_features, in_features), dtype, "weight")
        bias_init = own if bias_init is None else bias_init
        self.bias = _parameter(bias_init, (out_features,), dtype, "bias") if bias else None

    def extend_repr(self):
        shown = f"input_features={self.in_features}, output_features={self.out_features}"
        return shown if self.bias is None else f"{shown}, has_bias=True"

    def construct(self, input):
        return F.linear(input, self.weight, self.bias)


class Embedding(Cell):
    """The rows of a table at indices.

    Args:
        num_embeddings: How many rows there are.
        embedding_dim: Their size.
        padding_idx: A row that is 0 and gets no gradient, or None.
        max_norm: None.
        norm_type: 2.0.
        scale_grad_by_freq: False.
        _weight: The table, or an initializer; normal by default.
        dtype: Of the table, float32 by default.
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        _weight=None,
        dtype=None,
    ):
        super().__init__()
        _set(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim, padding_idx=padding_idx)
        _set(self, max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq)
        made = initializers.Normal(1.0) if _weight is None else _weight
        if isinstance(made, muster.Tensor):
            self.weight = muster.Parameter(made, name="weight")
        else:
            self.weight = _parameter(made, (num_embeddings, embedding_dim), dtype, "weight")

    def extend_repr(self):
        names = (
            "num_embeddings",
            "embedding_dim",
            "padding_idx",
            "max_norm",
            "norm_type",
            "scale_grad_by_freq",
        )
        return f"{_shown(self, *names)}, dtype={self.weight.dtype}"

    def construct(self, input):
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )


class LayerNorm(Cell):
    """The last axes with mean 0 and variance 1, times a weight, plus a bias.

    Args:
        normalized_shape: The sizes of these axes.
        eps: What is added to the variance.
        elementwise_affine: Whether there is a weight and a bias.
        bias: Whether there is a bias.
        dtype: Of the parameters, float32 by default.
    """

    def __init__(self, normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, dtype=None):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        _set(self, normalized_shape=shape, eps=eps, elementwise_affine=elementwise_affine)
        self.weight = _parameter("ones", shape, dtype, "weight") if elementwise_affine else None
        self.bias = _parameter("zeros", shape, dtype, "bias") if elementwise_affine and bias else None

    def extend_repr(self):
        return _shown(self, "normalized_shape", "eps", "elementwise_affine")

    def construct(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class GroupNorm(Cell):
    """Each group of channels with mean 0 and variance 1, times a weight, plus a bias.

    Args:
        num_groups: How many groups there are.
        num_channels: How many channels there are.
        eps: What is added to the variance.
        affine: Whether there is a weight and a bias.
        dtype: Of the parameters, float32 by default.
    """

    def __init__(self, num_groups, num_channels, eps=1e-05, affine=True, dtype=None):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels are no {num_groups} groups")
        _set(self, num_groups=num_groups, num_channels=num_channels, eps=eps, affine=affine)
        self.weight = _parameter("ones", (num_channels,), dtype, "weight") if affine else None
        self.bias = _parameter("zeros", (num_channels,), dtype, "bias") if affine else None

    def extend_repr(self):
        return _shown(self, "num_groups", "num_channels", "eps", "affine")

    def construct(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class PReLU(Cell):
    """x above 0, else a learned factor times x.

    Args:
        num_parameters: 1, or one for each channel.
        init: What they begin with.
        dtype: Of the parameters, float32 by default.
    """

    def __init__(self, num_parameters=1, init=0.25, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = _parameter(init, (num_parameters,), dtype, "weight")

    def construct(self, input):
        return F.prelu(input, self.weight)


class _Convolution(Cell):
    """The convolution with a learned weight, plus a bias.

    Args:
        in_channels: Those of the input.
        out_channels: Those of the result.
        kernel_size: A number, or one for each axis.
        stride: Likewise.
        padding: Likewise, or 'same' or 'valid'.
        dilation: Likewise.
        groups: Channels are split into as many.
        bias: Whether there is one.
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'.
        dtype: Of the parameters, float32 by default.
    """

    _axes = 2
    _convolve = staticmethod(F.conv2d)

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        dtype=None,
    ):
        super().__init__()
        name = type(self).__name__
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: {in_channels} and {out_channels} channels are no {groups} groups")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"{name}: padding_mode is 'zeros', 'reflect', ..., not {padding_mode!r}")
        kernel_size, stride, dilation = (
            F._several(each, self._axes) for each in (kernel_size, stride, dilation)
        )
        _set(self, in_channels=in_channels, out_channels=out_channels, kernel_size=kernel_size)
        _set(self, stride=stride, dilation=dilation, groups=groups, padding_mode=padding_mode)
        self.padding = padding if isinstance(padding, str) else F._several(padding, self._axes)
        sides = () if isinstance(padding, str) else reversed(self.padding)
        self._reversed_padding = tuple(
            side for side in sides for _ in range(2)
        )  # subclasses of libraries read it
        shape = (*self._channels_of_weight(), *kernel_size)
        own = _near_zero(math.prod(shape[1:]))
        self.weight = _parameter(own, shape, dtype, "weight")
        self.bias = _parameter(own, (out_channels,), dtype, "bias") if bias else None

    def _channels_of_weight(self):
        return self.out_channels, self.in_channels // self.groups

    def extend_repr(self):
        settings = _shown(self, "kernel_size", "stride", "padding", "dilation", "groups")
        channels = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        return f"{channels}, {settings}, bias={self.bias is not None}"

    def construct(self, input):
        padding = self.padding
        if self.padding_mode != "zeros" and not isinstance(padding, str):
            input, padding = F.pad(input, self._reversed_padding, self.padding_mode), (0,) * self._axes
        return self._convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Convolution):
    __doc__ = _Convolution.__doc__.replace("The convolution", "The convolution of (N, C, L)")
    _axes = 1
    _convolve = conv1d = staticmethod(F.conv1d)


class Conv2d(_Convolution):
    __doc__ = _Convolution.__doc__.replace("The convolution", "The convolution of (N, C, H, W)")
    conv2d = staticmethod(F.conv2d)


class Conv3d(_Convolution):
    __doc__ = _Convolution.__doc__.replace("The convolution", "The convolution of (N, C, D, H, W)")
    _axes = 3
    _convolve = conv3d = staticmethod(F.conv3d)


class ConvTranspose2d(_Convolution):
    """Images of which Conv2d with the weight makes some like the input, plus a bias.

    Args:
        in_channels: Those of the input.
        out_channels: Those of the result.
        kernel_size: A number, or (height, width).
        stride: Likewise.
        padding: Likewise.
        output_padding: Likewise: rows and columns more, of those that Conv2d would leave out.
        groups: Channels are split into as many.
        bias: Whether there is one.
        dilation: A number, or (height, width).
        padding_mode: 'zeros'.
        dtype: Of the parameters, float32 by default.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f"ConvTranspose2d: padding_mode is 'zeros', not {padding_mode!r}")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype=dtype
        )
        self.output_padding = F._several(output_padding, 2)

    def _channels_of_weight(self):
        return self.in_channels, self.out_channels // self.groups

    def construct(self, input, output_size=None):
        beyond = self.output_padding
        if output_size is not None:
            beyond = self._beyond(input.shape[-2:], tuple(output_size)[-2:])
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, beyond, self.groups, self.dilation
        )

    def _beyond(self, sizes, wanted):
        """The output_padding that gives images of the sizes `wanted`."""
        least = F._transposed_sizes(sizes, self.kernel_size, self.stride, self.padding, self.dilation)
        beyond = tuple(size - small for size, small in zip(wanted, least, strict=True))
        if any(not 0 <= more < step for more, step in zip(beyond, self.stride, strict=True)):
            most = tuple(small + step - 1 for small, step in zip(least, self.stride, strict=True))
            raise ValueError(f"ConvTranspose2d: output_size is from {least} to {most}, not {wanted}")
        return beyond


class _BatchNorm(Cell):
    _axes = ()

    def __init__(
        self,
        num_features: int,
        eps=1e-05,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        dtype=None,
    ) -> None:
        super().__init__()
        _set(self, num_features=num_features, eps=eps, momentum=momentum, affine=affine)
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.weight = _parameter("ones", shape, dtype, "weight") if affine else None
        self.bias = _parameter("zeros", shape, dtype, "bias") if affine else None
        self.running_mean = self.running_var = self.num_batches_tracked = None
        if track_running_stats:
            self.running_mean = _parameter("zeros", shape, dtype, "running_mean")
            self.running_var = _parameter("ones", shape, dtype, "running_var")
            self.num_batches_tracked = _parameter("zeros", (), muster.int64, "num_batches_tracked")
            for each in (self.running_mean, self.running_var, self.num_batches_tracked):
                each.requires_grad = False

    def extend_repr(self):
        return _shown(self, "num_features", "eps", "momentum", "affine", "track_running_stats")

    def construct(self, input):
        if input.ndim not in self._axes:
            raise ValueError(f"{type(self).__name__}: {self._axes} axes are needed, not {input.shape}")
        training = self.training or self.running_mean is None
        part = self.momentum
        if self.training and self.running_mean is not None:
            batches = ops.assign_add(self.num_batches_tracked, 1)
            if part is None:  # the mean of all batches
                part = 1.0 / ops.cast(batches, muster.float32)
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, training, part, self.eps
        )


class BatchNorm1d(_BatchNorm):
    """Channels of (N, C) or (N, C, L) with mean 0 and variance 1, times a weight, plus a bias."""

    _axes = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Channels of (N, C, H, W) with mean 0 and variance 1, times a weight, plus a bias."""

    _axes = (4,)


class BatchNorm3d(_BatchNorm):
    """Channels of (N, C, D, H, W) with mean 0 and variance 1, times a weight, plus a bias."""

    _axes = (5,)


__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose2d",
    "Embedding",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "PReLU",
]
