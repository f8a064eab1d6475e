"""mindspore.dataset.transforms: operations on any values."""

from mindspore import _names

__all__ = [
    "Compose",
    "Concatenate",
    "Duplicate",
    "Fill",
    "Mask",
    "OneHot",
    "PadEnd",
    "Plugin",
    "PyTensorOperation",
    "RandomApply",
    "RandomChoice",
    "RandomOrder",
    "Relational",
    "Slice",
    "TensorOperation",
    "TypeCast",
    "Unique",
    "not_random",
]
__getattr__ = _names.later(
    __name__, dict.fromkeys(__all__, "_ops"), ("c_transforms", "py_transforms", "transforms")
)
