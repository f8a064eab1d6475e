"""Functions for training as classes."""

import muster
from mindspore import _names
from mindspore.communication import GlobalComm, known_as
from mindspore.ops import _training
from mindspore.ops._primitive import Primitive, without_settings
from muster import ops

Assign = without_settings("Assign", _training.assign)
AssignAdd = without_settings("AssignAdd", _training.assign_add)
AssignSub = without_settings("AssignSub", _training.assign_sub)
Depend = without_settings("Depend", _training.depend)


class Identity(Primitive):
    """A tensor of its own with the same elements."""

    def compute(self, x):
        """A copy of x: what is written into it is not seen in x."""
        return x.copy() if isinstance(x, muster.Tensor) else x


class ReduceOp:
    """How AllReduce joins the tensors of all workers."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


# What muster calls them.
REDUCTIONS = {ReduceOp.SUM: "sum", ReduceOp.MAX: "max", ReduceOp.MIN: "min", ReduceOp.PROD: "product"}


class AllReduce(Primitive):
    """The tensors of the group's workers joined: muster.ops.all_reduce. All call it at the same place."""

    def __init__(self, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__()
        known_as(group)
        _names.refuse("mindspore.ops.AllReduce", op=(op, *REDUCTIONS))
        self.op, self.group = op, group

    def compute(self, input_x):
        """The joined tensor, equal on all workers."""
        if not isinstance(input_x, muster.Tensor):
            raise TypeError(f"AllReduce: a Tensor is needed, not {type(input_x).__name__} {input_x!r}")
        return ops.all_reduce(input_x, REDUCTIONS[self.op], known_as(self.group) or None)


__all__ = ["AllReduce", "Assign", "AssignAdd", "AssignSub", "Depend", "Identity", "ReduceOp"]
