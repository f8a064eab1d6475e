"""Cells without parameters: activations, padding, pooling, shapes."""

from mindspore import ops as named
from mindspore.mint.nn import functional as F  # noqa: N812 - as everybody calls it
from mindspore.mint.nn._made import NEEDED
from mindspore.mint.nn._made import cell as _cell


def _made(name, function, words, **settings):
    return _cell(name, function, words, __name__, **settings)


ELU = _made("ELU", F.elu, "x above 0, else alpha (e^x - 1).", alpha=1.0, inplace=False)
GELU = _made("GELU", F.gelu, "x times the normal distribution's share below x.", approximate="none")
GLU = _made("GLU", F.glu, "The first half of an axis times the sigmoid of the second.", dim=-1)
Hardtanh = _made(
    "Hardtanh", F.hardtanh, "Each element between two bounds.", min_val=-1.0, max_val=1.0, inplace=False
)
Hardshrink = _made("Hardshrink", lambda x, lambd: named.hardshrink(x, lambd), "0 within lambd.", lambd=0.5)
LogSoftmax = _made("LogSoftmax", F.log_softmax, "The logarithm of softmax along an axis.", dim=None)
ReLU6 = _made("ReLU6", F.relu6, "Each element between 0 and 6.", inplace=False)
SiLU = _made("SiLU", F.silu, "x sigmoid(x).", inplace=False)
Softmax = _made("Softmax", F.softmax, "e^x over its sum along an axis.", dim=None)
Threshold = _made(
    "Threshold",
    F.threshold,
    "The elements above a threshold, and a value instead of others.",
    threshold=NEEDED,
    value=NEEDED,
    inplace=False,
)
Flatten = _made("Flatten", F.flatten, "The axes from start_dim to end_dim as one.", start_dim=1, end_dim=-1)
PixelShuffle = _made(
    "PixelShuffle", F.pixel_shuffle, "(C r^2, H, W) as (C, H r, W r).", upscale_factor=NEEDED
)
Fold = _made(
    "Fold",
    lambda *args, **settings: F.fold(*args, **settings),
    "Images as the sums of the patches of Unfold.",
    output_size=NEEDED,
    kernel_size=NEEDED,
    dilation=1,
    padding=0,
    stride=1,
)
Unfold = _made(
    "Unfold",
    lambda *args, **settings: F.unfold(*args, **settings),
    "The patches of images that a window sees, as columns.",
    kernel_size=NEEDED,
    dilation=1,
    padding=0,
    stride=1,
)


class _Dropout(_cell("_Dropout", F.dropout, "Elements that are 0 by chance.", __name__, p=0.5)):
    def construct(self, input):
        return self._drop(input, self.p, self.training)


class Dropout(_Dropout):
    """Each element is 0 with probability p while training, else divided by 1 - p."""

    _drop = staticmethod(F.dropout)


class Dropout2d(_Dropout):
    """Each channel is 0 with probability p while training, else divided by 1 - p."""

    _drop = staticmethod(F.dropout2d)


# ---- Padding -----------------------------------------------------------------------------------------------


def _sides(padding, axes):
    return (padding,) * (2 * axes) if isinstance(padding, int) else tuple(padding)


def _padding(name, axes, mode, words, **settings):
    def apply(x, padding, value=0.0):
        return F.pad(x, _sides(padding, axes), mode, value if mode == "constant" else None)

    return _made(name, apply, words, padding=NEEDED, **settings)


ConstantPad1d = _padding("ConstantPad1d", 1, "constant", "A value around the last axis.", value=NEEDED)
ConstantPad2d = _padding("ConstantPad2d", 2, "constant", "A value around the last two axes.", value=NEEDED)
ConstantPad3d = _padding("ConstantPad3d", 3, "constant", "A value around the last three axes.", value=NEEDED)
ZeroPad1d = _padding("ZeroPad1d", 1, "constant", "0 around the last axis.")
ZeroPad2d = _padding("ZeroPad2d", 2, "constant", "0 around the last two axes.")
ZeroPad3d = _padding("ZeroPad3d", 3, "constant", "0 around the last three axes.")
ReflectionPad1d = _padding("ReflectionPad1d", 1, "reflect", "The last axis, mirrored at its ends.")
ReflectionPad2d = _padding("ReflectionPad2d", 2, "reflect", "The last two axes, mirrored at their ends.")
ReflectionPad3d = _padding("ReflectionPad3d", 3, "reflect", "The last three axes, mirrored at their ends.")
ReplicationPad1d = _padding("ReplicationPad1d", 1, "replicate", "The last axis with its ends repeated.")
ReplicationPad2d = _padding("ReplicationPad2d", 2, "replicate", "The last two axes, their ends repeated.")
ReplicationPad3d = _padding("ReplicationPad3d", 3, "replicate", "The last three axes, their ends repeated.")

# ---- Pooling -----------------------------------------------------------------------------------------------

AvgPool2d = _made(
    "AvgPool2d",
    F.avg_pool2d,
    "The mean of each window.",
    kernel_size=NEEDED,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
)
MaxPool2d = _made(
    "MaxPool2d",
    F.max_pool2d,
    "The greatest element of each window.",
    kernel_size=NEEDED,
    stride=None,
    padding=0,
    dilation=1,
    return_indices=False,
    ceil_mode=False,
)
AvgPool1d = _made(
    "AvgPool1d",
    F.avg_pool1d,
    "The mean of each window.",
    kernel_size=NEEDED,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
)
AvgPool3d = _made(
    "AvgPool3d",
    F.avg_pool3d,
    "The mean of each window.",
    kernel_size=NEEDED,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
)
MaxUnpool2d = _made(
    "MaxUnpool2d",
    lambda x, indices, output_size=None, **settings: F.max_unpool2d(
        x, indices, output_size=output_size, **settings
    ),
    "The elements at the places that MaxPool2d took them from, 0 elsewhere.",
    kernel_size=NEEDED,
    stride=None,
    padding=0,
)
AdaptiveMaxPool1d = _made(
    "AdaptiveMaxPool1d",
    F.adaptive_max_pool1d,
    "The greatest elements of as many parts as output_size says.",
    output_size=NEEDED,
    return_indices=False,
)
AdaptiveMaxPool2d = _made(
    "AdaptiveMaxPool2d",
    lambda x, **settings: F.adaptive_max_pool2d(x, **settings),
    "The greatest elements of as many parts as output_size says.",
    output_size=NEEDED,
    return_indices=False,
)
AdaptiveAvgPool1d = _made(
    "AdaptiveAvgPool1d",
    lambda x, output_size: F.adaptive_avg_pool1d(x, output_size),
    "The means of as many parts as output_size says.",
    output_size=NEEDED,
)
AdaptiveAvgPool2d = _made(
    "AdaptiveAvgPool2d",
    F.adaptive_avg_pool2d,
    "The means of as many parts as output_size says.",
    output_size=NEEDED,
)
AdaptiveAvgPool3d = _made(
    "AdaptiveAvgPool3d",
    lambda x, output_size: F.adaptive_avg_pool3d(x, output_size),
    "The means of as many parts as output_size says.",
    output_size=NEEDED,
)

# ---- Other sizes -------------------------------------------------------------------------------------------

Upsample = _made(
    "Upsample",
    F.interpolate,
    "Images in another size.",
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
)
UpsamplingNearest2d = _made(
    "UpsamplingNearest2d",
    F.interpolate,
    "Images in another size, each element the nearest old one.",
    size=None,
    scale_factor=None,
)
UpsamplingBilinear2d = _made(
    "UpsamplingBilinear2d",
    lambda x, **settings: F.interpolate(x, mode="bilinear", align_corners=True, **settings),
    "Images in another size, each element between the four next old ones; the corners stay.",
    size=None,
    scale_factor=None,
)

__all__ = sorted(name for name in globals() if name[0].isupper() and name not in ("F", "NEEDED"))
