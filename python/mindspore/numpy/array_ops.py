"""mindspore.numpy.array_ops: functions that move, join, split and pick elements."""

import builtins
import itertools

import muster
from mindspore.numpy import _shared
from mindspore.numpy._shared import axes_of, axis_of, cast, moved, same_dtype, shape_of, tensor
from muster import ops

# ---- Shapes ------------------------------------------------------------------------------------------------


def reshape(x, new_shape):
    """The elements in another shape; one size may be -1."""
    return ops.reshape(tensor(x), shape_of(new_shape))


def ravel(x):
    """The elements along one axis."""
    return ops.reshape(tensor(x), (-1,))


def expand_dims(a, axis):
    """`a` with an axis of one element at each of the places that `axis` names."""
    a = tensor(a)
    places = axis if isinstance(axis, list | tuple) else (axis,)
    for place in sorted(axes_of(places, a.ndim + len(places), "expand_dims")):
        a = ops.expand_dims(a, place)
    return a


def squeeze(a, axis=None):
    """`a` without axes of one element, or without those that `axis` names."""
    a = tensor(a)
    dropped = [at for at in axes_of(axis, a.ndim, "squeeze") if a.shape[at] == 1]
    return ops.reshape(a, [size for at, size in enumerate(a.shape) if at not in dropped])


def transpose(a, axes=None):
    """`a` with its axes turned round, or in the order of `axes`."""
    a = tensor(a)
    order = tuple(reversed(range(a.ndim))) if axes is None else axes_of(axes, a.ndim, "transpose")
    if len(order) != a.ndim:
        raise ValueError(f"transpose: {axes} are not all axes of {a.shape}")
    return ops.transpose(a, order) if a.ndim > 1 else a


def moveaxis(a, source, destination):
    """`a` with the axes `source` at the places `destination`; the others keep their order."""
    a = tensor(a)
    given = [axes_of(each, a.ndim, "moveaxis") for each in (source, destination)]
    if len(given[0]) != len(given[1]):
        raise ValueError(f"moveaxis: {source} and {destination} differ in length")
    order = [at for at in range(a.ndim) if at not in given[0]]
    for place, at in sorted(zip(given[1], given[0], strict=True)):
        order.insert(place, at)
    return transpose(a, order)


def rollaxis(x, axis, start=0):
    """`x` with `axis` moved in front of the axis `start`."""
    x = tensor(x)
    at = axis_of(axis, x.ndim, "rollaxis")
    if not -x.ndim <= start <= x.ndim:
        raise ValueError(f"rollaxis: start {start} is out of range for {x.ndim} axes")
    place = start + x.ndim if start < 0 else start
    return moved(x, at, place - 1 if place > at else place)


def swapaxes(x, axis1, axis2):
    """`x` with two axes exchanged."""
    x = tensor(x)
    order = list(range(x.ndim))
    first, second = axis_of(axis1, x.ndim, "swapaxes"), axis_of(axis2, x.ndim, "swapaxes")
    order[first], order[second] = second, first
    return transpose(x, order)


def atleast_1d(*arys):
    """Tensors with one axis at least; several as a list."""
    return _at_least(arys, lambda a: ops.reshape(a, (1,)) if a.ndim == 0 else a)


def atleast_2d(*arys):
    """Tensors with two axes at least, new ones in front; several as a list."""
    return _at_least(arys, lambda a: ops.reshape(a, (1, -1)) if a.ndim < 2 else a)


def _three(a):
    if a.ndim >= 3:
        return a
    return ops.expand_dims(a, 2) if a.ndim == 2 else ops.reshape(a, (1, -1, 1))


def atleast_3d(*arys):
    """Tensors with three axes at least, (1, n, 1) of one; several as a list."""
    return _at_least(arys, _three)


def _at_least(arrays, change):
    made = [change(tensor(each)) for each in arrays]
    return made[0] if len(made) == 1 else made


def broadcast_to(array, shape):
    """`array` repeated to a shape that it broadcasts to."""
    return ops.broadcast_to(tensor(array), shape_of(shape))


def broadcast_arrays(*args):
    """Tensors in the shape that all broadcast to, as a list."""
    made = [tensor(each) for each in args]
    shape = _shared.broadcast_shape(*(each.shape for each in made))
    return [ops.broadcast_to(each, shape) for each in made]


def size(a, axis=None):
    """The number of elements, or of those along an axis, as a number."""
    a = tensor(a)
    return a.size if axis is None else a.shape[axis_of(axis, a.ndim, "size")]


# ---- Joining -----------------------------------------------------------------------------------------------


def _tensors(arrays, name):
    made = [tensor(each) for each in arrays]
    if not made:
        raise ValueError(f"{name}: a tensor or more is needed")
    return same_dtype(made)


def concatenate(arrays, axis=0):
    """Tensors one after the other along `axis`, in the dtype that holds all; None flattens them first."""
    if isinstance(arrays, muster.Tensor):
        arrays = ops.unstack(arrays, 0)
    arrays = _tensors(arrays, "concatenate")
    if axis is None or builtins.any(each.ndim == 0 for each in arrays):
        arrays, axis = [ops.reshape(each, (-1,)) for each in arrays], 0
    return ops.concat(arrays, axis_of(axis, arrays[0].ndim, "concatenate"))


def append(arr, values, axis=None):
    """`values` behind `arr` along `axis`; None flattens both first."""
    arr, values = tensor(arr), tensor(values)
    if axis is None:
        arr, values, axis = ravel(arr), ravel(values), 0
    if arr.ndim != values.ndim:
        raise ValueError(f"append: {arr.shape} and {values.shape} differ in their number of axes")
    return concatenate((arr, values), axis)


def stack(arrays, axis=0):
    """Tensors of one shape along a new axis, in the dtype that holds all."""
    if isinstance(arrays, muster.Tensor):
        arrays = ops.unstack(arrays, 0)
    return ops.stack(_tensors(arrays, "stack"), axis)


def hstack(tup):
    """Tensors side by side: along the second axis, or the only one."""
    made = _tensors([atleast_1d(each) for each in tup], "hstack")
    return ops.concat(made, 0 if made[0].ndim == 1 else 1)


def vstack(tup):
    """Tensors below each other; those of one axis are rows."""
    return ops.concat(_tensors([atleast_2d(each) for each in tup], "vstack"), 0)


def dstack(tup):
    """Tensors behind each other, along a third axis."""
    return ops.concat(_tensors([atleast_3d(each) for each in tup], "dstack"), 2)


def column_stack(tup):
    """Tensors side by side; those of one axis are columns."""
    made = [tensor(each) for each in tup]
    made = [ops.reshape(each, (-1, 1)) if each.ndim < 2 else each for each in made]
    return ops.concat(_tensors(made, "column_stack"), 1)


# ---- Splitting ---------------------------------------------------------------------------------------------


def _parts(x, places, axis):
    """`x` cut in front of each place, as numpy reads places."""
    length = x.shape[axis]
    bounds = [0, *(min(max(place + length if place < 0 else place, 0), length) for place in places), length]
    key = (slice(None),) * axis
    return [x[(*key, slice(low, max(low, high)))] for low, high in itertools.pairwise(bounds)]


def _split(x, indices_or_sections, axis, name, uneven=False):
    x = tensor(x)
    axis = axis_of(axis, x.ndim, name)
    if not isinstance(indices_or_sections, int):
        return _parts(x, [int(place) for place in indices_or_sections], axis)
    count, length = indices_or_sections, x.shape[axis]
    if count < 1 or (length % count and not uneven):
        raise ValueError(f"{name}: {length} elements of axis {axis} do not make {count} equal parts")
    longer = length % count
    sizes = [length // count + (at < longer) for at in range(count)]
    return tuple(_parts(x, [builtins.sum(sizes[:at]) for at in range(1, count)], axis))


def split(x, indices_or_sections, axis=0):
    """Equal parts of an axis as a tuple, or, cut in front of each index, a list."""
    return _split(x, indices_or_sections, axis, "split")


def array_split(x, indices_or_sections, axis=0):
    """split, where the first parts may be one longer."""
    return _split(x, indices_or_sections, axis, "array_split", uneven=True)


def hsplit(x, indices_or_sections):
    """split of the second axis, or of the only one."""
    return _split(x, indices_or_sections, 0 if tensor(x).ndim == 1 else 1, "hsplit")


def vsplit(x, indices_or_sections):
    """split of the first of two axes or more."""
    return _split(atleast_2d(x), indices_or_sections, 0, "vsplit")


def dsplit(x, indices_or_sections):
    """split of the third axis."""
    return _split(x, indices_or_sections, 2, "dsplit")


# ---- Turning, repeating ------------------------------------------------------------------------------------


def flip(m, axis=None):
    """The elements in reverse order along all axes, or those that `axis` names."""
    m = tensor(m)
    return ops.flip(m, axes_of(axis, m.ndim, "flip")) if m.ndim else m


def fliplr(m):
    """The elements in reverse order along the second axis."""
    return flip(m, 1)


def flipud(m):
    """The elements in reverse order along the first axis."""
    return flip(m, 0)


def rot90(a, k=1, axes=(0, 1)):
    """`a` turned k times by 90 degrees, from the first of the axes to the second."""
    a = tensor(a)
    first, second = axes_of(axes, a.ndim, "rot90")
    k %= 4
    if k == 0:
        return a
    if k == 2:
        return ops.flip(a, (first, second))
    if k == 1:
        return swapaxes(ops.flip(a, (second,)), first, second)
    return ops.flip(swapaxes(a, first, second), (second,))


def _rolled(a, shift, axis):
    length = a.shape[axis]
    shift = shift % length if length else 0
    if not shift:
        return a
    key = (slice(None),) * axis
    return ops.concat([a[(*key, slice(length - shift, None))], a[(*key, slice(0, length - shift))]], axis)


def roll(a, shift, axis=None):
    """The elements moved on by `shift` along an axis, or along several; those behind the end come first."""
    a = tensor(a)
    if axis is None:
        total = shift if isinstance(shift, int) else builtins.sum(shift)
        return ops.reshape(_rolled(ravel(a), total, 0), a.shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: shift {shift} and axis {axis} differ in length")
    for each, at in zip(shifts, axes, strict=True):
        a = _rolled(a, each, axis_of(at, a.ndim, "roll"))
    return a


def tile(a, reps):
    """`a` repeated `reps` times along its last axes."""
    a, reps = tensor(a), shape_of(reps)
    if not reps:
        return a
    a = ops.reshape(a, (1,) * builtins.max(len(reps) - a.ndim, 0) + tuple(a.shape))
    return ops.tile(a, (1,) * (a.ndim - len(reps)) + reps)


def repeat(a, repeats, axis=None):
    """Each element, or each along `axis`, as often as `repeats` says: a number, or one for each."""
    a = tensor(a)
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of(axis, a.ndim, "repeat")
    length = a.shape[axis]
    counts = [repeats] if isinstance(repeats, int) else [int(count) for count in repeats]
    counts = counts * length if len(counts) == 1 else counts
    if len(counts) != length or builtins.any(count < 0 for count in counts):
        raise ValueError(f"repeat: {repeats} does not say how often each of {length} elements is repeated")
    places = [at for at, count in enumerate(counts) for _ in range(count)]
    if not places:
        return a[(slice(None),) * axis + (slice(0, 0),)]
    return ops.gather(a, muster.Tensor(places), axis)


# ---- Picking -----------------------------------------------------------------------------------------------


def _places_in(indices, length, mode):
    """Indices from 0 to below length: those outside at the nearest end, or counted round."""
    indices = ops.cast(tensor(indices), muster.int64)
    if mode == "wrap":
        return ops.sub(indices, ops.mul(ops.floor_div(indices, length), length))
    if mode == "clip":
        # A negative index counts from the end in MindSpore, before what is outside is clipped.
        counted = ops.select(ops.less(indices, 0), ops.add(indices, length), indices)
        return ops.clip(counted, 0, length - 1)
    if mode == "raise":
        raise NotImplementedError("mode 'raise' is not provided; 'clip' and 'wrap' are")
    raise ValueError(f"mode is 'clip' or 'wrap', not {mode!r}")


def take(a, indices, axis=None, mode="clip"):
    """The elements at `indices`, of all or along `axis`; `mode` says what those outside stand for."""
    a = tensor(a)
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of(axis, a.ndim, "take")
    return ops.gather(a, _places_in(indices, a.shape[axis], mode), axis)


def take_along_axis(arr, indices, axis):
    """The elements along `axis` that a tensor with as many axes names; the other axes broadcast."""
    arr, indices = tensor(arr), tensor(indices)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = axis_of(axis, arr.ndim, "take_along_axis")
    if indices.ndim != arr.ndim:
        raise ValueError(f"take_along_axis: {indices.shape} has other axes than {arr.shape}")
    shared = _shared.broadcast_shape(
        [1 if at == axis else size for at, size in enumerate(arr.shape)],
        [1 if at == axis else size for at, size in enumerate(indices.shape)],
    )
    shapes = [
        [each.shape[axis] if at == axis else size for at, size in enumerate(shared)]
        for each in (arr, indices)
    ]
    indices = _places_in(ops.broadcast_to(indices, shapes[1]), arr.shape[axis], "clip")
    return ops.gather_elements(ops.broadcast_to(arr, shapes[0]), indices, axis)


def where(condition, x=None, y=None):
    """x where the condition is true, else y, in the dtype that holds both; shapes broadcast."""
    if x is None or y is None:
        raise TypeError("where: x and y are needed; nonzero gives the places of what is true")
    condition = cast(tensor(condition), muster.bool_)
    x, y = same_dtype([tensor(x), tensor(y)])
    shape = _shared.broadcast_shape(condition.shape, x.shape, y.shape)
    return ops.select(*(ops.broadcast_to(each, shape) for each in (condition, x, y)))


def select(condlist, choicelist, default=0):
    """The element of the first choice whose condition is true, else `default`."""
    conditions = condlist if isinstance(condlist, list | tuple) else ops.unstack(condlist, 0)
    choices = choicelist if isinstance(choicelist, list | tuple) else ops.unstack(choicelist, 0)
    if len(conditions) != len(choices) or not conditions:
        raise ValueError(f"select: {len(conditions)} conditions for {len(choices)} choices")
    made = same_dtype([*(tensor(each) for each in choices), tensor(default)])
    result = made[-1]
    for condition, choice in reversed(list(zip(conditions, made, strict=False))):
        result = where(condition, choice, result)
    return result


def choose(a, choices, mode="clip"):
    """The element of the choice that `a` names at each place."""
    choices = ops.unstack(choices, 0) if isinstance(choices, muster.Tensor) else choices
    made = same_dtype([tensor(each) for each in choices])
    a = tensor(a)
    shape = _shared.broadcast_shape(a.shape, *(each.shape for each in made))
    places = ops.expand_dims(ops.broadcast_to(_within(a, len(made), mode), shape), 0)
    stacked = ops.stack([ops.broadcast_to(each, shape) for each in made], 0)
    return ops.squeeze(ops.gather_elements(stacked, places, 0), 0)


def _within(indices, length, mode):
    """Indices from 0 to below length, where negative ones are outside."""
    if mode == "clip":
        return ops.clip(ops.cast(indices, muster.int64), 0, length - 1)
    return _places_in(indices, length, mode)


def piecewise(x, condlist, funclist, *args, **kw):
    """The function, or number, of the last condition that is true, at each element; one more: the rest."""
    x = tensor(x)
    conditions = condlist if isinstance(condlist, list | tuple) else [condlist]
    conditions = [cast(tensor(each), muster.bool_) for each in conditions]
    values = [each(x, *args, **kw) if callable(each) else each for each in funclist]
    if len(values) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"piecewise: {len(values)} functions for {len(conditions)} conditions")
    result = tensor(values[-1] if len(values) > len(conditions) else 0)
    for condition, value in zip(conditions, values, strict=False):
        result = where(condition, value, result)
    return ops.broadcast_to(result, x.shape)


def ravel_multi_index(multi_index, dims, mode="clip", order="C"):
    """The index among all elements of those that a tensor for each axis names."""
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: order is 'C' or 'F', not {order!r}")
    total, stride = None, 1
    pairs = list(zip(multi_index, dims, strict=True))
    for index, length in pairs if order == "F" else reversed(pairs):
        part = ops.mul(_within(tensor(index), length, mode), stride)
        total = part if total is None else ops.add(total, part)
        stride *= length
    return ops.cast(total, muster.float32)


def unravel_index(indices, shape, order="C"):
    """For indices among all elements, those of each axis, as a tuple."""
    indices, shape = tensor(indices), shape_of(shape)
    if order not in ("C", "F"):
        raise ValueError(f"unravel_index: order is 'C' or 'F', not {order!r}")
    count = 1
    for length in shape:
        count *= length
    rest = cast(
        _within(ops.select(ops.less(indices, 0), ops.add(indices, count), indices), count, "clip"),
        indices.dtype,
    )
    found = []
    for length in shape if order == "F" else reversed(shape):
        above = ops.floor_div(rest, length)
        found.append(ops.sub(rest, ops.mul(above, length)))
        rest = above
    return tuple(found if order == "F" else reversed(found))


# ---- Shapes that elements decide ---------------------------------------------------------------------------


def argwhere(a):
    """The indices of the elements that are not 0, a row for each, int64: not inside of a graph."""
    import numpy

    return muster.Tensor(numpy.argwhere(_shared.host(a)).astype(numpy.int64))


def unique(x, return_inverse=False):
    """The elements, each once, as they come first; with `return_inverse`, and where each of the flat x is."""
    import numpy

    flat = _shared.host(ravel(x))
    values, first, inverse = numpy.unique(flat, return_index=True, return_inverse=True)
    order = numpy.argsort(first)
    place = numpy.empty_like(order)
    place[order] = numpy.arange(len(order))
    found = muster.Tensor(values[order])
    if not return_inverse:
        return found
    whole = muster.int64 if found.dtype == muster.int64 else muster.int32
    return found, ops.cast(muster.Tensor(place[inverse.ravel()]), whole)


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """The elements of both, in order, each once; with `return_indices`, and their places in both."""
    import numpy

    found = numpy.intersect1d(_shared.host(ar1), _shared.host(ar2), assume_unique, return_indices)
    if not return_indices:
        return muster.Tensor(found)
    return muster.Tensor(found[0]), *(ops.cast(muster.Tensor(each), muster.int32) for each in found[1:])


def setdiff1d(ar1, ar2, assume_unique=False):
    """The elements of the first that the second has not, in order, each once."""
    import numpy

    return muster.Tensor(numpy.setdiff1d(_shared.host(ar1), _shared.host(ar2), assume_unique))


# ---- Functions along axes ----------------------------------------------------------------------------------


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """A function of one axis called on each line along `axis`."""
    arr = tensor(arr)
    axis = axis_of(axis, arr.ndim, "apply_along_axis")
    lines = moved(arr, axis, arr.ndim - 1)
    outer = lines.shape[:-1]
    made = [
        tensor(func1d(line, *args, **kwargs))
        for line in ops.unstack(ops.reshape(lines, (-1, lines.shape[-1])), 0)
    ]
    joined = ops.reshape(ops.stack(made, 0), (*outer, *made[0].shape))
    for at in range(made[0].ndim):
        joined = moved(joined, len(outer) + at, axis + at)
    return joined


def apply_over_axes(func, a, axes):
    """A function of (tensor, axis) called for each axis in turn; lost axes come back with one element."""
    a = tensor(a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        axis = axis_of(axis, a.ndim, "apply_over_axes")
        made = func(a, axis)
        a = ops.expand_dims(made, axis) if made.ndim == a.ndim - 1 else made
    return a


def array_str(a):
    """The elements as a string."""
    return str(tensor(a))


__all__ = _shared.public(globals(), __name__)
