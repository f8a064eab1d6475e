"""All functions of mindspore.ops, collected from the families."""

from mindspore._gradient import grad as grad
from mindspore._gradient import value_and_grad as value_and_grad
from mindspore.ops import _array, _image, _inputs, _losses, _math, _rows, _training
from mindspore.ops._array import *  # noqa: F403
from mindspore.ops._image import *  # noqa: F403
from mindspore.ops._losses import *  # noqa: F403
from mindspore.ops._math import *  # noqa: F403
from mindspore.ops._rows import *  # noqa: F403
from mindspore.ops._training import *  # noqa: F403

__all__ = sorted(
    {
        "grad",
        "value_and_grad",
        *_array.__all__,
        *_image.__all__,
        *_losses.__all__,
        *_math.__all__,
        *_rows.__all__,
        *_training.__all__,
    }
)
globals().update((_name, _inputs.watch("mindspore.ops", _name, globals()[_name])) for _name in __all__)
