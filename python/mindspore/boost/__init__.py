"""mindspore.boost: gradient accumulation."""

from mindspore import _names
from mindspore.boost.grad_accumulation import GradientAccumulation

__all__ = ["GradientAccumulation"]
__getattr__ = _names.missing(__name__)
