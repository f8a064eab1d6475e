"""What operations on images share: arrays or pictures of PIL come in, and the same go out."""

import sys

from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks
from mindspore.dataset._checks import PipelineError


def is_picture(value) -> bool:
    """Whether it is an image of PIL, which only a script that has imported PIL can make."""
    images = sys.modules.get("PIL.Image")
    return images is not None and isinstance(value, images.Image)


def pil():
    """Package Pillow, which scripts bring themselves."""
    try:
        import PIL.Image
        import PIL.ImageEnhance
        import PIL.ImageFilter
        import PIL.ImageOps
    except ImportError:
        raise ImportError("pictures of PIL need the package Pillow: pip install pillow") from None
    return PIL


def image_array(value, name, ranks=(2, 3)):
    """An image as an array."""
    if not isinstance(value, numpy.ndarray):
        raise TypeError(f"Input should be NumPy or PIL image, got {type(value)}.")
    if value.dtype.kind in "USO":
        raise _checks.PipelineError(f"{name}: the image is {value.dtype}, it must hold numbers")
    if value.ndim not in ranks:
        raise _checks.PipelineError(
            f"{name}: the dimension of image tensor does not match the requirement of operator: it has "
            f"the shape "
            f"{value.shape}, and must be (H, W) or (H, W, C)"
        )
    return value


class ImageOperation(_calls.Recorded):
    """An operation on one image; others after it in a row are changed alike.

    What MindSpore does with OpenCV alone gives an array of a picture, too.
    """

    def __call__(self, *images):
        made = [self._apply(image) for image in images]
        return made[0] if len(made) == 1 else tuple(made)

    def _apply(self, image):
        if is_picture(image):
            return self._picture(image)
        return self._array(image_array(image, type(self).__name__))

    def _picture(self, image):
        return self._array(numpy.asarray(image))

    def __repr__(self):
        return type(self).__name__


def rounded(values, like):
    """`values` in the dtype of `like`: whole numbers are rounded and kept within its range."""
    dtype = like.dtype
    if dtype.kind in "iu":
        bounds = numpy.iinfo(dtype)
        return numpy.clip(numpy.rint(values), bounds.min, bounds.max).astype(dtype)
    return values.astype(dtype)


def only_bytes(image, name, channels=None):
    """The image, if it is uint8 (and of so many channels)."""
    if channels is not None and (image.ndim != 3 or image.shape[2] not in channels):
        raise _checks.PipelineError(
            f"{name}: the shape of the image is {image.shape}: the number of channels must be one of "
            f"{channels}"
        )
    return image


# What float32 counts up to without gaps: the largest that MindSpore takes for a size or a factor.
FLOAT_MAX = 16777216


def factor(name, value, low=0):
    """A number from `low` to 16777216."""
    _checks.of_type(name, value, int, float)
    if not low <= value <= FLOAT_MAX:
        raise ValueError(f"{name}: Input is not within the required interval of [{low}, {FLOAT_MAX}].")
    return float(value)


def size_of(size, name="size"):
    """(height, width) of a number or of two."""
    if not isinstance(size, str):
        _checks.of_type(name, size, int, list, tuple)
    given = [size, size] if _checks.is_whole(size) else list(size)
    if isinstance(size, str) or len(given) != 2:
        raise TypeError("Size should be a single integer or a list/tuple (h, w) of length 2.")
    for at, each in enumerate(given):
        _checks.of_type(f"{name}[{at}]", each, int)
        if not 1 <= each <= FLOAT_MAX:
            raise ValueError(f"{name}: Input is not within the required interval of [1, {FLOAT_MAX}].")
    return tuple(given)


def fill_of(value, name="fill_value", channels=3):
    """A colour: a byte for all channels, or one for each."""
    given = [value] * channels if _checks.is_whole(value) else list(value) if isinstance(value, tuple) else []
    if len(given) != 3:
        raise TypeError(f"{name} should be a single integer or a 3-tuple.")
    for each in given:
        _checks.of_type(name, each, int)
        if not 0 <= each <= 255:
            raise ValueError(f"Input {name} is not within the required interval of [0, 255].")
    return tuple(given)


def check_mean_and_std(mean, std):
    """Whole or broken numbers of 0 to 255, as many of both."""
    if len(mean) != len(std):
        raise ValueError("Length of mean and std must be equal.")
    for each in mean:
        _checks.number("mean_value", each, 0, 255)
    for each in std:
        _checks.number("std_value", each, above=0, high=255)


def gray_of(image):
    """Brightness of red, green and blue bytes, as OpenCV rounds it."""
    wide = image[..., :3].astype(numpy.int32)
    if image.dtype == numpy.uint8:
        return ((wide @ numpy.array([9798, 19235, 3735]) + (1 << 14)) >> 15).astype(numpy.uint8)
    return (image[..., :3] @ numpy.array([0.299, 0.587, 0.114])).astype(image.dtype)


class LibraryOperation(ImageOperation):
    """An operation of the library, with Pillow's for pictures; see subclasses."""

    def __call__(self, *images):
        made = [
            self._picture(image) if is_picture(image) else self._in_library(self._checked(image))
            for image in images
        ]
        return made[0] if len(made) == 1 else tuple(made)

    def _checked(self, image):
        return image_array(image, type(self).__name__)

    def _in_library(self, image):
        try:
            return super(ImageOperation, self).__call__(image)
        except ValueError as error:
            raise PipelineError(str(error)) from None
