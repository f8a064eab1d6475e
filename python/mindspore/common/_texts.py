"""How tensors and dtypes look in the words of MindSpore, once it is imported."""

import math

from muster import _core, float16


def tensor_text(tensor) -> str:
    """What repr() gives for a tensor."""
    import numpy

    lead = f"Tensor(shape={list(tensor.shape)}, dtype={tensor.dtype}, value="
    if any(size < 0 for size in tensor.shape):  # declares a shape
        return f"{lead}{' ' if len(tensor.shape) == 1 else chr(10)})"
    array = tensor.asnumpy()
    if array.ndim == 0:
        return f"{lead} {array.item():g})" if array.dtype.kind == "f" else f"{lead} {array.item()})"
    digits = 4 if tensor.dtype is float16 else 8

    def number(x):
        text = f"{x:.{digits}e}" if math.isfinite(x) else str(x)
        return text.rjust(digits + 7)

    text = numpy.array2string(array, separator=", ", formatter={"float_kind": number}) if array.size else ""
    return f"{lead}{' ' if array.ndim == 1 else chr(10)}{text.replace(chr(10) * 2, chr(10))})"


_core._use_mindspore_texts(tensor_text)
