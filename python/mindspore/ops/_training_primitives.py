"""Functions for training as classes."""

import muster
from mindspore import _names
from mindspore.communication import GlobalComm, require_world
from mindspore.ops import _training
from mindspore.ops._primitive import Primitive, without_settings
from muster import ops

Assign = without_settings("Assign", ops.assign)
AssignAdd = without_settings("AssignAdd", ops.assign_add)
AssignSub = without_settings("AssignSub", _training.assign_sub)
Depend = without_settings("Depend", _training.depend)


class Identity(Primitive):
    """The tensor itself."""

    def compute(self, x):
        """x."""
        return x


class ReduceOp:
    """How AllReduce joins the tensors of all workers."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


# What all_reduce does not add up itself, it adds up in a dtype that holds it.
_WIDER = {
    muster.float16: muster.float32,
    muster.bfloat16: muster.float32,
    **dict.fromkeys((muster.bool_, muster.int8, muster.int16, muster.uint8, muster.uint16), muster.int32),
    muster.uint32: muster.int64,
}


def all_reduced(x, op: str):
    """The tensors of all workers joined, in the dtype of `x`: sums of 16-bit floats are rounded once."""
    wider = _WIDER.get(x.dtype)
    return (
        ops.all_reduce(x, op) if wider is None else ops.cast(ops.all_reduce(ops.cast(x, wider), op), x.dtype)
    )


class AllReduce(Primitive):
    """The tensors of all workers joined: muster.ops.all_reduce. Every worker calls it at the same place."""

    def __init__(self, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__()
        require_world(group)
        _names.refuse("mindspore.ops.AllReduce", op=(op, ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN))
        self.op = op

    def compute(self, input_x):
        """The joined tensor, equal on all workers."""
        if not isinstance(input_x, muster.Tensor):
            raise TypeError(f"AllReduce: a Tensor is needed, not {type(input_x).__name__} {input_x!r}")
        return all_reduced(input_x, self.op)


__all__ = ["AllReduce", "Assign", "AssignAdd", "AssignSub", "Depend", "Identity", "ReduceOp"]
