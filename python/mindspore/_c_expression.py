"""mindspore._c_expression: the few of MindSpore's inner names that scripts import."""

import muster
from mindspore import _names

Tensor = TensorPy = muster.Tensor
__all__ = ["Tensor", "TensorPy"]
__getattr__ = _names.missing(__name__)
