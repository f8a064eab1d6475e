"""What the functions of mindspore.numpy share: their tensors, dtypes and axes."""

import builtins

import muster
from muster import ops

_RANKS = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_BY_NAME = {"int": "int32", "float": "float32", "bool_": "bool", "int_": "int32", "float_": "float32"}


def is_float(dtype) -> bool:
    """Whether a dtype holds real numbers."""
    return dtype.name in _FLOATS


_CODES = {f"{kind[0]}{width // 8}": f"{kind}{width}" for kind in ("int", "uint") for width in (8, 16, 32, 64)}
_CODES |= {f"f{width // 8}": f"float{width}" for width in (16, 32, 64)}


def is_whole(dtype) -> bool:
    """Whether a dtype holds whole numbers; bool does not."""
    return dtype.name in _RANKS and dtype.name != "bool"


def dtype_named(dtype):
    """A dtype of the library for one, its name, or Python's bool, int and float; None stays None."""
    if dtype is None or isinstance(dtype, muster.DType):
        return dtype
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype))
    name = _BY_NAME.get(name.lower(), name.lower())
    name = _CODES.get(name, name)
    found = muster.bool_ if name == "bool" else getattr(muster, name, None)
    if not isinstance(found, muster.DType):
        raise TypeError(f"dtype {dtype!r} is none of mindspore.numpy: {', '.join((*_RANKS, *_FLOATS))}")
    return found


def tensor(value, dtype=None):
    """Tensors as they are; of Python numbers, whole ones become int32 and others float32."""
    if isinstance(value, muster.Tensor):
        return cast(value, dtype)
    made = _joined(value)
    if dtype is None and not hasattr(value, "dtype"):
        dtype = muster.int32 if made.dtype == muster.int64 and not _has_tensor(value) else None
    if dtype is None and isinstance(value, float):  # one of numpy's, too
        dtype = muster.float32
    return cast(made, dtype)


def _has_tensor(value) -> bool:
    return isinstance(value, muster.Tensor) or (
        isinstance(value, list | tuple) and builtins.any(_has_tensor(each) for each in value)
    )


def _joined(value):
    """A tensor of numbers, of nested lists, or of lists that hold tensors, which become a new axis."""
    if not _has_tensor(value):
        return muster.Tensor(value)
    if isinstance(value, muster.Tensor):
        return value
    return ops.stack(same_dtype([tensor(each) for each in value]), 0)


def cast(value, dtype):
    """`value` in `dtype`; None leaves it."""
    dtype = dtype_named(dtype)
    return value if dtype is None or value.dtype == dtype else ops.cast(value, dtype)


def promoted(first, second):
    """The dtype of numbers of both dtypes: a float wins, then the wider one, then the sign."""
    if first == second:
        return first
    names = {first.name, second.name}
    floats = [name for name in _FLOATS if name in names]
    if names == {"float16", "bfloat16"}:
        return muster.float32
    if floats:
        return getattr(muster, floats[-1])
    if "bool" in names:
        return first if second.name == "bool" else second
    wide, narrow = sorted((first, second), key=lambda each: _RANKS.index(each.name), reverse=True)
    if wide.name.startswith("int") or narrow.name.startswith("uint"):
        return wide if wide.itemsize > narrow.itemsize or narrow.name[0] == wide.name[0] else _wider(wide)
    return _wider(wide)


def _wider(dtype):
    """The signed dtype that holds an unsigned one: float32 above 64 bits."""
    return getattr(muster, {1: "int16", 2: "int32", 4: "int64"}.get(dtype.itemsize, "float32"))


def same_dtype(tensors):
    """Tensors in the dtype that holds all of theirs."""
    dtype = tensors[0].dtype
    for each in tensors[1:]:
        dtype = promoted(dtype, each.dtype)
    return [cast(each, dtype) for each in tensors]


def real(value):
    """A tensor in float32 unless it holds floats already."""
    value = tensor(value)
    return value if is_float(value.dtype) else ops.cast(value, muster.float32)


def countable(value):
    """A tensor that can be added up: bool becomes int32."""
    value = tensor(value)
    return ops.cast(value, muster.int32) if value.dtype == muster.bool_ else value


def axis_of(axis, ndim, name):
    """An axis counted from the front; an error that names the function where there is none."""
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(f"{name}: an axis is a whole number, not {axis!r}")
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: axis {axis} is out of range for {ndim} axes")
    return axis % ndim


def axes_of(axis, ndim, name):
    """A tuple of axes counted from the front, each once; None stands for all, a tensor for its elements."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, muster.Tensor):
        axis = axis.tolist()
    axes = tuple(axis_of(each, ndim, name) for each in (axis if isinstance(axis, list | tuple) else (axis,)))
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: axis {axis} names an axis twice")
    return axes


def shape_of(shape):
    """A tuple for a shape that may be one number."""
    return (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)


def broadcast_shape(*shapes):
    """The shape that all shapes broadcast to."""
    ndim = builtins.max((len(shape) for shape in shapes), default=0)
    result = []
    for place in range(ndim):
        sizes = {shape[place - ndim + len(shape)] for shape in shapes if place - ndim + len(shape) >= 0} - {1}
        if len(sizes) > 1:
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def moved(value, source, destination):
    """`value` with axis `source` at place `destination`."""
    order = [at for at in range(value.ndim) if at != source]
    order.insert(destination, source)
    return value if order == list(range(value.ndim)) else ops.transpose(value, order)


def host(value):
    """The elements as an array of numpy, for shapes that depend on them: only outside of a graph."""
    return tensor(value).asnumpy()


def public(names, module):
    """The names of a module's own that scripts may import."""
    return sorted(
        name
        for name, value in names.items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module
    )
