"""Functions for training by MindSpore's names."""

import muster
from mindspore import _names
from muster import ops


def assign(variable, value):
    """Sets the parameter `variable`, which takes values of lesser dtypes than its own; gives the variable."""
    if isinstance(value, muster.Tensor) and value.dtype != variable.dtype:
        from mindspore.numpy._shared import promoted

        if promoted(variable.dtype, value.dtype) == variable.dtype:
            value = ops.cast(value, variable.dtype)
    return ops.assign(variable, value)


def assign_add(variable, value):
    """Adds `value`, in the dtype of the parameter `variable`, to it in place; gives the variable.

    One element is added to one, whatever the number of axes: a step counter (1,) by a scalar.
    """
    if isinstance(value, muster.Tensor):
        value = ops.cast(value, variable.dtype)
        if value._size == 1 == variable._size:
            value = ops.reshape(value, variable.shape)
    elif isinstance(value, int) and variable._size == 1:
        value = ops.full(variable.shape, value, dtype=variable.dtype)
    return ops.assign_add(variable, value)


def assign_sub(variable, value):
    """Takes `value` from the parameter `variable` in place; gives the variable."""
    return assign_add(variable, ops.neg(value) if isinstance(value, muster.Tensor) else -value)


def depend(value, expr):
    """`value`; what `expr` did has happened, since effects come in the order of the code."""
    return value


def clip_by_norm(x, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """A tensor, or a list or tuple of them as a tuple, times min(max_norm / (norm + 1e-6), 1)."""
    clipped = ops.clip_by_norm(x, max_norm, norm_type, error_if_nonfinite)
    return tuple(clipped) if isinstance(clipped, list) else clipped


def clip_by_global_norm(x, clip_norm=1.0, use_norm=None):
    """A tuple of tensors times clip_norm / max(norm, clip_norm), norm being the length of all together."""
    return tuple(ops.clip_by_global_norm(x, clip_norm, use_norm))


__all__ = [
    "assign",
    "assign_add",
    "assign_sub",
    "clip_by_global_norm",
    "clip_by_norm",
    "depend",
]
__getattr__ = _names.missing(__name__)
