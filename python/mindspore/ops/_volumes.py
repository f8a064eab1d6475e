"""Convolutions of volumes (N, C, D, H, W) as functions and as classes."""

from mindspore import _names
from mindspore.ops._primitive import Primitive
from muster import ops


def same_pads(size: int, kernel: int, stride: int, dilation: int) -> list[int]:
    """What is added before and after `size` so that ceil(size / stride) windows fit."""
    windows = -(-size // stride)
    missing = max((windows - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return [missing // 2, missing - missing // 2]


def _spread(call, name, value, counts=(3,)):
    """`value` as three numbers, or as many as `counts` allow: one stands for all."""
    found = [value] * counts[0] if isinstance(value, int) else list(value)
    if len(found) == 5 and found[:2] == [1, 1]:  # of all axes, which MindSpore's classes take
        found = found[2:]
    if len(found) not in counts:
        raise ValueError(
            f"{call}: {name} is a number or {' or '.join(map(str, counts))} of them, not {value!r}"
        )
    return found


def _pads(call, mode, padding, sizes, kernel, stride, dilation):
    """Before and after each axis of volumes of these sizes, which the convolution goes over."""
    given = _spread(call, "padding", padding, (3, 6))
    if mode not in ("same", "valid", "pad"):
        raise ValueError(f"{call}: pad_mode is 'same', 'valid' or 'pad', not {mode!r}")
    if mode != "pad" and any(given):
        raise ValueError(f"{call}: padding is {padding!r} with pad_mode '{mode}'; 'pad' takes it")
    if mode == "same":
        axes = zip(sizes, kernel, stride, dilation, strict=True)
        return [side for axis in axes for side in same_pads(*axis)]
    return given if len(given) == 6 else [side for side in given for _ in range(2)]


def conv3d(input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, groups=1):
    """(N, O, D', H', W'): volumes (N, C, D, H, W) convolved with a weight (O, C / groups, d, h, w)."""
    stride, dilation = _spread("conv3d", "stride", stride), _spread("conv3d", "dilation", dilation)
    pads = _pads("conv3d", pad_mode, padding, input.shape[2:], weight.shape[2:], stride, dilation)
    y = ops.conv3d(input, weight, stride, pads, dilation, groups)
    return y if bias is None else ops.add(y, ops.reshape(bias, (1, -1, 1, 1, 1)))


def conv3d_transpose(
    inputs, weight, pad_mode="valid", padding=0, stride=1, dilation=1, group=1, output_padding=0
):
    """Volumes (N, O, ...) of which conv3d with a weight (C, O / group, d, h, w) makes some like inputs."""
    call = "conv3d_transpose"
    stride, dilation = _spread(call, "stride", stride), _spread(call, "dilation", dilation)
    beyond = _spread(call, "output_padding", output_padding)
    kernel = weight.shape[2:]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    sizes = [n * s for n, s in zip(inputs.shape[2:], stride, strict=True)]
    pads = _pads(call, pad_mode, padding, sizes, kernel, stride, dilation)
    if pad_mode == "valid":  # places that no kernel reaches behind the last one belong to it, too
        sizes = [n + max(r - s, 0) for n, r, s in zip(sizes, reach, stride, strict=True)]
    elif pad_mode == "pad":
        sizes = [
            n - stride[axis] + reach[axis] - pads[2 * axis] - pads[2 * axis + 1] + beyond[axis]
            for axis, n in enumerate(sizes)
        ]
    return ops.conv3d_transpose(inputs, weight, sizes, stride, pads, dilation, group)


class _Convolution(Primitive):
    """What both classes are made with."""

    def _keep(self, mode, data_format, kernel_size, stride, pad_mode, pad, dilation, group):
        _names.refuse(f"mindspore.ops.{self.name}", mode=(mode, 1), data_format=(data_format, "NCDHW"))
        self.kernel_size = tuple(_spread(self.name, "kernel_size", kernel_size))
        self.stride, self.dilation = stride, dilation
        self.pad_mode, self.pad, self.group = pad_mode.lower(), pad, group

    def _check(self, weight, channels):
        if (weight.shape[0], *weight.shape[2:]) != (channels, *self.kernel_size):
            raise ValueError(
                f"{self.name}: a weight for {channels} channels and a kernel {self.kernel_size} is needed, "
                f"not {weight.shape}"
            )


class Conv3D(_Convolution):
    """conv3d, called with the volumes and the weight; `pad` is for pad_mode 'pad'."""

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
        data_format="NCDHW",
    ):
        super().__init__()
        self._keep(mode, data_format, kernel_size, stride, pad_mode, pad, dilation, group)
        self.out_channel = out_channel

    def compute(self, x, weight, bias=None):
        """The volumes x (N, C, D, H, W) convolved with the weight (out_channel, C / group, d, h, w)."""
        self._check(weight, self.out_channel)
        return conv3d(x, weight, bias, self.stride, self.pad_mode, self.pad, self.dilation, self.group)


class Conv3DTranspose(_Convolution):
    """conv3d_transpose, called with the volumes and the weight; `pad` is for pad_mode 'pad'."""

    def __init__(
        self,
        in_channel,
        out_channel,
        kernel_size,
        mode=1,
        pad_mode="valid",
        pad=0,
        stride=1,
        dilation=1,
        group=1,
        output_padding=0,
        data_format="NCDHW",
    ):
        super().__init__()
        self._keep(mode, data_format, kernel_size, stride, pad_mode, pad, dilation, group)
        self.in_channel, self.out_channel, self.output_padding = in_channel, out_channel, output_padding

    def compute(self, dout, weight):
        """Volumes with out_channel channels from dout (N, in_channel, D, H, W)."""
        self._check(weight, self.in_channel)
        return conv3d_transpose(
            dout, weight, self.pad_mode, self.pad, self.stride, self.dilation, self.group, self.output_padding
        )


__all__ = ["Conv3D", "Conv3DTranspose", "conv3d"]
