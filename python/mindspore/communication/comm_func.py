"""mindspore.communication.comm_func: collective functions. Every worker calls them at the same place."""

from mindspore import _names, ops
from mindspore.communication import GlobalComm
from mindspore.ops import ReduceOp


class CommHandle:
    """What async_op=True gives: the call has ended when it returns."""

    def wait(self) -> None:
        """Nothing is left to wait for."""


def _with_handle(made, async_op: bool):
    return made, CommHandle() if async_op else None


def all_reduce(tensor, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP, async_op=False):
    """(the tensors of all workers joined, None or a CommHandle)."""
    return _with_handle(ops.AllReduce(op, group)(tensor), async_op)


def all_gather_into_tensor(tensor, group=GlobalComm.WORLD_COMM_GROUP, async_op=False):
    """(the tensors of all workers along the first axis: (workers times n, ...), None or a CommHandle)."""
    return _with_handle(ops.AllGather(group)(tensor), async_op)


def reduce_scatter_tensor(tensor, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP, async_op=False):
    """(this worker's part of the joined tensors: (n / workers, ...), None or a CommHandle)."""
    return _with_handle(ops.ReduceScatter(op, group)(tensor), async_op)


def barrier(group=GlobalComm.WORLD_COMM_GROUP) -> None:
    """Waits for all workers."""
    ops.Barrier(group)()


def broadcast(tensor, src=0, group=GlobalComm.WORLD_COMM_GROUP):
    """The tensor of worker `src`."""
    return ops.Broadcast(src, group)((tensor,))[0]


def reduce(tensor, dst, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP):
    """The joined tensors on worker `dst`; zeros of shape (1,) on the others."""
    return ops.Reduce(dst, op, group)(tensor)


def gather_into_tensor(tensor, dst=0, group=GlobalComm.WORLD_COMM_GROUP):
    """The tensors of all workers along the first axis on worker `dst`; zeros of shape (1,) on the others."""
    return ops.CollectiveGather(dst, group)(tensor)


def scatter_tensor(tensor, src=0, group=GlobalComm.WORLD_COMM_GROUP):
    """This worker's part of the tensor of worker `src`: (n / workers, ...)."""
    return ops.CollectiveScatter(src, group)(tensor)


__all__ = [
    "CommHandle",
    "all_gather_into_tensor",
    "all_reduce",
    "barrier",
    "broadcast",
    "gather_into_tensor",
    "reduce",
    "reduce_scatter_tensor",
    "scatter_tensor",
]
__getattr__ = _names.missing(__name__)
