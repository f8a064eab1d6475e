"""Names of choices, as MindSpore numbers them."""

import enum

from muster.dataset import vision as _ours


class Inter(enum.IntEnum):
    """How pixels are made where there were none."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(enum.StrEnum):
    """What lies outside of an image."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ConvertMode(enum.IntEnum):
    """From which order of channels to which."""

    COLOR_BGR2BGRA = COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


class ImageBatchFormat(enum.IntEnum):
    """Where the channels of a batch of images are."""

    NHWC = 0
    NCHW = 1


class SliceMode(enum.IntEnum):
    """What becomes of pixels that do not fill a patch."""

    PAD = 0
    DROP = 1


class ImageReadMode(enum.IntEnum):
    """How the channels of a file come."""

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2


class AutoAugmentPolicy(enum.StrEnum):
    """The policies of AutoAugment, by the data that they were found for."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


_NATIVE = {
    Inter.NEAREST: _ours.Inter.NEAREST,
    Inter.LINEAR: _ours.Inter.LINEAR,
    Inter.CUBIC: _ours.Inter.CUBIC,
    Inter.AREA: _ours.Inter.AREA,
}
_NATIVE_BORDER = {each: getattr(_ours.Border, each.name) for each in Border}


def inter(name, value):
    """`value` as Inter."""
    if isinstance(value, _ours.Inter):
        return next(ours for ours, native in _NATIVE.items() if native == value)
    if not isinstance(value, Inter):
        raise TypeError(
            f"Argument {name} with value {value} is not of type [<enum 'Inter'>], but got {type(value)}."
        )
    return value


def native_inter(value):
    """The library's own; those that only Pillow has are drawn as the nearest to it."""
    if value not in _NATIVE:
        raise _only_pictures(value)
    return _NATIVE[value]


def _only_pictures(value):
    from mindspore.dataset._checks import PipelineError

    return PipelineError(
        f"interpolation {value.name} needs a picture of PIL: decode with Decode(to_pil=True)"
    )


def border(name, value):
    """`value` as Border."""
    if isinstance(value, _ours.Border):
        return next(ours for ours, native in _NATIVE_BORDER.items() if native == value)
    if not isinstance(value, Border):
        raise TypeError(
            f"Argument {name} with value {value} is not of type [<enum 'Border'>], but got {type(value)}."
        )
    return value


def native_border(value):
    """The library's own."""
    return _NATIVE_BORDER[value]
