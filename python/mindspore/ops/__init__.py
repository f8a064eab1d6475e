"""mindspore.ops: the functions that mean the same in Muster, and value_and_grad."""

from muster.ops import bias_add, equal, relu, tanh

from mindspore import _names
from mindspore._gradient import value_and_grad
from mindspore.ops import _array, _image
from mindspore.ops._array import *  # noqa: F403 - what it lists
from mindspore.ops._image import *  # noqa: F403 - what it lists

__all__ = [*_array.__all__, *_image.__all__, "bias_add", "equal", "relu", "tanh", "value_and_grad"]
__getattr__ = _names.missing(__name__)
