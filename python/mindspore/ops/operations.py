"""mindspore.ops.operations, often imported as P: the ops as classes."""

from mindspore import _names
from mindspore.ops import (
    _array_primitives,
    _image_primitives,
    _later,
    _loss_primitives,
    _math_primitives,
    _row_primitives,
    _training_primitives,
)
from mindspore.ops._array_primitives import *  # noqa: F403
from mindspore.ops._image_primitives import *  # noqa: F403
from mindspore.ops._loss_primitives import *  # noqa: F403
from mindspore.ops._math_primitives import *  # noqa: F403
from mindspore.ops._primitive import Primitive as Primitive
from mindspore.ops._row_primitives import *  # noqa: F403
from mindspore.ops._training_primitives import *  # noqa: F403

_own = [
    "Primitive",
    *_array_primitives.__all__,
    *_image_primitives.__all__,
    *_loss_primitives.__all__,
    *_math_primitives.__all__,
    *_row_primitives.__all__,
    *_training_primitives.__all__,
]
__path__ = []  # older paths lie below
__getattr__ = _later.of(_names.missing(__name__), _own, shows_refused=True)
