"""Members of Tensor: elements picked and put."""

import builtins

import muster
from mindspore import ops as named
from mindspore._members._numbers import _scaled
from mindspore.numpy import _shared, array_ops
from mindspore.numpy._shared import cast
from mindspore.ops._numbers import pair
from muster import _core, ops


def _put(self, value):
    """The same object with another value, of its dtype and shape."""
    if tuple(value.shape) != tuple(self.shape):
        raise ValueError(f"in place: a value of the shape {value.shape} does not fit {self.shape}")
    _core._set_value(self, cast(value, self.dtype))
    return self


def take(self, indices=None, axis=None, mode="clip", *, index=None):
    """The elements at `indices`, of all or along `axis`; `mode` says what those outside stand for."""
    return array_ops.take(self, index if indices is None else indices, axis, mode)


def choose(self, choices, mode="clip"):
    """The element of the choice that each element names."""
    return array_ops.choose(self, choices, mode)


def where(self, condition, y=None, *, other=None):
    """The elements where the condition is true, else y; a number takes the dtype that it has beside them."""
    return array_ops.where(condition, *pair(self, other if y is None else y))


def select(self, *args, **kwargs):
    """select(dim, index): one index of an axis; select(condition, y): elements where it is true, else y."""
    by_condition = "condition" in kwargs or (args and isinstance(args[0], muster.Tensor))
    names = ("condition", "y") if by_condition else ("dim", "index")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if by_condition:
        return array_ops.where(given["condition"], self, given["y"])
    at = _shared.axis_of(given["dim"], self.ndim, "select")
    return self[(slice(None),) * at + (given["index"],)]


def nonzero(self, *, as_tuple=False):
    """The indices of the elements that are not 0, a row for each, or a tuple of columns, int64."""
    found = array_ops.argwhere(self)
    return ops.unstack(found, 1) if as_tuple else found


def _as_source(self, src, index):
    return src if isinstance(src, muster.Tensor) else ops.full(index.shape, src, dtype=self.dtype)


def scatter(self, dim=None, index=None, src=None, reduce=None, *, axis=None, value=None):
    """The elements with those of `src` at the indices of an axis; `reduce='add'` adds them."""
    dim = axis if dim is None else dim
    src = _as_source(self, value if src is None else src, index)
    reduction = {None: "none", "none": "none", "add": "add"}.get(reduce)
    if reduction is None:
        raise ValueError(f"scatter: reduce is None or 'add', not {reduce!r}")
    return named.tensor_scatter_elements(self, index, src, dim, reduction)


def scatter_add(self, *args, **kwargs):
    """The elements plus others at indices.

    scatter_add(dim, index, src): those of `src` at the indices of an axis; scatter_add(indices, updates):
    updates at places that rows of indices name.
    """
    by_rows = len(args) + len(kwargs) == 2
    names = ("indices", "updates") if by_rows else ("dim", "index", "src")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if by_rows:
        return named.tensor_scatter_add(self, given["indices"], given["updates"])
    return named.tensor_scatter_elements(self, given["index"], given["src"], given["dim"], "add")


def scatter_sub(self, indices, updates):
    """The elements less updates at places that rows of indices name."""
    return named.tensor_scatter_sub(self, indices, updates)


def scatter_mul(self, indices, updates):
    """The elements times updates at places that rows of indices name."""
    return named.tensor_scatter_mul(self, indices, updates)


def scatter_div(self, indices, updates):
    """The elements over updates at places that rows of indices name."""
    return named.tensor_scatter_div(self, indices, updates)


def scatter_max(self, indices, updates):
    """The greater of elements and updates at places that rows of indices name."""
    return named.tensor_scatter_max(self, indices, updates)


def scatter_min(self, indices, updates):
    """The smaller of elements and updates at places that rows of indices name."""
    return named.tensor_scatter_min(self, indices, updates)


def _added_along(self, dim, index, source, alpha=1):
    """The elements plus alpha times rows of source at the indices of an axis."""
    at = _shared.axis_of(dim, self.ndim, "index_add")
    index = ops.reshape(index, [-1 if each == at else 1 for each in builtins.range(self.ndim)])
    index = ops.broadcast_to(index, source.shape)
    return named.tensor_scatter_elements(self, index, cast(_scaled(source, alpha), self.dtype), at, "add")


def index_add(self, *args, **kwargs):
    """index_add(indices, y, axis), in place, or index_add(dim, index, source, *, alpha=1)."""
    if "indices" in kwargs or (args and isinstance(args[0], muster.Tensor)):
        names = ("indices", "y", "axis", "use_lock", "check_index_bound")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        return _put(self, _added_along(self, given["axis"], given["indices"], given["y"]))
    given = {**dict(zip(("dim", "index", "source"), args, strict=False)), **kwargs}
    return _added_along(self, **given)


def gather(self, *args, **kwargs):
    """gather(dim, index), an element for each index, or gather(input_indices, axis, batch_dims=0)."""
    if "dim" in kwargs or (args and isinstance(args[0], builtins.int)):
        given = {**dict(zip(("dim", "index"), args, strict=False)), **kwargs}
        return named.gather_elements(self, given["dim"], given["index"])
    return named.gather(self, *args, **kwargs)


def index_put(self, indices, values, accumulate=False):
    """The elements with `values` where tensors of indices, one for each axis, say; or plus them."""
    shape = _shared.broadcast_shape(*(index.shape for index in indices))
    rows = ops.stack([ops.broadcast_to(index, shape) for index in indices], len(shape))
    wanted = (*shape, *self.shape[len(indices) :])
    values = ops.broadcast_to(cast(_shared.tensor(values), self.dtype), wanted)
    return (named.tensor_scatter_add if accumulate else named.scatter_nd_update)(self, rows, values)


def inplace_update(self, v, indices):
    """The tensor with rows `v` at indices of the first axis."""
    return named.inplace_update(self, v, indices)


def itemset(self, *args):
    """itemset(place, value): another tensor, one element of which, at a number or a tuple of them, is new."""
    if len(args) == 1 and self._size != 1:
        raise IndexError(f"itemset: one argument is for a tensor of one element, not of {self._size}")
    place, new = args if len(args) == 2 else (0, args[0])
    if isinstance(place, builtins.int):
        place = tuple(builtins.int(at) for at in _places(place, self.shape))
    if len(place) != self.ndim:
        raise ValueError(f"itemset: {len(place)} numbers name no element of a tensor of {self.ndim} axes")
    flat = 0
    for at, size in zip(place, self.shape, strict=True):
        flat = flat * size + at
    hit = ops.reshape(ops.equal(ops.arange(self._size), flat), self.shape)
    return ops.select(hit, ops.full(self.shape, new, dtype=self.dtype), self)


def _places(number, shape):
    found = []
    for size in reversed(shape):
        number, rest = divmod(number, size)
        found.append(rest)
    return reversed(found)


def triangular_solve(self, A, upper=True, transpose=False, unitriangular=False):  # noqa: N803
    """(x, A) with A x = self for a triangular A."""
    return named.triangular_solve(self, A, upper, transpose, unitriangular)
