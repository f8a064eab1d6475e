"""Sequences and numbers as ops: mindspore.ops.operations._sequence_ops and _scalar_ops."""

import functools
import operator

import muster
from mindspore.ops import _moves, _named
from mindspore.ops._primitive import class_keeper
from muster import ops

_made = {}
_class = class_keeper(_made)


def _added(one, other):
    if type(one) is not type(other):
        raise TypeError(
            f"SequenceAdd: it adds two tuples or two lists, not {type(one).__name__}, {type(other).__name__}"
        )
    return one + other


def _counted(sequence, target) -> int:
    return sum(_named.are_equal(each, target) for each in sequence)


def _place(sequence, target) -> int:
    for at, each in enumerate(sequence):
        if _named.are_equal(each, target):
            return at
    raise ValueError(f"SequenceIndex: {target!r} is not in the sequence")


def _zeros(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(_zeros, value))
    return ops.zeros_like(value) if isinstance(value, muster.Tensor) else type(value)(0)


def _with_slice(seq, target, start, stop, step):
    made = list(seq)
    made[start:stop:step] = target
    return tuple(made) if isinstance(seq, tuple) else made


def _slice_gradient(dy, x, start, stop, step):
    made = list(_zeros(x))
    made[start:stop:step] = dy
    return tuple(made) if isinstance(x, tuple) else made


def _tensor(values, dtype=None):
    if dtype is None:
        dtype = muster.int64 if values and isinstance(values[0], int) else muster.float32
    return muster.Tensor(list(values), dtype)


def _sum(sequence):
    return functools.reduce(operator.add, sequence)


_SEQUENCE_FUNCTIONS = {
    "ListAppend": _named.list_append,
    "ListInsert": _named.list_insert,
    "SequenceSlice": lambda seq, start, stop, step: seq[start:stop:step],
    "SequenceSliceSetItem": _with_slice,
    "SequenceSliceGrad": _slice_gradient,
    "SequenceAdd": _added,
    "SequenceAddOffset": lambda one, other: (0, len(one)),
    "SequenceAddN": _sum,
    "SequenceCount": _counted,
    "SequenceIndex": _place,
    "SequenceMul": lambda sequence, scalar: sequence * scalar,
    "SequenceMax": max,
    "SequenceMin": min,
    "SequenceZerosLike": _zeros,
    "InSequence": lambda target, sequence: any(_named.are_equal(each, target) for each in sequence),
    "TupleToTensor": _tensor,
    "ListToTensor": _tensor,
    "TensorToList": lambda x: x.asnumpy().tolist(),
    "TensorToScalar": lambda x: x.asnumpy().item(),
    "make_range": _named.make_range,
    "sequence_len": len,
    "array_len": len,
    "shape_mul": _named.shape_mul,
    "tuple_equal": _named.tuple_equal,
    "list_equal": _named.tuple_equal,
    **dict.fromkeys(("tuple_lt", "list_lt"), operator.lt),
    **dict.fromkeys(("tuple_le", "list_le"), operator.le),
    **dict.fromkeys(("tuple_greater_than", "list_greater_than"), operator.gt),
    **dict.fromkeys(("tuple_greater_equal", "list_greater_equal"), operator.ge),
}


@_class("SequenceStack", axis=0)
def _stacked(sequence, axis=0):
    return ops.stack(list(sequence), axis)


@_class("SequenceConcat", axis=0)
def _joined(sequence, axis=0):
    return ops.concat(list(sequence), axis)


@_class("SequenceUnstack", axis=0)
def _parts(x, axis=0):
    return tuple(_moves.unstack(x, axis))


_NUMBER_FUNCTIONS = {
    "ScalarAdd": operator.add,
    "ScalarSub": operator.sub,
    "ScalarMul": operator.mul,
    "ScalarDiv": operator.truediv,
    "ScalarFloorDiv": operator.floordiv,
    "ScalarMod": operator.mod,
    "ScalarPow": operator.pow,
    "ScalarUadd": operator.pos,
    "ScalarUsub": operator.neg,
    "ScalarLog": _named.scalar_log,
    "ScalarBool": bool,
    "scalar_eq": operator.eq,
    "scalar_lt": operator.lt,
    "scalar_le": operator.le,
    "scalar_gt": operator.gt,
    "scalar_ge": operator.ge,
    "bool_not": operator.not_,
    "bit_and": operator.and_,
    "bit_or": operator.or_,
}
for _name, _function in (_SEQUENCE_FUNCTIONS | _NUMBER_FUNCTIONS).items():
    _class(_name)(_function)
globals().update(_made)
__all__ = sorted(_made)


def __getattr__(name: str):
    """Names of mindspore.ops by this path, too."""
    from mindspore.ops import operations

    return getattr(operations, name)
