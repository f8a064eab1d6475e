"""mindspore.communication.comm_func: collective functions, and messages between two workers.

Every worker of the group calls a collective function at the same place. Ranks (`dst`, `src`, `peer`) are
those of the job, in a group, too.
"""

from mindspore import _names, ops
from mindspore.communication import (
    GlobalComm,
    get_group_rank_from_world_rank,
    get_group_size,
    known_as,
)
from mindspore.ops import ReduceOp
from muster import DType, Tensor, _core
from muster import ops as _ops


class CommHandle:
    """A call that was started: wait() ends when it is done."""

    def __init__(self, started=None, then=None):
        self._started, self._then = started, then

    def wait(self) -> None:
        """Waits for the call. Raises what has failed."""
        if self._started is not None:
            self._started.wait()
            self._started = None
        if self._then is not None:
            then, self._then = self._then, None
            then()


def _with_handle(made, async_op: bool):
    return made, CommHandle() if async_op else None


def _require_tensor(caller: str, x) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{caller}: the input must be a Tensor, not {type(x).__name__}")


def _in_group(caller: str, rank, group) -> int:
    """The rank in the group of a worker that is named by its rank in the job."""
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise TypeError(f"{caller}: a rank is an int, not {type(rank).__name__} {rank!r}")
    return get_group_rank_from_world_rank(rank, group)


# ---- Collective functions ----------------------------------------------------------------------------------


def all_reduce(tensor, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP, async_op=False):
    """(the tensors of the group joined, None or a CommHandle). The call has ended when it returns."""
    return _with_handle(ops.AllReduce(op, group)(tensor), async_op)


def all_gather_into_tensor(tensor, group=GlobalComm.WORLD_COMM_GROUP, async_op=False):
    """(the tensors of the group along the first axis: (workers times n, ...), None or a CommHandle)."""
    return _with_handle(ops.AllGather(group)(tensor), async_op)


def reduce_scatter_tensor(tensor, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP, async_op=False):
    """(this worker's part of the joined tensors: (n / workers, ...), None or a CommHandle)."""
    return _with_handle(ops.ReduceScatter(op, group)(tensor), async_op)


def barrier(group=GlobalComm.WORLD_COMM_GROUP) -> None:
    """Waits for all workers of the group."""
    ops.Barrier(group)()


def broadcast(tensor, src=0, group=GlobalComm.WORLD_COMM_GROUP):
    """The tensor of worker `src`."""
    return ops.Broadcast(_in_group("broadcast", src, group), group)((tensor,))[0]


def reduce(tensor, dst, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP):
    """The joined tensors on worker `dst`; zeros of shape (1,) on the others."""
    return ops.Reduce(_in_group("reduce", dst, group), op, group)(tensor)


def gather_into_tensor(tensor, dst=0, group=GlobalComm.WORLD_COMM_GROUP):
    """The tensors of the group along the first axis on worker `dst`; zeros of shape (1,) on the others."""
    return ops.CollectiveGather(_in_group("gather_into_tensor", dst, group), group)(tensor)


def scatter_tensor(tensor, src=0, group=GlobalComm.WORLD_COMM_GROUP):
    """This worker's part of the tensor of worker `src`: (n / workers, ...)."""
    return ops.CollectiveScatter(_in_group("scatter_tensor", src, group), group)(tensor)


def _shape_of(tensor) -> tuple:
    if not isinstance(tensor, (Tensor, tuple, list)):
        raise TypeError(f"a Tensor or a shape is needed, not {type(tensor).__name__}")
    return tuple(tensor.shape if isinstance(tensor, Tensor) else tensor)


def _elements(shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def all_to_all_with_output_shape(output_shape_list, input_tensor_list, group=None, async_op=False):
    """(a tuple of what each worker sends here, None or a CommHandle).

    Tensor i of `input_tensor_list` goes to worker i of the group; what comes from it has shape i of
    `output_shape_list` (shapes, or tensors that have them). Gradients do not pass.
    """
    for each in input_tensor_list:
        _require_tensor("all_to_all_with_output_shape", each)
    if len({each.dtype for each in input_tensor_list}) > 1:
        raise TypeError("all_to_all_with_output_shape: the tensors must have one dtype")
    shapes = [_shape_of(each) for each in output_shape_list]
    flat = _ops.concat([_ops.reshape(each, (-1,)) for each in input_tensor_list], 0)
    sent = [_elements(each.shape) for each in input_tensor_list]
    received = [_elements(shape) for shape in shapes]
    row, started = _core._start_exchange(flat, sent, received, known_as(group))
    handle = CommHandle(started)
    handle.wait()
    parts, at = [], 0
    for count, shape in zip(received, shapes, strict=True):
        parts.append(_ops.reshape(row[at : at + count], shape))
        at += count
    return tuple(parts), handle if async_op else None


def _splits(caller: str, length: int, sizes, group) -> list[int]:
    """How many rows go to or come from each worker."""
    workers = get_group_size(group)
    if sizes:
        return [int(each) for each in sizes]
    if length % workers:
        raise ValueError(
            f"{caller}: the first axis has {length} elements, which {workers} workers cannot share"
        )
    return [length // workers] * workers


def all_to_all_single_with_output_shape(
    output_shape, tensor, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    """(what the workers send here, along the first axis: `output_shape`, None or a CommHandle).

    The first axis of `tensor` is cut into `input_split_sizes`, by default as many equal parts as there are
    workers, and part i goes to worker i; what comes is cut into `output_split_sizes`. Gradients do not pass.
    """
    caller = "all_to_all_single_with_output_shape"
    _require_tensor(caller, tensor)
    shape = _shape_of(output_shape)
    sent = _splits(caller, tensor.shape[0], input_split_sizes, group)
    received = _splits(caller, shape[0], output_split_sizes, group)
    row_in, row_out = _elements(tensor.shape[1:]), _elements(shape[1:])
    made, started = _core._start_exchange(
        _ops.reshape(tensor, (-1,)),
        [each * row_in for each in sent],
        [each * row_out for each in received],
        known_as(group),
    )
    handle = CommHandle(started)
    handle.wait()
    return _ops.reshape(made, (sum(received), *shape[1:])), handle if async_op else None


# ---- Messages ----------------------------------------------------------------------------------------------


def send(tensor, dst=0, group=GlobalComm.WORLD_COMM_GROUP, tag=0) -> None:
    """Sends a tensor to worker `dst`; it may wait for its recv."""
    ops.Send(tag, _in_group("send", dst, group), group)(tensor)


def recv(tensor, src=0, group=GlobalComm.WORLD_COMM_GROUP, tag=0):
    """What worker `src` has sent with this tag: of the shape and dtype of `tensor`."""
    _require_tensor("recv", tensor)
    return ops.Receive(tag, _in_group("recv", src, group), tensor.shape, tensor.dtype, group)()


def isend(tensor, dst=0, group=GlobalComm.WORLD_COMM_GROUP, tag=0) -> CommHandle:
    """Begins to send a tensor to worker `dst`."""
    _require_tensor("isend", tensor)
    return CommHandle(_core._start_send(tensor, _in_group("isend", dst, group), tag, known_as(group)))


def irecv(tensor, src=0, group=GlobalComm.WORLD_COMM_GROUP, tag=0):
    """(what worker `src` sends, whose elements are there once the handle was waited for, a CommHandle)."""
    _require_tensor("irecv", tensor)
    made, started = _core._start_receive(tensor, _in_group("irecv", src, group), tag, known_as(group))
    return made, CommHandle(started)


def _named_op(op) -> str:
    name = op if isinstance(op, str) else getattr(op, "__name__", None)
    if name is None:
        raise TypeError(f"op must be type of string or function, but got type of {type(op)}")
    if name not in ("isend", "irecv"):
        raise ValueError(f"Expected ``op`` to be of type ``isend`` or ``irecv``, but got {name}")
    return name


class P2POp:
    """One message of batch_isend_irecv.

    Args:
        op: "isend" or "irecv", or such a function.
        tensor: What is sent; of irecv a tensor of that shape and dtype, or the shape.
        peer: The other worker's rank in the job.
        group: A name of create_group; None is all workers.
        tag: 0.
        recv_dtype: The dtype where `tensor` is a shape.
    """

    def __init__(self, op, tensor, peer, group=None, tag=0, *, recv_dtype=None):
        _named_op(op)
        if not isinstance(tensor, (Tensor, tuple)):
            raise TypeError(f"Expected ``tensor`` to be type of tuple or Tensor, but got {type(tensor)}.")
        if isinstance(peer, bool) or not isinstance(peer, int):
            raise TypeError(f"peer must be type of int, but got type of {type(peer)}")
        if recv_dtype is not None and not isinstance(recv_dtype, DType):
            raise TypeError(f"recv_dtype must be type of mindspore dtype, but got type of {type(recv_dtype)}")
        if tag != 0:
            raise NotImplementedError("``tag`` not support yet.")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.recv_dtype = recv_dtype


def _like(message: P2POp):
    if isinstance(message.tensor, Tensor):
        return message.tensor
    if message.recv_dtype is None:
        raise ValueError("P2POp: irecv of a shape needs a recv_dtype")
    return _ops.zeros(message.tensor, dtype=message.recv_dtype)


def batch_isend_irecv(p2p_op_list) -> tuple:
    """All messages at once: a tuple of what each irecv has received, and a zero for each isend.

    Raises:
        TypeError: The list is empty, or something in it is no P2POp.
    """
    if not isinstance(p2p_op_list, list) or not p2p_op_list:
        raise TypeError("batch_isend_irecv: p2p_op_list must be a list with elements")
    if not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise TypeError("batch_isend_irecv: p2p_op_list holds P2POp alone")
    made, handles = [], []
    for each in p2p_op_list:
        if _named_op(each.op) == "isend":
            made.append(_ops.zeros((), dtype=each.tensor.dtype))
            handles.append(isend(each.tensor, each.peer, each.group, each.tag))
        else:
            tensor, handle = irecv(_like(each), each.peer, each.group, each.tag)
            made.append(tensor)
            handles.append(handle)
    for handle in handles:
        handle.wait()
    return tuple(made)


__all__ = [
    "CommHandle",
    "P2POp",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all_single_with_output_shape",
    "all_to_all_with_output_shape",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather_into_tensor",
    "irecv",
    "isend",
    "recv",
    "reduce",
    "reduce_scatter_tensor",
    "scatter_tensor",
    "send",
]
__getattr__ = _names.missing(__name__)
