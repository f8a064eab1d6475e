"""mindspore.ops.operations, often imported as P: the ops as classes."""

from mindspore import _names
from mindspore.ops import _array_primitives, _math_primitives
from mindspore.ops._array_primitives import *  # noqa: F403
from mindspore.ops._math_primitives import *  # noqa: F403
from mindspore.ops._primitive import Primitive as Primitive

__all__ = sorted({"Primitive", *_array_primitives.__all__, *_math_primitives.__all__})
__getattr__ = _names.missing(__name__)
