"""mindspore.ops: functions of sparse tensors, COOTensor and CSRTensor, and of rows, RowTensor."""

import itertools

import muster
from mindspore.ops import _places, _sparse_primitives
from muster import ops

_UNARY = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "expm1"),
    *("floor", "inv", "isfinite", "isinf", "isnan", "log", "log1p", "neg", "relu", "relu6", "round"),
    *("sigmoid", "sin", "sinh", "softsign", "sqrt", "square", "tan", "tanh"),
)


def _kinds():
    from mindspore.common import _sparse  # loads numpy

    return _sparse


def _checked(name, kind, *given):
    for each in given:
        if not isinstance(each, getattr(_kinds(), kind)):
            raise TypeError(f"{name} takes a {kind}, not {type(each).__name__}")


def _of_values(prefix, kind, name):
    """A function of the values; the places stay."""

    def function(x):
        from mindspore import ops as named

        _checked(f"{prefix}_{name}", kind, x)
        return x._with(getattr(named, name)(x.values))

    function.__name__ = function.__qualname__ = f"{prefix}_{name}"
    function.__doc__ = f"ops.{name} of the values of a {kind}; what is not there stays 0."
    return function


globals().update(
    (f"{prefix}_{name}", _of_values(prefix, kind, name))
    for prefix, kind in (("coo", "COOTensor"), ("csr", "CSRTensor"))
    for name in _UNARY
)


def _part(name, kind, attribute):
    def function(x):
        _checked(name, kind, x)
        return getattr(x, attribute)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The attribute `{attribute}` of a {kind}."
    return function


_PARTS = {
    f"{prefix}_tensor_get_{part}": (kind, attribute)
    for prefix, kind, parts in (
        ("coo", "COOTensor", {"dense_shape": "shape", "indices": "indices", "values": "values"}),
        (
            "csr",
            "CSRTensor",
            {"dense_shape": "shape", "indices": "indices", "indptr": "indptr", "values": "values"},
        ),
        ("row", "RowTensor", {"dense_shape": "dense_shape", "indices": "indices", "values": "values"}),
    )
    for part, attribute in parts.items()
}
globals().update((name, _part(name, kind, attribute)) for name, (kind, attribute) in _PARTS.items())

# ---- Made --------------------------------------------------------------------------------------------------


def make_coo_tensor(indices, values, dense_shape):
    """The COOTensor of a row of `indices` for each value."""
    return _kinds().COOTensor(indices, values, dense_shape)


def make_csr_tensor(indptr, indices, values, dense_shape):
    """The CSRTensor whose rows have the columns `indices` from one of indptr to the next."""
    return _kinds().CSRTensor(indptr, indices, values, dense_shape)


def make_row_tensor(indices, values, dense_shape):
    """The RowTensor with the rows `values` at indices of the first axis."""
    return _kinds().RowTensor(indices, values, dense_shape)


make_row_tensor_inner = make_row_tensor


def row_tensor_add(row_tensor, dense):
    """The sum of a RowTensor and a tensor, a tensor."""
    _checked("row_tensor_add", "RowTensor", row_tensor)
    return ops.scatter_nd_update(dense, ops.expand_dims(row_tensor.indices, 1), row_tensor.values, "add")


def _nonzero(name, tensor):
    """(the array, the places of what is not 0) of a matrix."""
    if not isinstance(tensor, muster.Tensor):
        raise TypeError(f"{name} takes a Tensor, not {type(tensor).__name__}")
    if tensor.ndim > 2:
        raise ValueError(f"{name}: a matrix is needed, not the shape {tuple(tensor.shape)}")
    array = _places.eager(name, tensor)
    return array, array.nonzero()


def dense_to_sparse_coo(tensor):
    """The COOTensor of what is not 0 in a matrix, with indices int32; not inside of a graph."""
    import numpy

    array, places = _nonzero("dense_to_sparse_coo", tensor)
    indices = numpy.stack(places, 1).astype(numpy.int32)
    return make_coo_tensor(muster.Tensor(indices), muster.Tensor(array[places]), array.shape)


def _csr(rows, columns, values, shape, dtype="int32"):
    import numpy

    counts = numpy.bincount(numpy.asarray(rows, numpy.int64), minlength=shape[0])
    indptr = numpy.concatenate([[0], counts.cumsum()]).astype(dtype)
    columns = numpy.asarray(columns).astype(dtype)
    return make_csr_tensor(muster.Tensor(indptr), muster.Tensor(columns), muster.Tensor(values), shape)


def dense_to_sparse_csr(tensor):
    """The CSRTensor of what is not 0 in a matrix, with indices int32; not inside of a graph."""
    array, places = _nonzero("dense_to_sparse_csr", tensor)
    return _csr(*places, array[places], array.shape)


def csr_to_coo(tensor):
    """The same values with a row of indices for each; not inside of a graph."""
    _checked("csr_to_coo", "CSRTensor", tensor)
    return tensor.to_coo()


def csr_to_dense(csr_tensor):
    """The matrix with its zeros; not inside of a graph."""
    _checked("csr_to_dense", "CSRTensor", csr_tensor)
    return csr_tensor.to_dense()


# ---- Of two ------------------------------------------------------------------------------------------------


def coo_add(x1, x2, thresh):
    """The sum of two COOTensors; a sum of two values that is below thresh in size is left out."""
    _checked("coo_add", "COOTensor", x1, x2)
    places, values, _ = _sparse_primitives._made["SparseAdd"]()(
        x1.indices, x1.values, _shape(x1), x2.indices, x2.values, _shape(x2), thresh
    )
    return make_coo_tensor(places, values, x1.shape)


def _shape(x):
    return muster.Tensor(list(x.shape), muster.int64)


def coo_concat(sp_input, concat_dim=0):
    """COOTensors one after the other along an axis."""
    _checked("coo_concat", "COOTensor", *sp_input)
    concat = _sparse_primitives._made["SparseConcat"](concat_dim)
    places, values, _ = concat(
        [each.indices for each in sp_input],
        [each.values for each in sp_input],
        [_shape(each) for each in sp_input],
    )
    shape = list(sp_input[0].shape)
    shape[concat_dim] = sum(each.shape[concat_dim] for each in sp_input)
    return make_coo_tensor(places, values, tuple(shape))


def csr_add(a, b, alpha, beta):
    """alpha a + beta b of CSRTensors, with a value wherever one of both has one; not inside of a graph."""
    _checked("csr_add", "CSRTensor", a, b)
    if tuple(a.shape) != tuple(b.shape):
        raise ValueError(f"csr_add: the shapes {a.shape} and {b.shape} are not equal")
    sums = {}
    for x, factor in ((a, alpha), (b, beta)):
        values = _places.eager("csr_add", x.values * factor)
        for place, value in zip(zip(*map(list, x._places()), strict=True), values, strict=True):
            sums[place] = sums.get(place, 0) + value
    return _of_sums(sums, a)


def _of_sums(sums, like, shape=None):
    """The CSRTensor of {(row, column): value}."""
    import numpy

    places = sorted(sums)
    values = numpy.array([sums[place] for place in places], like.values.asnumpy().dtype)
    rows, columns = zip(*places, strict=True) if places else ((), ())
    return _csr(rows, columns, values, shape or like.shape, like.indices.asnumpy().dtype)


def csr_mm(a, b, trans_a=False, trans_b=False, adjoint_a=False, adjoint_b=False):
    """The product of two CSRTensors, with a value wherever two of theirs meet; not inside of a graph."""
    _checked("csr_mm", "CSRTensor", a, b)

    def entries(x, turned):
        rows, columns = x._places()
        rows, columns = (columns, rows) if turned else (rows, columns)
        return zip(rows.tolist(), columns.tolist(), _places.eager("csr_mm", x.values), strict=True)

    turned_a, turned_b = trans_a or adjoint_a, trans_b or adjoint_b
    inner = {}
    for row, column, value in entries(b, turned_b):
        inner.setdefault(row, []).append((column, value))
    sums = {}
    for row, middle, value in entries(a, turned_a):
        for column, other in inner.get(middle, ()):
            sums[row, column] = sums.get((row, column), 0) + value * other
    shape = a.shape[1 if turned_a else 0], b.shape[0 if turned_b else 1]
    return _of_sums(sums, a, shape)


def csr_softmax(logits, dtype):
    """softmax over the values of each row of a CSRTensor."""
    import numpy

    _checked("csr_softmax", "CSRTensor", logits)
    values = _places.eager("csr_softmax", logits.values)
    made, pointers = numpy.array(values), logits.indptr.asnumpy()
    for begin, end in itertools.pairwise(pointers):
        if begin < end:
            parts = numpy.exp(values[begin:end] - values[begin:end].max())
            made[begin:end] = parts / parts.sum()
    return logits._with(muster.Tensor(made).astype(dtype))


__all__ = sorted(name for name, value in globals().items() if callable(value) and not name.startswith("_"))
