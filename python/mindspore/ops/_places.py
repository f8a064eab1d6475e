"""mindspore.ops: what is read and written at indices, and sorted."""

import math
import sys

import muster
from mindspore.ops._numbers import is_floating_point, tensor
from muster import ops

# ---- Written at tuples of indices --------------------------------------------------------------------------


def scatter_nd(indices, updates, shape):
    """A tensor of `shape`, 0 but for the sums of the updates at the indices (..., k)."""
    if updates.dtype is muster.bool_:
        return ops.cast(scatter_nd(indices, ops.cast(updates, muster.int32), shape), muster.bool_)
    return ops.scatter_nd_update(ops.zeros(tuple(_sizes(shape)), updates.dtype), indices, updates, "add")


def _sizes(shape):
    return shape.asnumpy().tolist() if isinstance(shape, muster.Tensor) else shape


def _tensor_scatter(name, mode):
    def function(input_x, indices, updates):
        return ops.scatter_nd_update(input_x, indices, ops.cast(updates, input_x.dtype), mode)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"input_x with the updates at the indices (..., k): {mode}. input_x stays as it is."
    return function


tensor_scatter_update = _tensor_scatter("tensor_scatter_update", "update")
tensor_scatter_add = _tensor_scatter("tensor_scatter_add", "add")
tensor_scatter_sub = _tensor_scatter("tensor_scatter_sub", "sub")
tensor_scatter_mul = _tensor_scatter("tensor_scatter_mul", "mul")
tensor_scatter_div = _tensor_scatter("tensor_scatter_div", "div")
tensor_scatter_max = _tensor_scatter("tensor_scatter_max", "max")
tensor_scatter_min = _tensor_scatter("tensor_scatter_min", "min")


def written(variable, value):
    """`value` in the place of the parameter `variable`; of a tensor, `value` itself."""
    return ops.assign(variable, value) if isinstance(variable, muster.Parameter) else value


def _scatter_nd(name, mode):
    def function(input_x, indices, updates, use_locking=False):
        return written(
            input_x, ops.scatter_nd_update(input_x, indices, ops.cast(updates, input_x.dtype), mode)
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Writes the updates into the parameter at the indices (..., k): {mode}."
    return function


scatter_nd_update = _scatter_nd("scatter_nd_update", "update")
scatter_nd_add = _scatter_nd("scatter_nd_add", "add")
scatter_nd_sub = _scatter_nd("scatter_nd_sub", "sub")
scatter_nd_mul = _scatter_nd("scatter_nd_mul", "mul")
scatter_nd_div = _scatter_nd("scatter_nd_div", "div")
scatter_nd_max = _scatter_nd("scatter_nd_max", "max")
scatter_nd_min = _scatter_nd("scatter_nd_min", "min")


def _scatter(name, mode):
    def function(input_x, indices, updates):
        places = ops.expand_dims(indices, -1)
        return written(
            input_x, ops.scatter_nd_update(input_x, places, ops.cast(updates, input_x.dtype), mode)
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Writes the updates into the parameter at the indices of its first axis: {mode}."
    return function


scatter_update = _scatter("scatter_update", "update")
scatter_add = _scatter("scatter_add", "add")
scatter_sub = _scatter("scatter_sub", "sub")
scatter_mul = _scatter("scatter_mul", "mul")
scatter_div = _scatter("scatter_div", "div")
scatter_max = _scatter("scatter_max", "max")
scatter_min = _scatter("scatter_min", "min")

# ---- Written along one axis --------------------------------------------------------------------------------


def tensor_scatter_elements(input_x, indices, updates, axis=0, reduction="none"):
    """input_x with the updates at the indices along `axis`; reduction 'add' and 'mul' join them."""
    modes = {"none": "update", "add": "add", "mul": "mul", "multiply": "mul", "sub": "sub", "max": "max"}
    modes["min"] = "min"
    if reduction not in modes:
        raise ValueError(f"tensor_scatter_elements: reduction is one of {sorted(modes)}, not {reduction!r}")
    if input_x.dtype is muster.bool_ and reduction != "none":
        wide = (ops.cast(each, muster.int32) for each in (input_x, updates))
        made = tensor_scatter_elements(next(wide), indices, next(wide), axis, reduction)
        return ops.cast(made, muster.bool_)
    return ops.scatter_elements(input_x, indices, ops.cast(updates, input_x.dtype), axis, modes[reduction])


def scatter(input, axis, index, src):
    """input with `src`, a tensor or a number, at the indices along `axis`."""
    if not isinstance(src, muster.Tensor):
        src = ops.full(tuple(index.shape), src, dtype=input.dtype)
    if tuple(src.shape) != tuple(index.shape):
        src = ops.slice(src, [0] * src.ndim, list(index.shape))
    return ops.scatter_elements(input, index, ops.cast(src, input.dtype), axis, "update")


def scatter_add_with_axis(input_x, indices, updates, axis=0):
    """input_x with the updates added at the indices along `axis`."""
    return ops.scatter_elements(input_x, indices, updates, axis, "add")


def _along(index, like, axis):
    """An index of one axis as one of the shape of `like`."""
    sizes = [1] * like.ndim
    sizes[axis] = -1
    return ops.broadcast_to(ops.reshape(index, sizes), like.shape)


def index_add(x, indices, y, axis, use_lock=True, check_index_bound=True):
    """The parameter x with y added at the indices of `axis`."""
    return written(x, ops.scatter_elements(x, _along(indices, y, axis), ops.cast(y, x.dtype), axis, "add"))


def inplace_index_add(var, indices, updates, axis):
    """The parameter var with the updates added at the indices of `axis`."""
    return index_add(var, indices, updates, axis)


def index_fill(x, axis, index, value):
    """x with `value` at the indices of `axis`."""
    index = tensor(index)
    index = ops.reshape(index, (-1,))
    axis = axis if isinstance(axis, int) else int(axis.item())
    sizes = list(x.shape)
    sizes[axis] = index.shape[0]
    updates = ops.broadcast_to(ops.cast(tensor(value), x.dtype), tuple(sizes))
    return ops.scatter_elements(x, _along(index, updates, axis), updates, axis, "update")


def _rows_written(x, v, indices, mode):
    indices = (indices,) if isinstance(indices, int) else indices
    index = indices if isinstance(indices, muster.Tensor) else muster.Tensor(list(indices), muster.int32)
    return ops.scatter_nd_update(x, ops.expand_dims(index, -1), ops.cast(v, x.dtype), mode)


def inplace_update(x, v, indices):
    """x with the rows v at the indices."""
    return _rows_written(x, v, indices, "update")


def inplace_add(x, v, indices):
    """x with the rows v added at the indices."""
    return _rows_written(x, v, indices, "add")


def inplace_sub(x, v, indices):
    """x with the rows v taken off at the indices."""
    return _rows_written(x, v, indices, "sub")


def select_scatter(input, src, axis, index):
    """input with src as its part number `index` along `axis`."""
    where = muster.Tensor([index % input.shape[axis]], muster.int32)
    part = ops.expand_dims(src, axis)
    part = ops.broadcast_to(part, [1 if at == axis % input.ndim else n for at, n in enumerate(input.shape)])
    return ops.scatter_elements(input, _along(where, part, axis), ops.cast(part, input.dtype), axis, "update")


def slice_scatter(input, src, axis=0, start=None, end=None, step=1):
    """input with src in the place of input[start:end:step] along `axis`."""
    places = list(range(*slice(start, end, step).indices(input.shape[axis])))
    where = muster.Tensor(places, muster.int32)
    return ops.scatter_elements(input, _along(where, src, axis), ops.cast(src, input.dtype), axis, "update")


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """input with src on the diagonal of the axes dim1 and dim2."""
    from mindspore.ops import _matrices

    like = ops.reshape(ops.arange(input._size), input.shape)
    places = ops.reshape(_matrices.diagonal(like, offset, dim1, dim2), (-1, 1))
    flat = ops.reshape(input, (-1,))
    values = ops.reshape(ops.cast(src, input.dtype), (-1,))
    return ops.reshape(ops.scatter_nd_update(flat, places, values, "update"), input.shape)


# ---- Segments ----------------------------------------------------------------------------------------------


def _unsorted_segment(x, segment_ids, num_segments, mode, first):
    count = num_segments if isinstance(num_segments, int) else int(num_segments.item())
    rank = segment_ids.ndim
    into = ops.broadcast_to(muster.Tensor(first, x.dtype), (count + 1, *x.shape[rank:]))
    flat = ops.reshape(x, (-1, *x.shape[rank:]))
    ids = ops.reshape(segment_ids, (-1, 1))
    # Elements of negative segments belong to none: one more segment takes them.
    ids = ops.select(ops.less(ids, 0), ops.full_like(ids, count), ids)
    made = ops.scatter_nd_update(into, ids, flat, mode)
    return ops.slice(made, [0] * made.ndim, [count, *made.shape[1:]])


def _bounds(dtype):
    bits = 8 * dtype.itemsize
    if dtype.name.startswith("uint"):
        return 0, 2**bits - 1
    if dtype.name.startswith("int"):
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    greatest = {"float16": 65504.0, "float64": sys.float_info.max}.get(dtype.name, 3.4028234663852886e38)
    return -greatest, greatest


def unsorted_segment_sum(input_x, segment_ids, num_segments):
    """The sums of the elements of each segment."""
    return _unsorted_segment(input_x, segment_ids, num_segments, "add", 0)


def unsorted_segment_max(x, segment_ids, num_segments):
    """The greatest elements of each segment; of none the smallest number."""
    return _unsorted_segment(x, segment_ids, num_segments, "max", _bounds(x.dtype)[0])


def unsorted_segment_min(x, segment_ids, num_segments):
    """The smallest elements of each segment; of none the greatest number."""
    return _unsorted_segment(x, segment_ids, num_segments, "min", _bounds(x.dtype)[1])


def unsorted_segment_prod(x, segment_ids, num_segments):
    """The products of the elements of each segment."""

    def joined(values, mode, first):
        return _unsorted_segment(values, segment_ids, num_segments, mode, first)

    if not is_floating_point(x):
        return joined(x, "mul", 1)
    # The gradient of a product is it over the element: an element 0 takes part as the sum of those alone.
    zero = ops.equal(x, 0)
    others = joined(ops.select(zero, ops.ones_like(x), x), "mul", 1)
    zeros = joined(ops.cast(zero, muster.int32), "add", 0)
    alone = ops.mul(others, joined(ops.select(zero, x, ops.zeros_like(x)), "add", 0))
    alone = ops.select(ops.equal(zeros, 1), alone, ops.stop_gradient(alone))
    return ops.select(ops.equal(zeros, 0), others, alone)


def _segments(segment_ids):
    """How many there are, which their values say: outside of graphs only."""
    return int(eager("a function of segments", segment_ids).max()) + 1


def segment_sum(input_x, segment_ids):
    """The sums of the elements of each segment; the ids are sorted."""
    return unsorted_segment_sum(input_x, segment_ids, _segments(segment_ids))


def segment_prod(input_x, segment_ids):
    """The products of the elements of each segment; the ids are sorted."""
    return unsorted_segment_prod(input_x, segment_ids, _segments(segment_ids))


def _segment_or_zero(function, input_x, segment_ids):
    count = _segments(segment_ids)
    sizes = unsorted_segment_sum(ops.ones_like(segment_ids), segment_ids, count)
    empty = ops.equal(ops.reshape(sizes, (-1,) + (1,) * (input_x.ndim - 1)), 0)
    made = function(input_x, segment_ids, count)
    return ops.select(empty, ops.zeros_like(made), made)


def segment_max(input_x, segment_ids):
    """The greatest elements of each segment, 0 of none; the ids are sorted."""
    return _segment_or_zero(unsorted_segment_max, input_x, segment_ids)


def segment_min(input_x, segment_ids):
    """The smallest elements of each segment, 0 of none; the ids are sorted."""
    return _segment_or_zero(unsorted_segment_min, input_x, segment_ids)


def segment_mean(input_x, segment_ids):
    """The means of the elements of each segment, 0 of none; the ids are sorted."""
    count = _segments(segment_ids)
    sizes = unsorted_segment_sum(ops.ones_like(segment_ids), segment_ids, count)
    sizes = ops.reshape(ops.maximum(sizes, 1), (-1,) + (1,) * (input_x.ndim - 1))
    made = unsorted_segment_sum(input_x, segment_ids, count)
    quotient = ops.div(made, ops.cast(sizes, made.dtype))
    return ops.cast(quotient, input_x.dtype)


# ---- Sorted ------------------------------------------------------------------------------------------------


def argsort(input, axis=-1, descending=False):
    """The places of the elements in their order along `axis`, int32."""
    return ops.sort(input, axis, descending)[1]


def msort(input):
    """The elements in order along the first axis."""
    return ops.sort(input, 0)[0]


def topk(input, k, dim=None, largest=True, sorted=True):
    """The k greatest (smallest) elements along `dim` (the last axis), and their places."""
    dim = -1 if dim is None else dim
    if dim % input.ndim == input.ndim - 1:
        return ops.topk(input, k, largest=largest)
    values, places = ops.sort(input, dim, largest)
    sizes = [k if at == dim % input.ndim else n for at, n in enumerate(input.shape)]
    return tuple(ops.slice(part, [0] * input.ndim, sizes) for part in (values, places))


def median(input, axis=-1, keepdims=False):
    """(values, indices): the lower of the two middle elements along `axis`, or the first NaN."""
    if input.ndim == 0:
        return input, muster.Tensor(0, muster.int64)
    size = input.shape[axis]
    known = _known_count(input, axis)
    # In order NaN stands behind all others: at the place of their number.
    places = ops.select(ops.equal(known, size), ops.full_like(known, (size - 1) // 2), known)
    return _in_order(input, places, axis, keepdims)


def _in_order(input, places, axis, keepdims):
    """(values, indices) of the elements at `places` of the sorted ones along `axis`."""
    made = [ops.gather_elements(part, places, axis) for part in ops.sort(input, axis)]
    made = made if keepdims else [ops.squeeze(part, axis) for part in made]
    return made[0], ops.cast(made[1], muster.int64)


def quantile(input, q, axis=None, keepdims=False):
    """The quantiles q (a number or a tensor) along `axis`, or of all elements, between neighbours."""
    return _quantile(input, q, axis, keepdims, ignore_nan=False)


def nanquantile(input, q, axis=None, keepdims=False):
    """quantile of the elements that are not NaN."""
    return _quantile(input, q, axis, keepdims, ignore_nan=True)


def nanmedian(input, axis=-1, keepdims=False):
    """(values, indices): median of the elements that are not NaN."""
    count = _known_count(input, axis)
    return _in_order(input, ops.maximum(ops.floor_div(ops.sub(count, 1), 2), 0), axis, keepdims)


def _known_count(x, axis):
    known = ops.cast(ops.logical_not(ops.isnan(x)), muster.int32)
    return ops.cast(ops.reduce_sum(known, axis, True), muster.int32)


def _quantile(input, q, axis, keepdims, ignore_nan):
    x = ops.reshape(input, (-1,)) if axis is None else input
    at = 0 if axis is None else axis % x.ndim
    q = ops.cast(tensor(q), x.dtype)
    values = ops.sort(x, at)[0]
    size = [1] * x.ndim
    if ignore_nan:
        last = ops.cast(ops.maximum(ops.sub(_known_count(x, at), 1), 0), x.dtype)
    else:
        last = ops.full(tuple(1 if each == at else n for each, n in enumerate(x.shape)), x.shape[at] - 1.0)
        last = ops.cast(last, x.dtype)
    size[at] = -1
    wanted = ops.mul(ops.reshape(q, size), last)
    below = ops.floor(wanted)
    parts = [
        ops.gather_elements(values, ops.cast(place, muster.int32), at)
        for place in (below, ops.minimum(ops.add(below, 1.0), ops.add(last, ops.mul(below, 0.0))))
    ]
    made = ops.add(parts[0], ops.mul(ops.sub(wanted, below), ops.sub(parts[1], parts[0])))
    if not ignore_nan:
        poisoned = ops.reduce_any(ops.isnan(x), at, True)
        made = ops.select(poisoned, ops.full_like(made, math.nan), made)
    made = _axis_to_front(made, at)
    if axis is None:
        made = ops.reshape(made, (q.size,) + ((1,) * input.ndim if keepdims else ()))
    elif keepdims:
        made = ops.expand_dims(made, at + 1)
    return made if q.ndim else ops.reshape(made, made.shape[1:])


def _axis_to_front(x, axis):
    return ops.transpose(x, (axis, *(each for each in range(x.ndim) if each != axis)))


def searchsorted(sorted_sequence, values, *, out_int32=False, right=False, side=None, sorter=None):
    """Where the values would be inserted into the sorted rows; `right` behind equal ones."""
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    if sorter is not None:
        sorted_sequence = ops.gather_elements(sorted_sequence, sorter, -1)
    found = ops.searchsorted(sorted_sequence, tensor(values), right or side == "right")
    return ops.cast(found, muster.int32) if out_int32 else found


def bucketize(input, boundaries, *, right=False):
    """The number of the bucket between the boundaries for each element, int32; `right` as MindSpore's."""
    edges = muster.Tensor([float(each) for each in boundaries], muster.float32)
    found = ops.searchsorted(edges, ops.cast(input, muster.float32), right)
    return ops.cast(found, muster.int32)


def intopk(x1, x2, k):
    """Whether the class x2 of each row of x1 is among its k greatest."""
    there = ops.gather_elements(x1, ops.expand_dims(x2, 1), 1)
    greater = ops.reduce_sum(ops.cast(ops.greater(x1, there), muster.int32), 1)
    return ops.logical_and(ops.less(greater, k), ops.reduce_all(ops.isfinite(there), 1))


# ---- Read at indices ---------------------------------------------------------------------------------------


def take(input, index):
    """The elements at the indices into the flat input."""
    return ops.gather(ops.reshape(input, (-1,)), index)


# ---- Of a shape that the values say: outside of graphs only ------------------------------------------------


def eager(name, x):
    """The elements as an array; inside of a graph they are not known, which is an error."""
    try:
        return x.asnumpy()
    except Exception as error:
        raise RuntimeError(
            f"{name}: the shape of its result depends on the elements of a tensor, which are not known while "
            "a graph is made; call it in PYNATIVE_MODE, outside of jit, or write it with masks"
        ) from error


def nonzero(input, *, as_tuple=False):
    """The places of the elements that are not 0, int64 (count, axes), or a tensor for each axis."""
    import numpy

    places = eager("nonzero", input).nonzero()
    if as_tuple:
        return tuple(muster.Tensor(numpy.ascontiguousarray(each, numpy.int64)) for each in places)
    return muster.Tensor(
        numpy.stack(places, 1).astype(numpy.int64) if places else numpy.zeros((0, 0), "int64")
    )


def argwhere(input):
    """The places of the elements that are not 0, int64 (count, axes)."""
    return nonzero(input)


def masked_select(input, mask):
    """The elements where the mask is true, one after another; shapes broadcast."""
    import numpy

    mask_elements = eager("masked_select", mask)
    shape = numpy.broadcast_shapes(tuple(input.shape), mask_elements.shape)
    places = numpy.broadcast_to(mask_elements, shape).reshape(-1).nonzero()[0]
    return ops.gather(ops.reshape(ops.broadcast_to(input, shape), (-1,)), muster.Tensor(places))


def masked_scatter(x, mask, updates):
    """x with the first updates, one after another, where the mask is true."""
    flat = ops.cast(ops.reshape(ops.broadcast_to(mask, x.shape), (-1,)), muster.int32)
    order = ops.sub(ops.cumsum(flat, 0), 1)
    values = ops.gather(ops.reshape(updates, (-1,)), ops.clip(order, 0, updates._size - 1))
    made = ops.select(ops.cast(flat, muster.bool_), values, ops.reshape(x, (-1,)))
    return ops.reshape(made, x.shape)


def unique(input):
    """(the different elements in the order of their first places, the number of each element among them)."""
    import numpy

    found = eager("unique", input)
    values, first, inverse = numpy.unique(found.reshape(-1), return_index=True, return_inverse=True)
    order = first.argsort()
    rank = numpy.empty_like(order)
    rank[order] = numpy.arange(order.size)
    kind = numpy.int64 if found.dtype == numpy.int64 else numpy.int32
    return muster.Tensor(values[order]), muster.Tensor(rank[inverse].reshape(found.shape).astype(kind))


def unique_with_pad(x, pad_num):
    """unique, filled up with pad_num to the size of x."""
    import numpy

    values, inverse = unique(x)
    values = values.asnumpy()
    full = numpy.full(x.size, pad_num, values.dtype)
    full[: values.size] = values
    return muster.Tensor(full), inverse


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements (or parts along `dim`) without those that equal the one before them."""
    import numpy

    x = eager("unique_consecutive", input)
    lines = x.reshape(-1) if dim is None else numpy.moveaxis(x, dim, 0)
    flat = lines.reshape(len(lines), lines[:1].size)
    new = numpy.ones(len(lines), bool)
    if len(lines):
        new[1:] = (flat[1:] != flat[:-1]).any(1)
    made = lines[new] if dim is None else numpy.moveaxis(lines[new], 0, dim)
    result = [muster.Tensor(numpy.ascontiguousarray(made))]
    if return_inverse:
        inverse = (new.cumsum() - 1).astype(numpy.int64)
        result.append(muster.Tensor(inverse.reshape(x.shape) if dim is None else inverse))
    if return_counts:
        starts = numpy.append(new.nonzero()[0], len(lines))
        result.append(muster.Tensor(numpy.diff(starts).astype(numpy.int64)))
    return result[0] if len(result) == 1 else tuple(result)


def bincount(input, weights=None, minlength=0):
    """How often each whole number from 0 on occurs, or the sums of the weights there."""
    if "float" in str(input.dtype).lower():
        return _counts_of_floats(input, weights, minlength)
    size = max(int(eager("bincount", input).max(initial=-1)) + 1, minlength)
    updates = ops.ones_like(input) if weights is None else weights
    updates = ops.cast(updates, muster.float32)
    return unsorted_segment_sum(updates, input, size)


def _counts_of_floats(input, weights, minlength):
    """The same of floats: those that are no whole number count nowhere."""
    size = max(int(eager("bincount", input).max(initial=-1) + 1), minlength)
    fits = ops.equal(ops.expand_dims(input, 0), ops.expand_dims(ops.arange(0.0, float(size), 1.0), 1))
    fits = ops.cast(fits, muster.float32)
    return ops.reduce_sum(fits if weights is None else ops.mul(fits, weights), 1)


def histc(input, bins=100, min=0.0, max=0.0):
    """How many elements lie in each of `bins` equal parts between min and max (both equal: of input)."""
    import numpy

    x = eager("histc", input)
    low, high = float(min), float(max)
    if low == high:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    counts = numpy.histogram(x, bins, (low, high))[0]
    return muster.Tensor(counts.astype(x.dtype if x.dtype != numpy.int64 else numpy.int32))


def _listed(name, tensors):
    return [eager(name, each) for each in tensors]


def list_diff(x, y):
    """(the elements of x that are not in y, their places)."""
    import numpy

    a, b = _listed("ListDiff", (x, y))
    places = (~numpy.isin(a, b)).nonzero()[0]
    return muster.Tensor(a[places]), muster.Tensor(places.astype(numpy.int32))


def invert_permutation(input_x):
    """The places of 0, 1, 2, ... in a tuple of them."""
    places = [0] * len(input_x)
    for at, value in enumerate(input_x):
        places[value] = at
    return tuple(places)


def unravel_index(indices, dims):
    """The indices into the flat tensor of sizes `dims` as one for each axis: (axes, count)."""
    rest, made = indices, []
    for size in reversed(list(_sizes(dims))):
        made.append(ops.mod(rest, size))
        rest = ops.floor_div(rest, size)
    return ops.stack(made[::-1], 0)


def embedding_lookup(input_params, input_indices, offset=0):
    """The rows of input_params at input_indices - offset; 0 where there is none."""
    at = ops.sub(input_indices, offset)
    size = input_params.shape[0]
    inside = ops.logical_and(ops.greater_equal(at, 0), ops.less(at, size))
    rows = ops.gather(input_params, ops.clip(at, 0, size - 1), 0)
    mask = ops.reshape(inside, (*inside.shape, *(1,) * (input_params.ndim - 1)))
    return ops.select(mask, rows, ops.zeros_like(rows))


_OTHERS = ("eager", "written", "tensor")
__all__ = [
    name
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_") and name not in _OTHERS
]
