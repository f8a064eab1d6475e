"""How tensors and dtypes look in the words of MindSpore, once it is imported."""

import math

from muster import _core, bfloat16, float16

_EDGE = 3  # elements at each end of an axis that is cut


def tensor_text(tensor) -> str:
    """What repr() gives for a tensor."""
    lead = f"Tensor(shape={list(tensor.shape)}, dtype={tensor.dtype}, value="
    if any(size < 0 for size in tensor.shape):  # declares a shape
        return f"{lead}{' ' if len(tensor.shape) == 1 else chr(10)})"
    array = tensor.asnumpy()
    if array.ndim == 0:
        return f"{lead} {array.item():g})" if array.dtype.kind == "f" else f"{lead} {array.item()})"
    return f"{lead}{' ' if array.ndim == 1 else chr(10)}{_elements_text(array, tensor.dtype)})"


def _elements_text(array, dtype) -> str:
    if not array.size:
        return ""
    import numpy

    limit = 1000 if array.ndim == 1 else 2 * _EDGE
    is_cut = [size > limit for size in array.shape]
    ends = [*range(_EDGE), *range(-_EDGE, 0)]
    for axis in range(array.ndim):
        array = numpy.take(array, ends, axis) if is_cut[axis] else array
    texts = [_number_text(x, dtype) for x in array.ravel().tolist()]
    width = max(map(len, texts))
    per_line = 12 if isinstance(array.flat[0], numpy.bool_ | numpy.floating) and dtype is not bfloat16 else 24
    return _joined(array.shape, is_cut, iter([text.rjust(width) for text in texts]), per_line)


def _number_text(x, dtype) -> str:
    if isinstance(x, bool):
        return f"{x!s:>5}"
    if isinstance(x, int) or dtype is bfloat16:
        return f"{x:g}" if isinstance(x, float) else str(x)
    digits = 4 if dtype is float16 else 8
    return (f"{x:.{digits}e}" if math.isfinite(x) else str(x)).rjust(digits + 7)


def _joined(shape, is_cut, texts, per_line, depth=1) -> str:
    """The next texts in brackets: rows below each other, the elements of one tensor of one axis in lines."""
    if len(shape) > 1:
        parts = [_joined(shape[1:], is_cut[1:], texts, per_line, depth + 1) for _ in range(shape[0])]
        after, between = "\n" + " " * depth, ",\n" + " " * depth
        before = between
    else:
        parts = [next(texts) for _ in range(shape[0])]
        before = after = " "
        between = ", "
    if is_cut[0]:
        return f"[{between.join(parts[:_EDGE])}{before}...{after}{between.join(parts[_EDGE:])}]"
    if depth > 1 or len(shape) > 1:
        return f"[{between.join(parts)}]"
    lines = [", ".join(parts[at : at + per_line]) for at in range(0, len(parts), per_line)]
    return "[" + ", \n ".join(lines) + ("\n ]" if len(parts) % per_line == 0 else "]")


_core._use_mindspore_texts(tensor_text)
