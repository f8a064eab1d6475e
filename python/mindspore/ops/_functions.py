"""All functions of mindspore.ops, collected from the families."""

from mindspore.ops import _array, _image, _math
from mindspore.ops._array import *  # noqa: F403
from mindspore.ops._image import *  # noqa: F403
from mindspore.ops._math import *  # noqa: F403

__all__ = sorted({"bias_add", "value_and_grad", *_array.__all__, *_image.__all__, *_math.__all__})
