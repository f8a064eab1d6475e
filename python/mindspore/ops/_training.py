"""Functions for training by MindSpore's names."""

from muster.ops import assign, assign_add, clip_by_global_norm, clip_by_norm

import muster
from mindspore import _names
from muster import ops


def assign_sub(variable, value):
    """Takes `value` from the parameter `variable` in place; gives the variable."""
    return ops.assign_add(variable, ops.neg(value) if isinstance(value, muster.Tensor) else -value)


def depend(value, expr):
    """`value`; what `expr` did has happened, since effects come in the order of the code."""
    return value


__all__ = [
    "assign",
    "assign_add",
    "assign_sub",
    "clip_by_global_norm",
    "clip_by_norm",
    "depend",
]
__getattr__ = _names.missing(__name__)
