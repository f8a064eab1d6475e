"""Cells that put elements around a tensor."""

import muster
from muster import ops


class Pad(muster.Cell):
    """x with `paddings` ((before, after) for each axis) around: zeros, or mirrored."""

    def __init__(self, paddings, mode="CONSTANT"):
        super().__init__()
        if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
            raise ValueError(f"Pad: mode is 'CONSTANT', 'REFLECT' or 'SYMMETRIC', not {mode!r}")
        if not isinstance(paddings, tuple):
            raise TypeError(f"Pad: paddings is a tuple of pairs, not {type(paddings).__name__}")
        if any(len(pair) != 2 for pair in paddings):
            raise ValueError(f"Pad: paddings is a pair for each axis, not {paddings}")
        self.paddings, self.mode = paddings, mode

    def construct(self, x):
        """The padded tensor."""
        if len(self.paddings) != x.ndim:
            raise ValueError(f"Pad: {len(self.paddings)} pairs of paddings do not fit the input {x.shape}")
        return ops.pad(x, [side for pair in reversed(self.paddings) for side in pair], self.mode.lower())


class _PadNd(muster.Cell):
    axes = 1
    mode = "constant"
    value = None

    def __init__(self, padding):
        super().__init__()
        name = type(self).__name__
        given = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if (
            len(given) % 2
            or not 0 < len(given) <= 2 * self.axes
            or not all(isinstance(n, int) for n in given)
        ):
            raise ValueError(f"{name}: padding is {2 * self.axes} whole numbers, or one, not {padding!r}")
        if self.mode != "constant" and (min(given) < 0 or len(given) != 2 * self.axes):
            raise ValueError(
                f"{name}: padding is {2 * self.axes} numbers of at least 0, or one, not {padding!r}"
            )
        self.padding = given

    def construct(self, x):
        """The padded tensor."""
        if self.mode != "constant" and x.ndim not in (self.axes + 1, self.axes + 2):
            raise ValueError(
                f"{type(self).__name__}: input {x.shape} does not fit: {self.axes + 1} or {self.axes + 2} "
                "axes are needed"
            )
        return ops.pad(x, self.padding, self.mode, self.value)


class _ConstantPad(_PadNd):
    def __init__(self, padding, value):
        super().__init__(padding)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise TypeError(f"{type(self).__name__}: value is a number, not {type(value).__name__}")
        self.value = value


class ConstantPad1d(_ConstantPad):
    """`value` before and after the last axis; negative numbers take elements away."""


class ConstantPad2d(_ConstantPad):
    """`value` around the last two axes (left, right, top, bottom); negative numbers take elements away."""

    axes = 2


class ConstantPad3d(_ConstantPad):
    """`value` around the last three axes; negative numbers take elements away."""

    axes = 3


class ZeroPad2d(_PadNd):
    """Zeros around the last two axes (left, right, top, bottom); negative numbers take elements away."""

    axes = 2


def _kind(name: str, axes: int, mode: str, doc: str):
    return type(name, (_PadNd,), {"axes": axes, "mode": mode, "__doc__": doc, "__module__": __name__})


_REFLECTED = "Mirrored at the outermost elements of the last axes, which do not appear twice."
_REPLICATED = "The outermost elements of the last axes, repeated."
ReflectionPad1d = _kind("ReflectionPad1d", 1, "reflect", _REFLECTED)
ReflectionPad2d = _kind("ReflectionPad2d", 2, "reflect", _REFLECTED)
ReflectionPad3d = _kind("ReflectionPad3d", 3, "reflect", _REFLECTED)
ReplicationPad1d = _kind("ReplicationPad1d", 1, "replicate", _REPLICATED)
ReplicationPad2d = _kind("ReplicationPad2d", 2, "replicate", _REPLICATED)
ReplicationPad3d = _kind("ReplicationPad3d", 3, "replicate", _REPLICATED)


class Unfold(muster.Cell):
    """Patches of images (N, C, H, W): (N, C ksizes, H', W'), the rows and columns of a patch as channels.

    `ksizes`, `strides` and `rates` are [1, rows, columns, 1]; `padding` is 'valid' or 'same'.
    """

    def __init__(self, ksizes, strides, rates, padding="valid"):
        super().__init__()
        for name, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if not isinstance(value, tuple | list) or len(value) != 4 or value[0] != 1 or value[3] != 1:
                raise ValueError(f"Unfold: {name} is [1, rows, columns, 1], not {value!r}")
        if padding not in ("valid", "same", "VALID", "SAME"):
            raise ValueError(f"Unfold: padding is 'valid' or 'same', not {padding!r}")
        self.ksizes, self.strides, self.rates, self.padding = ksizes, strides, rates, padding.lower()

    def construct(self, input_x):
        """The patches."""
        if input_x.ndim != 4:
            raise ValueError(f"Unfold: input {input_x.shape} does not fit: (N, C, H, W) is needed")
        n, c = input_x.shape[:2]
        sizes, strides, rates = tuple(self.ksizes[1:3]), tuple(self.strides[1:3]), tuple(self.rates[1:3])
        count = sizes[0] * sizes[1]
        pick = muster.ops.reshape(_eye(count), (count, 1, *sizes))
        images = ops.reshape(input_x, (n * c, 1, *input_x.shape[2:]))
        y = ops.conv2d(images, ops.cast(pick, input_x.dtype), None, strides, self.padding, 0, rates)
        h, w = y.shape[2:]
        y = ops.transpose(ops.reshape(y, (n, c, count, h, w)), (0, 2, 1, 3, 4))
        return ops.reshape(y, (n, count * c, h, w))


def _eye(count: int):
    rows = ops.reshape(ops.arange(count), (count, 1))
    return ops.cast(ops.equal(rows, ops.arange(count)), muster.float32)


__all__ = [
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Pad",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Unfold",
    "ZeroPad2d",
]
