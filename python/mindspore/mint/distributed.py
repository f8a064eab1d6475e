"""mindspore.mint.distributed: collective calls that write into tensors, with the arguments of PyTorch's.

Ranks (`src`, `dst`, `peer`) are those of the job, in a group, too. Where a function takes `async_op`, it
gives a handle with True, whose wait() writes the tensors, and None else. Gradients do not pass: those of
functions of mindspore.ops and mindspore.communication.comm_func do.
"""

import builtins
import io
import pickle

import numpy as np

from mindspore import _names
from mindspore import communication as _communication
from mindspore._members._places import _put
from mindspore.communication import known_as
from mindspore.communication.comm_func import CommHandle, _elements, _in_group, _require_tensor
from mindspore.mint._process_groups import (
    _world,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_initialized,
    new_group,
)
from mindspore.ops import ReduceOp
from mindspore.ops._training_primitives import REDUCTIONS
from muster import Tensor, _core, int8, int64
from muster import ops as _ops

# ---- What the functions share ------------------------------------------------------------------------------


def _end(handle: CommHandle, async_op: bool) -> CommHandle | None:
    if not isinstance(async_op, bool):
        raise TypeError(f"The argument 'async_op' must be a bool, but got {type(async_op)}.")
    if async_op:
        return handle
    handle.wait()
    return None


def _size(group) -> int:
    return _communication.get_group_size(_world(group))


def _own_rank(group) -> int:
    return _communication.get_rank(_world(group))


def _reduction(caller: str, op) -> str:
    if not isinstance(op, str) or op not in REDUCTIONS:
        raise TypeError(f"For {caller}, the input op value must be one of sum, prod, min, max, not {op!r}")
    return REDUCTIONS[op]


def _require_same(caller: str, tensors) -> None:
    """Tensors of one shape and dtype."""
    for each in tensors:
        _require_tensor(caller, each)
        if each.dtype != tensors[0].dtype or each.shape != tensors[0].shape:
            raise TypeError(
                f"{caller}: the tensors must have one shape and dtype, not {tensors[0].shape} "
                f"{tensors[0].dtype} "
                f"and {each.shape} {each.dtype}"
            )


def _require_one_each(caller: str, tensors, group) -> None:
    if not isinstance(tensors, (list, tuple)) or len(tensors) != _size(group):
        raise TypeError(f"{caller}: a list of {_size(group)} tensors is needed, one for each worker")
    for each in tensors:
        _require_tensor(caller, each)
        if each.dtype != tensors[0].dtype:
            raise TypeError(
                f"{caller}: the tensors must have one dtype, not {tensors[0].dtype} and {each.dtype}"
            )


def _require_output(caller: str, output, shape, dtype) -> None:
    _require_tensor(caller, output)
    if tuple(output.shape) != tuple(shape) or output.dtype != dtype:
        raise TypeError(
            f"For {caller}, the output should be {tuple(shape)} {dtype}, "
            f"but got {output.shape} {output.dtype}."
        )


def _flat(x):
    return _ops.reshape(x, (-1,))


def _joined(tensors):
    return _ops.concat([_flat(each) for each in tensors], 0)


def _write_cut(row, outputs) -> None:
    """Into each output its elements of a row."""
    at = 0
    for output in outputs:
        count = _elements(output.shape)
        _put(output, _ops.reshape(row[at : at + count], output.shape))
        at += count


def _exchange(row, sent, outputs, received, group, async_op):
    """`sent` elements of a row to each worker; what comes is written into the outputs, one after another."""
    made, started = _core._start_exchange(row, sent, received, known_as(group))
    return _end(CommHandle(started, lambda: _write_cut(made, outputs)), async_op)


def _reduced(x, op, group, use, async_op):
    made, started = _core._start_all_reduce(x, op, known_as(group))
    return _end(CommHandle(started, lambda: use(made)), async_op)


def _only(rank: int, count: int, size: int) -> list[int]:
    return [count if each == rank else 0 for each in range(size)]


# ---- Collective calls --------------------------------------------------------------------------------------


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensors of the group joined, in place."""
    _require_tensor("all_reduce", tensor)
    return _reduced(tensor, _reduction("all_reduce", op), group, lambda made: _put(tensor, made), async_op)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensors of the group joined, in place on worker `dst`."""
    _require_tensor("reduce", tensor)
    root = _in_group("reduce", dst, _world(group))

    def use(made):
        if _own_rank(group) == root:
            _put(tensor, made)

    return _reduced(tensor, _reduction("reduce", op), group, use, async_op)


def broadcast(tensor, src, group=None, async_op=False):
    """The tensor of worker `src`, in place."""
    _require_tensor("broadcast", tensor)
    root = _in_group("broadcast", src, _world(group))
    made, started = _core._start_broadcast(tensor, root, known_as(group))
    return _end(CommHandle(started, lambda: _put(tensor, made)), async_op)


def barrier(group=None, async_op=False, device_ids=None):
    """Waits for all workers of the group."""
    return _end(CommHandle(_core._start_barrier(known_as(group))), async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """The tensors (n, ...) of the group one after another: (workers times n, ...)."""
    _require_tensor("all_gather_into_tensor", input_tensor)
    shape = (
        (_size(group) * input_tensor.shape[0], *input_tensor.shape[1:])
        if input_tensor.ndim
        else (_size(group),)
    )
    _require_output("all_gather_into_tensor", output_tensor, shape, input_tensor.dtype)
    return _gather_all(input_tensor, [output_tensor], group, async_op)


def _gather_all(tensor, outputs, group, async_op):
    count, size = _elements(tensor.shape), _size(group)
    row = _joined([tensor] * size)
    return _exchange(row, [count] * size, outputs, [count] * size, group, async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """The tensors of the group, one into each of `tensor_list`; shapes may differ."""
    _require_tensor("all_gather", tensor)
    _require_one_each("all_gather", tensor_list, group)
    _require_output("all_gather", tensor, tensor_list[_own_rank(group)].shape, tensor_list[0].dtype)
    sizes = [_elements(each.shape) for each in tensor_list]
    row = _joined([tensor] * len(sizes))
    return _exchange(row, [_elements(tensor.shape)] * len(sizes), tensor_list, sizes, group, async_op)


def all_gather_into_tensor_uneven(output, input, output_split_sizes=None, group=None, async_op=False):
    """The tensors of the group one after another along the first axis, of `output_split_sizes` rows each."""
    if not output_split_sizes:
        return all_gather_into_tensor(output, input, group, async_op)
    _require_tensor("all_gather_into_tensor_uneven", input)
    rows = [int(each) for each in output_split_sizes]
    _require_output("all_gather_into_tensor_uneven", output, (sum(rows), *input.shape[1:]), input.dtype)
    width, size = _elements(input.shape[1:]), len(rows)
    sent = [_elements(input.shape)] * size
    return _exchange(
        _joined([input] * size), sent, [output], [each * width for each in rows], group, async_op
    )


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """This worker's part of the joined tensors: the first axis is cut into one for each worker."""
    _require_tensor("reduce_scatter_tensor", input)
    rows = _equal_parts("reduce_scatter_tensor", input, group)
    return reduce_scatter_tensor_uneven(output, input, rows, op, group, async_op)


def reduce_scatter_tensor_uneven(
    output, input, input_split_sizes=None, op=ReduceOp.SUM, group=None, async_op=False
):
    """This worker's part of the joined tensors: the first axis is cut into `input_split_sizes`."""
    caller = "reduce_scatter_tensor_uneven"
    _require_tensor(caller, input)
    rows = [int(each) for each in input_split_sizes or _equal_parts(caller, input, group)]
    own = _own_rank(group)
    _require_output(caller, output, (rows[own], *input.shape[1:]), input.dtype)
    begin = sum(rows[:own])
    use = lambda made: _put(output, made[begin : begin + rows[own]])  # noqa: E731 - one line of a closure
    return _reduced(input, _reduction(caller, op), group, use, async_op)


def _equal_parts(caller: str, x, group) -> list[int]:
    size = _size(group)
    if x.ndim == 0 or x.shape[0] % size:
        raise ValueError(
            f"{caller}: the first axis of a tensor of shape {x.shape} cannot be cut into {size} parts"
        )
    return [x.shape[0] // size] * size


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Tensor i of `input_list`, joined over the group, on the worker with rank i in it; shapes may differ."""
    _require_one_each("reduce_scatter", input_list, group)
    own = _own_rank(group)
    _require_output("reduce_scatter", output, input_list[own].shape, input_list[0].dtype)
    sizes = [_elements(each.shape) for each in input_list]
    begin = sum(sizes[:own])

    def use(made):
        _put(output, _ops.reshape(made[begin : begin + sizes[own]], output.shape))

    return _reduced(_joined(input_list), _reduction("reduce_scatter", op), group, use, async_op)


def scatter(tensor, scatter_list, src=0, group=None, async_op=False):
    """Tensor i of worker `src`'s list for the worker with rank i in the group."""
    _require_tensor("scatter", tensor)
    root, size = _in_group("scatter", src, _world(group)), _size(group)
    count, is_root = _elements(tensor.shape), _own_rank(group) == _in_group("scatter", src, _world(group))
    if is_root:
        _require_one_each("scatter", scatter_list, group)
        _require_same("scatter", [tensor, *scatter_list])
    row = _joined(scatter_list) if is_root else _flat(tensor)[:0]
    sent = [count if is_root else 0] * size
    return _exchange(row, sent, [tensor], _only(root, count, size), group, async_op)


def gather(tensor, gather_list, dst=0, group=None, async_op=False):
    """The tensors of the group, one into each of worker `dst`'s list."""
    _require_tensor("gather", tensor)
    root, size = _in_group("gather", dst, _world(group)), _size(group)
    count, is_root = _elements(tensor.shape), _own_rank(group) == _in_group("gather", dst, _world(group))
    if is_root:
        _require_one_each("gather", gather_list, group)
        _require_same("gather", [tensor, *gather_list])
    received = [count if is_root else 0] * size
    outputs = gather_list if is_root else []
    return _exchange(_flat(tensor), _only(root, count, size), outputs, received, group, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Tensor i goes to the worker with rank i in the group; what it sends is written into output i."""
    _require_one_each("all_to_all", input_tensor_list, group)
    _require_one_each("all_to_all", output_tensor_list, group)
    if output_tensor_list[0].dtype != input_tensor_list[0].dtype:
        raise TypeError("all_to_all: the tensors must have one dtype")
    sent = [_elements(each.shape) for each in input_tensor_list]
    received = [_elements(each.shape) for each in output_tensor_list]
    return _exchange(_joined(input_tensor_list), sent, output_tensor_list, received, group, async_op)


def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    """Part i of the first axis goes to the worker with rank i in the group; what comes is joined along it."""
    _require_tensor("all_to_all_single", input)
    _require_tensor("all_to_all_single", output)
    if output.dtype != input.dtype:
        raise TypeError(f"all_to_all_single: the output is {output.dtype}, the input {input.dtype}")
    sent = input_split_sizes or _equal_parts("all_to_all_single: the input", input, group)
    received = output_split_sizes or _equal_parts("all_to_all_single: the output", output, group)
    if sum(received) != output.shape[0]:
        raise ValueError(
            f"all_to_all_single: {list(received)} rows do not fill an output of shape {output.shape}"
        )
    width_in, width_out = _elements(input.shape[1:]), _elements(output.shape[1:])
    return _exchange(
        _flat(input),
        [each * width_in for each in sent],
        [output],
        [each * width_out for each in received],
        group,
        async_op,
    )


# ---- Messages ----------------------------------------------------------------------------------------------


def isend(tensor, dst=0, group=None, tag=0) -> CommHandle:
    """Begins to send a tensor to worker `dst`."""
    _require_tensor("isend", tensor)
    if dst == _communication.get_rank():
        raise ValueError("isend: the destination must not be this worker itself")
    return CommHandle(_core._start_send(tensor, _in_group("isend", dst, _world(group)), tag, known_as(group)))


def irecv(tensor, src=0, group=None, tag=0) -> CommHandle:
    """Begins to receive what worker `src` sends; the handle's wait() writes it into the tensor."""
    _require_tensor("irecv", tensor)
    peer = _in_group("irecv", src, _world(group))
    made, started = _core._start_receive(tensor, peer, tag, known_as(group))
    return CommHandle(started, lambda: _put(tensor, made))


def send(tensor, dst=0, group=None, tag=0) -> None:
    """Sends a tensor to worker `dst`; it may wait for its recv."""
    isend(tensor, dst, group, tag).wait()


def recv(tensor, src=0, group=None, tag=0) -> int:
    """Writes what worker `src` sends into the tensor; 0."""
    irecv(tensor, src, group, tag).wait()
    return 0


class P2POp:
    """One message of batch_isend_irecv.

    Args:
        op: "isend" or "irecv", or that function.
        tensor: What is sent, or written.
        peer: The other worker's rank in the job.
        group: A name of new_group; None is all workers.
        tag: 0.
    """

    def __init__(self, op, tensor, peer, group=None, tag=0):
        if op not in ("isend", "irecv", isend, irecv):
            raise TypeError(f"Expected op to be of type isend or irecv, but got {op}")
        _require_tensor("P2POp", tensor)
        if isinstance(peer, bool) or not isinstance(peer, int):
            raise TypeError("For P2POp, the peer must be int")
        if tag != 0:
            raise NotImplementedError("tag is not support yet.")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


class _Handles(CommHandle):
    def __init__(self, handles):
        super().__init__()
        self._handles = handles

    def wait(self) -> None:
        """Waits for all of them."""
        for handle in self._handles:
            handle.wait()


def batch_isend_irecv(p2p_op_list) -> list:
    """Begins all messages: a list of one handle for all of them."""
    if not p2p_op_list:
        raise TypeError("batch_isend_irecv: p2p_op_list can not be empty list.")
    if not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise TypeError("The elements in p2p_op_list must be type of P2POp.")
    if any(each.group != p2p_op_list[0].group for each in p2p_op_list):
        raise TypeError("The group name in p2p_op_list must be consistent.")
    begin = {"isend": isend, "irecv": irecv, isend: isend, irecv: irecv}
    return [_Handles([begin[each.op](each.tensor, each.peer, each.group) for each in p2p_op_list])]


# ---- Objects -----------------------------------------------------------------------------------------------

# Beside numbers, strings, containers and None: as MindSpore has it, so that nothing that comes runs code.
_SAFE = {"range", "complex", "set", "frozenset", "slice"}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if module == "builtins" and name in _SAFE:
            return getattr(builtins, name)
        raise pickle.UnpicklingError(f"global '{module}.{name}' is forbidden")


def _pickled(thing) -> Tensor:
    return Tensor(np.frombuffer(pickle.dumps(thing), np.int8))


def _unpickled(row):
    return _Unpickler(io.BytesIO(row.asnumpy().tobytes())).load()


def _all_sizes(count: int, group) -> list[int]:
    """What each worker of the group says."""
    told = _ops.zeros((_size(group),), dtype=int64)
    _gather_all(Tensor([count], int64), [told], group, False)
    return told.asnumpy().tolist()


def all_gather_object(object_list, obj, group=None) -> None:
    """The objects of the group, in the order of the ranks, into the list. They are pickled."""
    if not isinstance(object_list, list) or len(object_list) != _size(group):
        raise TypeError(
            f"all_gather_object: object_list must have {_size(group)} elements, one for each worker"
        )
    row = _pickled(obj)
    outputs = [_ops.zeros((count,), dtype=int8) for count in _all_sizes(row.shape[0], group)]
    all_gather(outputs, row, group)
    object_list[:] = [_unpickled(each) for each in outputs]


def gather_object(obj, object_gather_list=None, dst=0, group=None) -> None:
    """The objects of the group into the list of worker `dst`. They are pickled."""
    root = _in_group("gather_object", dst, _world(group))
    is_root = _own_rank(group) == root
    if is_root and (not isinstance(object_gather_list, list) or len(object_gather_list) != _size(group)):
        raise TypeError(
            f"gather_object: object_gather_list must have {_size(group)} elements, one for each worker"
        )
    row = _pickled(obj)
    sizes = _all_sizes(row.shape[0], group)
    outputs = [_ops.zeros((count,), dtype=int8) for count in sizes] if is_root else []
    received = sizes if is_root else [0] * len(sizes)
    _exchange(row, _only(root, row.shape[0], len(sizes)), outputs, received, group, False)
    if is_root:
        object_gather_list[:] = [_unpickled(each) for each in outputs]


def broadcast_object_list(object_list, src=0, group=None, device=None) -> None:
    """The objects of worker `src`'s list into those of the others, which are as long. They are pickled."""
    if not isinstance(object_list, list) or not object_list:
        raise TypeError("broadcast_object_list: object_list must be a list with elements")
    root = _in_group("broadcast_object_list", src, _world(group))
    is_root = _own_rank(group) == root
    row = _pickled(object_list)
    told = Tensor([row.shape[0]], int64)
    broadcast(told, src, group)
    if not is_root:
        row = _ops.zeros((int(told.asnumpy()[0]),), dtype=int8)
    broadcast(row, src, group)
    if not is_root:
        object_list[:] = _unpickled(row)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list, src=0, group=None) -> None:
    """Object i of worker `src`'s list into the first place of the list of rank i. They are pickled."""
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise TypeError("scatter_object_list: scatter_object_output_list must be a list with elements")
    root, size = _in_group("scatter_object_list", src, _world(group)), _size(group)
    is_root = _own_rank(group) == root
    if is_root and (
        not isinstance(scatter_object_input_list, list) or len(scatter_object_input_list) != size
    ):
        raise TypeError(f"scatter_object_list: scatter_object_input_list must have {size} elements")
    rows = [_pickled(each) for each in scatter_object_input_list] if is_root else []
    sizes = Tensor([each.shape[0] for each in rows] if is_root else [0] * size, int64)
    broadcast(sizes, src, group)
    counts = sizes.asnumpy().tolist()
    own = _ops.zeros((counts[_own_rank(group)],), dtype=int8)
    row = _joined(rows) if is_root else own[:0]
    sent = counts if is_root else [0] * size
    _exchange(row, sent, [own], _only(root, own.shape[0], size), group, False)
    scatter_object_output_list[0] = _unpickled(own)


__all__ = [
    "P2POp",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_into_tensor_uneven",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven",
    "scatter",
    "scatter_object_list",
    "send",
]
__getattr__ = _names.missing(__name__)
__path__: list = []  # MindSpore has it as a package: more paths to these names
