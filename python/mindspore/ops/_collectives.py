"""mindspore.ops: collective classes. Every worker calls them at the same place.

Every worker makes the same graph, whatever its rank: a gradient that only some of them pass on would be a
collective call that only some of them make.
"""

from mindspore import _names
from mindspore.communication import GlobalComm, get_group_size, get_rank, require_world
from mindspore.ops._primitive import Primitive
from mindspore.ops._training_primitives import ReduceOp
from muster import Tensor, ops


class _Collective(Primitive):
    def __init__(self, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__()
        require_world(group)

    def _require_tensor(self, x):
        if not isinstance(x, Tensor):
            raise TypeError(f"{self.name}: a Tensor is needed, not {type(x).__name__} {x!r}")

    def _require_rank(self, setting: str, rank) -> int:
        size = get_group_size()
        if not 0 <= rank < size:
            raise ValueError(f"{self.name}: {setting} is a rank from 0 to {size - 1}, not {rank}")
        return rank

    def _require_axis(self, setting: str, axis, x) -> None:
        self._require_tensor(x)
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"{self.name}: {setting} is no axis of a tensor of shape {x.shape}: {axis}")

    def _part(self, x, axis: int, setting: str) -> int:
        """How much of `axis` each worker has."""
        size = get_group_size()
        if x.shape[axis] % size:
            raise ValueError(
                f"{self.name}: {setting} has {x.shape[axis]} elements, "
                f"which {size} workers cannot share evenly"
            )
        return x.shape[axis] // size


class AllGather(_Collective):
    """The tensors of all workers joined along the first axis, in the order of the ranks."""

    def compute(self, input_x):
        """(workers times n, ...)."""
        self._require_tensor(input_x)
        if input_x.ndim == 0:
            raise ValueError("AllGather: a tensor without axes cannot be joined: reshape it to (1,)")
        return ops.all_gather(input_x)


class Broadcast(_Collective):
    """The tensors of worker root_rank for all, as a tuple. Those of the others say shapes and dtypes."""

    def __init__(self, root_rank, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        self.root_rank = root_rank

    def compute(self, input_x):
        """A tuple of the root's tensors."""
        if not isinstance(input_x, (tuple, list)):
            raise TypeError(f"Broadcast: a tuple of tensors is needed, not {type(input_x).__name__}")
        root = self._require_rank("root_rank", self.root_rank)
        for each in input_x:
            self._require_tensor(each)
        return tuple(ops.broadcast(each, root) for each in input_x)


class ReduceScatter(_Collective):
    """This worker's part of the tensors of all workers joined: the first axis is cut into as many parts."""

    def __init__(self, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        _names.refuse("mindspore.ops.ReduceScatter", op=(op, ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN))
        self.op = op

    def compute(self, input_x):
        """(n / workers, ...)."""
        self._require_axis("axis 0", 0, input_x)
        self._part(input_x, 0, "axis 0")
        return ops.reduce_scatter(input_x, self.op)


class AlltoAll(_Collective):
    """Part i of axis split_dim goes to worker i; what comes is joined along concat_dim."""

    def __init__(self, split_count, split_dim, concat_dim, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        self.split_count, self.split_dim, self.concat_dim = split_count, split_dim, concat_dim

    def compute(self, input_x):
        """The parts for this worker."""
        size = get_group_size()
        if self.split_count != size:
            raise ValueError(
                f"AlltoAll: split_count is the number of workers, {size}, not {self.split_count}"
            )
        for setting in ("split_dim", "concat_dim"):
            self._require_axis(setting, getattr(self, setting), input_x)
        axis = self.split_dim % input_x.ndim
        count = self._part(input_x, axis, f"axis {self.split_dim}")
        parts = ops.stack(ops.split(input_x, count, axis), 0)  # one of each worker along a new first axis
        got = ops.all_to_all(parts)
        return ops.concat([got[at] for at in range(size)], self.concat_dim)


class Reduce(_Collective):
    """The tensors of all workers joined, for worker dest_rank; zeros of shape (1,) on the others."""

    def __init__(self, dest_rank, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        _names.refuse("mindspore.ops.Reduce", op=(op, ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN))
        self.dest_rank, self.op = dest_rank, op

    def compute(self, input_x):
        """The joined tensor on dest_rank."""
        root = self._require_rank("dest_rank", self.dest_rank)
        self._require_tensor(input_x)
        return _on(root, ops.reduce(input_x, self.op, root))


class CollectiveGather(_Collective):
    """AllGather for worker dest_rank; zeros of shape (1,) on the others."""

    def __init__(self, dest_rank, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        self.dest_rank = dest_rank

    def compute(self, input_x):
        """(workers times n, ...) on dest_rank."""
        return _on(self._require_rank("dest_rank", self.dest_rank), AllGather()(input_x))


class CollectiveScatter(_Collective):
    """This worker's part of the tensor of worker src_rank: its first axis is cut into as many parts."""

    def __init__(self, src_rank=0, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        self.src_rank = src_rank

    def compute(self, input_x):
        """(n / workers, ...)."""
        root = self._require_rank("src_rank", self.src_rank)
        self._require_axis("axis 0", 0, input_x)
        count = self._part(input_x, 0, "axis 0")
        begin = get_rank() * count
        return ops.broadcast(input_x, root)[begin : begin + count]


def _on(rank: int, x):
    """`x` on worker `rank`, a zero on the others, which pass gradients on as that one does."""
    first = ops.reshape(x, (-1,))[:1]
    return x if get_rank() == rank else ops.select(Tensor(False), first, ops.zeros_like(first))


class Barrier(_Collective):
    """Waits for all workers."""

    def compute(self):
        """Nothing."""
        ops.all_reduce(ops.zeros((1,)), "sum")


__all__ = [
    "AllGather",
    "AlltoAll",
    "Barrier",
    "Broadcast",
    "CollectiveGather",
    "CollectiveScatter",
    "Reduce",
    "ReduceScatter",
]
