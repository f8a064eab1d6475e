"""Convolutions along one and three axes, and transposed ones along one, two and three."""

import muster
from mindspore import _names
from mindspore.nn._members import default_initial
from mindspore.ops._volumes import same_pads
from muster import ops


def _numbers(cell: str, name: str, value, counts: tuple[int, ...], least: int) -> list[int]:
    """`value` as a list of numbers: one of `counts` many, or one that stands for all."""
    found = [value] if isinstance(value, int) else list(value)
    if len(found) not in (1, *counts) or not all(isinstance(n, int) for n in found):
        allowed = " or ".join(str(count) for count in counts)
        raise ValueError(f"{cell}: {name} is one whole number or {allowed} of them, not {value!r}")
    if min(found) < least:
        raise ValueError(f"{cell}: {name} is at least {least}, not {value!r}")
    return found


def _spread(numbers: list[int], count: int) -> tuple[int, ...]:
    return tuple(numbers * count if len(numbers) == 1 else numbers)


def _conv2d(x, weight, stride, pads, dilation, group):
    return ops.conv2d(x, weight, None, stride, "pad", tuple(pads), dilation, group)


def _conv3d(x, weight, stride, pads, dilation, group):
    return ops.conv3d(x, weight, list(stride), pads, list(dilation), group)


class _Convolution(muster.Cell):
    axes = 2
    is_transposed = False
    bias = None  # without has_bias

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        pad_mode,
        padding,
        dilation,
        group,
        has_bias,
        weight_init,
        bias_init,
        dtype,
        output_padding=0,
    ):
        super().__init__()
        name = type(self).__name__
        for what, count in (("in_channels", in_channels), ("out_channels", out_channels), ("group", group)):
            if not isinstance(count, int) or count < 1:
                raise ValueError(f"{name}: {what} is at least 1, not {count!r}")
        if in_channels % group or out_channels % group:
            raise ValueError(
                f"{name}: group must divide in_channels and out_channels, but {group} does not divide "
                f"{in_channels} and {out_channels}"
            )
        self._dtype = muster.dtype(dtype)
        if pad_mode not in ("same", "valid", "pad"):
            raise ValueError(f"{name}: pad_mode is 'same', 'valid' or 'pad', not {pad_mode!r}")
        self.in_channels, self.out_channels, self.group = in_channels, out_channels, group
        self.kernel_size = self._per_axis("kernel_size", kernel_size, 1)
        self.stride = self._per_axis("stride", stride, 1)
        self.dilation = self._per_axis("dilation", dilation, 1)
        self.pad_mode, self.padding, self.has_bias = pad_mode, padding, has_bias
        self.weight_init, self.bias_init = weight_init, bias_init
        self._pads = self._given_pads(padding)
        if self._is_flat():
            self.padding = tuple(self._pads)  # as MindSpore's: of a picture of one row
        self.output_padding = output_padding
        self._beyond = _spread(
            _numbers(name, "output_padding", output_padding, (self._axes_given(),), 0), self.axes
        )
        if pad_mode != "pad" and (any(self._pads) or any(self._beyond)):
            raise ValueError(
                f"{name}: padding and output_padding must be 0 with pad_mode '{pad_mode}'; 'pad' takes them"
            )
        for axis, extra in enumerate(self._beyond):
            most = max(self.stride[axis], self.dilation[axis])
            if extra >= most:
                raise ValueError(f"{name}: output_padding must be below {most}, not {output_padding!r}")
        self._make_parameters(weight_init, bias_init)

    def _axes_given(self) -> int:
        return 1 if self._is_flat() else self.axes

    def _is_flat(self) -> bool:
        """Whether this is a convolution of sequences: pictures of one row."""
        return False

    def _per_axis(self, what: str, value, least: int) -> tuple[int, ...]:
        name = type(self).__name__
        if self._is_flat():
            return (1, _numbers(name, what, value, (1,), least)[0])
        return _spread(_numbers(name, what, value, (self.axes,), least), self.axes)

    def _given_pads(self, padding) -> list[int]:
        sides = 2 * self._axes_given()
        pads = _spread(_numbers(type(self).__name__, "padding", padding, (sides,), 0), sides)
        return [0, 0, *pads] if self._is_flat() else list(pads)

    def _make_parameters(self, weight_init, bias_init) -> None:
        outer, inner = (
            (self.in_channels, self.out_channels)
            if self.is_transposed
            else (self.out_channels, self.in_channels)
        )
        shape = (outer, inner // self.group, *self.kernel_size)
        weight_init = default_initial("weight", shape) if weight_init is None else weight_init
        weight = muster.nn.initializer(weight_init, shape, self._dtype)
        self.weight = muster.Parameter(weight, name="weight")
        if self.has_bias:
            if bias_init is None:
                bias_init = default_initial("bias", shape)
            bias = muster.nn.initializer(bias_init, (self.out_channels,), self._dtype)
            self.bias = muster.Parameter(bias, name="bias")

    def _pads_for(self, sizes) -> list[int]:
        """Before and after each axis of pictures of these sizes, which the convolution itself goes over."""
        if self.pad_mode != "same":
            return self._pads
        found = []
        for size, kernel, stride, dilation in zip(
            sizes, self.kernel_size, self.stride, self.dilation, strict=True
        ):
            found += same_pads(size, kernel, stride, dilation)
        return found

    def _sizes_from(self, sizes) -> list[int]:
        """The sizes that the transposed convolution gives."""
        found = []
        for axis, (size, kernel, stride, dilation) in enumerate(
            zip(sizes, self.kernel_size, self.stride, self.dilation, strict=True)
        ):
            reach = (kernel - 1) * dilation + 1
            if self.pad_mode == "pad":
                pads = self._pads[2 * axis] + self._pads[2 * axis + 1]
                beyond = self._beyond[axis] if self.axes == 3 else 0
                found.append((size - 1) * stride + reach - pads + beyond)
            else:
                found.append(size * stride + (max(reach - stride, 0) if self.pad_mode == "valid" else 0))
        return found

    def construct(self, x):
        """The convolution, and the bias where there is one."""
        rank = self.axes + 1 if self._is_flat() else self.axes + 2
        if x.ndim != rank or x.shape[1] != self.in_channels:
            axes = ", L" if self._is_flat() else (", D, H, W" if self.axes == 3 else ", H, W")
            raise ValueError(
                f"{type(self).__name__}: input {x.shape} does not fit: (N, {self.in_channels}{axes}) is "
                "needed"
            )
        if self._is_flat():
            x = ops.expand_dims(x, 2)
        y = self._transposed(x) if self.is_transposed else self._forward(x)
        y = y if self._dtype is muster.float32 else ops.cast(y, self._dtype)
        if self.has_bias:
            y = ops.add(y, ops.reshape(self.bias, (1, -1) + (1,) * self.axes))
        if self.axes == 2 and any(self._beyond):  # MindSpore puts zeros there
            y = ops.pad(y, (0, self._beyond[1], 0, self._beyond[0]))
        return ops.squeeze(y, 2) if self._is_flat() else y

    def _wide(self, x):
        """(x, the weight); 16 bits are computed in 32."""
        if self._dtype.itemsize >= 4:
            return x, self.weight
        return ops.cast(x, muster.float32), ops.cast(self.weight, muster.float32)

    def _forward(self, x):
        x, weight = self._wide(x)
        return self._convolved(x, weight, self._pads_for(x.shape[2:]))

    def _convolved(self, x, weight, pads):
        convolution = _conv3d if self.axes == 3 else _conv2d
        return convolution(x, weight, self.stride, pads, self.dilation, self.group)

    def _transposed(self, x):
        """The gradient of the convolution for its pictures, which is linear: those may be zeros."""
        x, weight = self._wide(x)
        sizes = self._sizes_from(x.shape[2:])
        pads = self._pads_for(sizes)
        if self.axes == 3:
            return ops.conv3d_transpose(
                x, weight, sizes, list(self.stride), pads, list(self.dilation), self.group
            )

        def weighed(pictures):
            return ops.reduce_sum(ops.mul(self._convolved(pictures, weight, pads), x))

        pictures = ops.zeros((x.shape[0], self.out_channels, *sizes), x.dtype)
        return muster.value_and_grad(weighed, 0)(pictures)[1]


class _OfSequences(_Convolution):
    def _is_flat(self) -> bool:
        return True


class Conv1d(_OfSequences):
    """Conv2d along one axis: (N, in_channels, L) to (N, out_channels, L'). `weight` has a height of 1."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        pad_mode="same",
        padding=0,
        dilation=1,
        group=1,
        has_bias=False,
        weight_init=None,
        bias_init=None,
        dtype=muster.float32,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype,
        )  # fmt: skip


class Conv3d(_Convolution):
    """(N, in_channels, D, H, W) to (N, out_channels, D', H', W'): a convolution of volumes."""

    axes = 3

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        pad_mode="same",
        padding=0,
        dilation=1,
        group=1,
        has_bias=False,
        weight_init=None,
        bias_init=None,
        data_format="NCDHW",
        dtype=muster.float32,
    ):
        _names.refuse("mindspore.nn.Conv3d", data_format=(data_format, "NCDHW"))
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype,
        )  # fmt: skip


class Conv1dTranspose(_OfSequences):
    """Transposed Conv1d: its gradient for the sequence. `weight` is (in, out / group, 1, k)."""

    is_transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        pad_mode="same",
        padding=0,
        dilation=1,
        group=1,
        has_bias=False,
        weight_init=None,
        bias_init=None,
        dtype=muster.float32,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype,
        )  # fmt: skip


class Conv2dTranspose(_Convolution):
    """Transposed Conv2d: its gradient for the images. `weight` is (in, out / group, kh, kw)."""

    is_transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        pad_mode="same",
        padding=0,
        output_padding=0,
        dilation=1,
        group=1,
        has_bias=False,
        weight_init=None,
        bias_init=None,
        dtype=muster.float32,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype, output_padding,
        )  # fmt: skip


class Conv3dTranspose(_Convolution):
    """Transposed Conv3d: its gradient for the volumes."""

    axes = 3
    is_transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        pad_mode="same",
        padding=0,
        dilation=1,
        group=1,
        output_padding=0,
        has_bias=False,
        weight_init=None,
        bias_init=None,
        data_format="NCDHW",
        dtype=muster.float32,
    ):
        _names.refuse("mindspore.nn.Conv3dTranspose", data_format=(data_format, "NCDHW"))
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype, output_padding,
        )  # fmt: skip


__all__ = ["Conv1d", "Conv1dTranspose", "Conv2dTranspose", "Conv3d", "Conv3dTranspose"]
