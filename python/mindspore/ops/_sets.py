"""mindspore.ops: classes of ops of sets (rows of a tensor without an order), and of steps over buffers."""

import muster
from mindspore.ops import _host, _places
from mindspore.ops._primitive import class_keeper, sizes_of
from muster import ops

_made = {}
_class = class_keeper(_made)
_OPERATIONS = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}


def _checked(name, set_operation):
    if set_operation not in _OPERATIONS:
        raise ValueError(f"{name}: set_operation is one of {', '.join(_OPERATIONS)}, not {set_operation!r}")
    return _OPERATIONS[set_operation]


def _sparse_of(groups, shape, dtype):
    """(indices, values, shape) of the sorted sets of each place of all axes but the last."""
    import numpy

    places = [(*at, each) for at, made in groups for each in range(len(made))]
    values = [value for _, made in groups for value in sorted(made)]
    longest = max((len(made) for _, made in groups), default=0)
    return (
        muster.Tensor(numpy.array(places, numpy.int64).reshape(-1, len(shape))),
        muster.Tensor(numpy.array(values, dtype)),
        muster.Tensor(numpy.array([*shape[:-1], longest], numpy.int64)),
    )


@_class("DenseToDenseSetOperation", set_operation="a-b", validate_indices=True)
def _of_dense(x1, x2, set_operation, validate_indices):
    """What both sets of each row have, or one of them: (indices, values, shape)."""
    import numpy

    join = _checked("DenseToDenseSetOperation", set_operation)
    first, second = (_places.eager("DenseToDenseSetOperation", each) for each in (x1, x2))
    if first.shape[:-1] != second.shape[:-1]:
        raise ValueError(
            f"DenseToDenseSetOperation: rows of {first.shape} and {second.shape} differ in number"
        )
    rows = numpy.ndindex(*first.shape[:-1])
    groups = [(at, join(set(first[at].tolist()), set(second[at].tolist()))) for at in rows]
    return _sparse_of(groups, first.shape, first.dtype)


def _sets_by_place(indices, values, shape):
    found = {}
    for (*at, _), value in zip(indices.tolist(), values.tolist(), strict=True):
        found.setdefault(tuple(at), set()).add(value)
    return found


@_class("DenseToSparseSetOperation", set_operation="", validate_indices=True)
def _of_sparse(x1, x2_indices, x2_values, x2_shape, set_operation, validate_indices):
    """DenseToDenseSetOperation whose second sets are (indices, values, shape)."""
    import numpy

    name = "DenseToSparseSetOperation"
    join = _checked(name, set_operation)
    first, places, values = (_places.eager(name, each) for each in (x1, x2_indices, x2_values))
    second = _sets_by_place(places, values, sizes_of(x2_shape))
    rows = numpy.ndindex(*first.shape[:-1])
    groups = [(at, join(set(first[at].tolist()), second.get(at, set()))) for at in rows]
    return _sparse_of(groups, first.shape, first.dtype)


@_class("SetSize", validate_indices=True)
def _sizes_of_sets(set_indices, set_values, set_shape, validate_indices):
    """How many different values each row of (indices, values, shape) has, int32."""
    import numpy

    places, values = (_places.eager("SetSize", each) for each in (set_indices, set_values))
    shape = sizes_of(set_shape)
    made = numpy.zeros(shape[:-1], numpy.int32)
    for at, found in _sets_by_place(places, values, shape).items():
        made[at] = len(found)
    return muster.Tensor(made)


# ---- The rest ----------------------------------------------------------------------------------------------


@_class("AddV2")
def _added(x, y):
    return ops.add(x, y)


@_class("RangeV2", maxlen=1000000)
def _range(start, limit, delta, maxlen):
    """start, start + delta, ... before limit."""
    first, last, step = (
        each.item() if isinstance(each, muster.Tensor) else each for each in (start, limit, delta)
    )
    made = ops.arange(first, last, step)
    return ops.cast(made, start.dtype) if isinstance(start, muster.Tensor) else made


@_class("SelfAdjointEig", compute_v=True)
def _eigen(x, compute_v):
    """The eigenvalues of symmetric matrices, ascending, and their vectors (none without compute_v)."""
    import numpy

    values = numpy.linalg.eigvalsh
    if not compute_v:
        found = _host.without_gradient("eigvalsh", lambda a: values(a), (x,), [x.shape[:-1]], [x.dtype])
        return found, ops.zeros((0,), x.dtype)
    return _host.without_gradient("eigh", numpy.linalg.eigh, (x,), [x.shape[:-1], x.shape], [x.dtype] * 2)


@_class("BatchAssign", lock=True)
def _assign_all(dst, src, lock):
    """Writes the tensors of `src` into the parameters of `dst`."""
    for to, value in zip(dst, src, strict=True):
        ops.assign(to, value)
    return True


@_class("SparseSoftmaxCrossEntropyWithLogitsV2")
def _cross_entropy(features, labels):
    """For each row the cross entropy with its label, and the gradient of it by the features."""
    share = ops.softmax(features, -1)
    chosen = ops.cast(ops.one_hot(labels, features.shape[-1]), features.dtype)
    loss = ops.neg(ops.reduce_sum(ops.mul(ops.log_softmax(features, -1), chosen), -1))
    return loss, ops.sub(share, chosen)


globals().update(_made)
__all__ = sorted(_made)
