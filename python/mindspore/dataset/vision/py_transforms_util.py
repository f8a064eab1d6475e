"""mindspore.dataset.vision.py_transforms_util: helpers of scripts' own operations on pictures."""

from mindspore import _names
from mindspore._lazy import numpy
from mindspore.dataset import vision


def is_numpy(img) -> bool:
    """Whether it is an array."""
    return isinstance(img, numpy.ndarray)


def is_pil(img) -> bool:
    """Whether it is a picture of Pillow."""
    return any(kind.__module__.startswith("PIL.") for kind in type(img).__mro__)


def to_pil(img):
    """The picture of Pillow of an array; one of Pillow as it is."""
    return img if is_pil(img) else vision.ToPIL()(img)


def decode(img):
    """The pixels of the bytes of a picture, as one of Pillow."""
    return to_pil(vision.Decode()(img))


def hwc_to_chw(img):
    """Channels first."""
    if not is_numpy(img):
        raise TypeError(f"hwc_to_chw() takes an array, not {type(img).__name__}")
    if img.ndim != 3:
        raise ValueError(f"hwc_to_chw() takes an image of three axes, not {img.ndim}")
    return img.transpose(2, 0, 1).copy()


def to_tensor(img, output_type):
    """Channels first, from 0 to 1."""
    return vision.ToTensor(output_type)(img)


__all__ = ["decode", "hwc_to_chw", "is_numpy", "is_pil", "to_pil", "to_tensor"]
__getattr__ = _names.missing(__name__)
