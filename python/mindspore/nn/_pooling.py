"""Pooling along one and three axes, of powers, and to given sizes: of Muster's pooling of images."""

import math

import muster
from mindspore import _names
from mindspore.common import _types as dtypes
from mindspore.ops import _windows
from mindspore.ops._volumes import same_pads
from muster import ops


def _per_axis(cell: str, name: str, value, axes: int, least: int = 1) -> tuple[int, ...]:
    found = (value,) * axes if isinstance(value, int) else tuple(value)
    if len(found) == 1:
        found *= axes
    if len(found) != axes or not all(isinstance(n, int) and n >= least for n in found):
        raise ValueError(f"{cell}: {name} is {axes} whole numbers of at least {least}, or one, not {value!r}")
    return found


def _in_two_passes(x, pool):
    """`pool(images, axes)` of volumes (N, C, D, H, W): over height and width, then over the depth."""
    n, c, d, h, w = x.shape
    planes = pool(ops.reshape(x, (n, c * d, h, w)), (1, 2))
    h, w = planes.shape[2:]
    columns = pool(ops.reshape(planes, (n, c, d, h * w)), (0, None))
    return ops.reshape(columns, (n, c, columns.shape[2], h, w))


class _Pool(muster.Cell):
    """Windows over the last `axes` axes; an axis None of a pass has windows of one element."""

    axes = 1
    pool = None
    samples_may_lack = True  # (C, L) stands for one sample

    def __init__(self, kernel_size=1, stride=1, pad_mode="valid", padding=0, ceil_mode=False):
        super().__init__()
        name = type(self).__name__
        self.kernel_size = _per_axis(name, "kernel_size", kernel_size, self.axes)
        self.stride = _per_axis(name, "stride", kernel_size if stride is None else stride, self.axes)
        self.pad_mode, self.padding, self.ceil_mode = pad_mode.lower(), padding, bool(ceil_mode)
        self._given = kernel_size, kernel_size if stride is None else stride
        if self.pad_mode not in ("same", "valid", "pad"):
            raise ValueError(f"{name}: pad_mode is 'same', 'valid' or 'pad', not {pad_mode!r}")
        self._sides = _per_axis(name, "padding", padding, self.axes, 0)
        if self.pad_mode != "pad" and any(self._sides):
            raise ValueError(f"{name}: padding must be 0 with pad_mode '{self.pad_mode}'; 'pad' takes it")

    def _pads(self, axis, size) -> tuple[int, int]:
        if axis is None or self.pad_mode == "valid":
            return (0, 0)
        if self.pad_mode == "pad":
            return (self._sides[axis],) * 2
        return tuple(same_pads(size, self.kernel_size[axis], self.stride[axis], 1))

    def _pass(self, x, axes):
        """One pooling of images whose axes are `axes` of the cell's."""
        kernel = tuple(1 if axis is None else self.kernel_size[axis] for axis in axes)
        stride = tuple(1 if axis is None else self.stride[axis] for axis in axes)
        pads = [side for axis, size in zip(axes, x.shape[2:], strict=True) for side in self._pads(axis, size)]
        return self.pool(x, kernel, stride, tuple(pads))

    def construct(self, x):
        """The pooled tensor."""
        if x.ndim == self.axes + 1 and self.samples_may_lack:
            return ops.squeeze(self.construct(ops.expand_dims(x, 0)), 0)
        if x.ndim != self.axes + 2:
            raise ValueError(
                f"{type(self).__name__}: input {x.shape} does not fit: {self.axes + 2} axes are needed"
            )
        if self.axes == 1:
            return ops.squeeze(self._pass(ops.expand_dims(x, 2), (None, 0)), 2)
        return _in_two_passes(x, self._pass) if self.axes == 3 else self._pass(x, (0, 1))


class _MaxPool(_Pool):
    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        dilation=1,
        return_indices=False,
        ceil_mode=False,
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode)
        self.dilation = _per_axis(type(self).__name__, "dilation", dilation, self.axes)
        self.return_indices = bool(return_indices)
        self._dilated = any(apart != 1 for apart in self.dilation)
        if (self._dilated or self.return_indices) and self.pad_mode == "same":
            raise NotImplementedError(
                _names.sentence(
                    f"mindspore.nn.{type(self).__name__}(pad_mode='same') with dilation or return_indices"
                )
            )

    def construct(self, x):
        """The pooled tensor; with `return_indices` also the flat places of its elements, int64."""
        if not self._dilated and not self.return_indices:
            return super().construct(x)
        settings = (self.kernel_size, self.stride, self._sides, self.dilation)
        return _windows.max_pool(x, self.axes, *settings, self.ceil_mode, self.return_indices)

    def pool(self, x, kernel, stride, pads):
        return ops.max_pool2d(x, kernel, stride, pads, ceil_mode=self.ceil_mode)


class MaxPool1d(_MaxPool):
    """The greatest element of each window of (N, C, L) or (C, L)."""


class MaxPool3d(_MaxPool):
    """The greatest element of each window of (N, C, D, H, W) or (C, D, H, W)."""

    axes = 3


class _AvgPool(_Pool):
    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode)
        if divisor_override == 0:
            raise ValueError(f"{type(self).__name__}: divisor_override must not be 0")
        self.count_include_pad, self.divisor_override = bool(count_include_pad), divisor_override
        if divisor_override and self.ceil_mode:
            raise NotImplementedError(
                _names.sentence(f"mindspore.nn.{type(self).__name__}(ceil_mode, divisor_override)")
            )

    def pool(self, x, kernel, stride, pads):
        padded = ("pad", "same") if self.axes == 3 else ("pad",)  # as MindSpore counts
        counts = self.count_include_pad and self.pad_mode in padded
        counts = counts or bool(self.divisor_override)
        return ops.avg_pool2d(x, kernel, stride, pads, self.ceil_mode, counts)

    def construct(self, x):
        """The pooled tensor."""
        y = super().construct(x)
        if not self.divisor_override:
            return y
        return ops.mul(y, math.prod(self.kernel_size) / self.divisor_override)


class AvgPool1d(_AvgPool):
    """The average of each window of (N, C, L) or (C, L)."""

    def __init__(
        self, kernel_size=1, stride=1, pad_mode="valid", padding=0, ceil_mode=False, count_include_pad=True
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)


class AvgPool3d(_AvgPool):
    """The average of each window of (N, C, D, H, W) or (C, D, H, W)."""

    axes = 3


class AvgPool2dExt(_AvgPool):
    """The average of each window of (N, C, H, W) or (C, H, W); strides are the window's size unless given."""

    axes = 2

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        stride = kernel_size if stride is None else stride
        super().__init__(kernel_size, stride, "pad", padding, ceil_mode, count_include_pad, divisor_override)


class AvgPool3dExt(AvgPool2dExt):
    """The average of each window of volumes; strides are the window's size unless given."""

    axes = 3


class AvgPool1dExt(_AvgPool):
    """The average of each window of (N, C, L) or (C, L); strides are the window's size unless given."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        stride = kernel_size if stride is None else stride
        super().__init__(kernel_size, stride, "pad", padding, ceil_mode, count_include_pad)


class MaxPool2dExt(_MaxPool):
    """The greatest element of each window of images; strides are the window's size unless given."""

    axes = 2

    def __init__(
        self, kernel_size=1, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        stride = kernel_size if stride is None else stride
        super().__init__(kernel_size, stride, "pad", padding, dilation, return_indices, ceil_mode)


class _LPPool(_Pool):
    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__(kernel_size, kernel_size if stride is None else stride, ceil_mode=ceil_mode)
        if norm_type == 0:
            raise ValueError(f"{type(self).__name__}: norm_type must not be 0")
        self.norm_type = norm_type

    def pool(self, x, kernel, stride, pads):
        return ops.avg_pool2d(x, kernel, stride, pads, self.ceil_mode, True)

    def construct(self, x):
        """(the sum of x^norm_type over each window)^(1 / norm_type)."""
        x = x if x.dtype in dtypes.float_type else ops.cast(x, muster.float32)
        sums = ops.mul(super().construct(ops.pow(x, self.norm_type)), math.prod(self.kernel_size))
        return ops.pow(sums, 1 / self.norm_type)


class LPPool1d(_LPPool):
    """The norm of each window of (N, C, L) or (C, L)."""


class LPPool2d(_LPPool):
    """The norm of each window of (N, C, H, W)."""

    axes = 2


# ---- To given sizes ----------------------------------------------------------------------------------------


def _adaptive_max(x, axis: int, size: int):
    """`x` with `size` elements along `axis`: each the greatest of its part."""
    length = x.shape[axis]
    parts = []
    for index in range(size):
        begin, end = index * length // size, -(-(index + 1) * length // size)
        first, count = [0] * x.ndim, list(x.shape)
        first[axis], count[axis] = begin, end - begin
        parts.append(ops.reduce_max(ops.slice(x, tuple(first), tuple(count)), axis, True))
    return ops.concat(parts, axis)


class _Adaptive(muster.Cell):
    axes = 1

    def __init__(self, output_size):
        super().__init__()
        sizes = (
            (output_size,) * self.axes if output_size is None or isinstance(output_size, int) else output_size
        )
        if len(sizes) != self.axes or any(size is not None and size < 1 for size in sizes):
            raise ValueError(
                f"{type(self).__name__}: output_size is {self.axes} numbers of at least 1, or one, "
                f"not {output_size!r}"
            )
        self.output_size = output_size
        self._sizes = tuple(sizes)

    def construct(self, input):
        """The pooled tensor."""
        if input.ndim not in (self.axes + 1, self.axes + 2):
            raise ValueError(
                f"{type(self).__name__}: input {input.shape} does not fit: {self.axes + 2} axes are needed"
            )
        leading = input.ndim - self.axes
        sizes = [
            have if want is None else want
            for want, have in zip(self._sizes, input.shape[leading:], strict=True)
        ]
        return self._pooled(input, leading, sizes)


class _AdaptiveAvg(_Adaptive):
    def _pooled(self, x, leading, sizes):
        shape = (*x.shape[:leading], *sizes)
        if self.axes == 1:
            return ops.reshape(
                ops.adaptive_avg_pool2d(ops.reshape(x, (1, -1, 1, x.shape[-1])), (1, sizes[0])), shape
            )
        if x.dtype not in dtypes.float_type:  # whole numbers stay so, cut off
            return ops.cast(self._pooled(ops.cast(x, muster.float32), leading, sizes), x.dtype)
        d, h, w = x.shape[leading:]
        planes = ops.adaptive_avg_pool2d(ops.reshape(x, (1, -1, h, w)), tuple(sizes[1:]))
        columns = ops.reshape(planes, (1, -1, d, sizes[1] * sizes[2]))
        return ops.reshape(ops.adaptive_avg_pool2d(columns, (sizes[0], None)), shape)


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size, return_indices=False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def construct(self, input):
        """The pooled tensor; with `return_indices` also the flat places of its elements."""
        pooled = super().construct(input)
        if not self.return_indices:
            return pooled
        from mindspore.ops import _windows

        function = _windows.adaptive_max_pool2d if self.axes == 2 else _windows.adaptive_max_pool3d
        return function(input, self._sizes, True)

    def _pooled(self, x, leading, sizes):
        for axis, size in enumerate(sizes, leading):
            x = _adaptive_max(x, axis, size)
        return x


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """(N, C, L) averaged down to (N, C, output_size)."""


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """(N, C, D, H, W) averaged down to the three sizes of output_size."""

    axes = 3


class AdaptiveMaxPool1d(_AdaptiveMax):
    """(N, C, L) down to (N, C, output_size), each the greatest of its part."""

    def __init__(self, output_size):
        super().__init__(output_size)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """(N, C, H, W) down to the two sizes of output_size, each the greatest of its part."""

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMax):
    """(N, C, D, H, W) down to the three sizes of output_size, each the greatest of its part."""

    axes = 3


class _MaxUnpool(muster.Cell):
    """The elements at the places that max pooling took them from, 0 elsewhere.

    Args:
        kernel_size: Of the windows.
        stride: Between windows; None: kernel_size.
        padding: Around the images.
    """

    function = None

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride

    def construct(self, x, indices, output_size=None):
        """`output_size` is a tuple where the sizes cannot be told from those of x."""
        if output_size is not None and (not isinstance(output_size, tuple) or not output_size):
            raise ValueError(f"{type(self).__name__}: output_size is a tuple, not {output_size!r}")
        return type(self).function(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """The elements of (N, C, L) at the places that max pooling took them from, 0 elsewhere."""

    function = staticmethod(_windows.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """The elements of (N, C, H, W) at the places that max pooling took them from, 0 elsewhere."""

    function = staticmethod(_windows.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """The elements of (N, C, D, H, W) at the places that max pooling took them from, 0 elsewhere."""

    function = staticmethod(_windows.max_unpool3d)


__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool1dExt",
    "AvgPool2dExt",
    "AvgPool3d",
    "AvgPool3dExt",
    "LPPool1d",
    "LPPool2d",
    "MaxPool1d",
    "MaxPool2dExt",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]
