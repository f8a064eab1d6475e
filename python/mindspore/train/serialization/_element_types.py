"""The names that checkpoint files have for the types of elements."""

from mindspore import dtype as mstype
from mindspore._lazy import numpy

_WITH_NUMPY = (
    *(mstype.int8, mstype.uint8, mstype.int16, mstype.uint16, mstype.int32, mstype.uint32, mstype.int64),
    *(mstype.uint64, mstype.float16, mstype.float32, mstype.float64, mstype.bool_),
)
tensor_to_ms_type = {str(each): each for each in (*_WITH_NUMPY, mstype.bfloat16)}
tensor_to_ms_type |= {"str": mstype.string, "Int4": mstype.qint4x2}


def tensor_to_np_type(tensor_type_str: str):
    """The type of numpy for a name in a file: that of bfloat16 is ml_dtypes' own, "U" is of texts."""
    if tensor_type_str == "str":
        return "U"
    dtype = tensor_to_ms_type.get(tensor_type_str)
    if dtype is mstype.bfloat16:
        return mstype.dtype_to_nptype(dtype)
    return getattr(numpy, dtype.name) if dtype in _WITH_NUMPY else None


__all__ = ["tensor_to_ms_type", "tensor_to_np_type"]
