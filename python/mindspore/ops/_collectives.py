"""mindspore.ops: collective classes. Every worker of their group calls them at the same place.

Every worker of it makes the same graph, whatever its rank: a gradient that only some of them pass on would be
a collective call that only some of them make.
"""

from mindspore import _names
from mindspore.communication import GlobalComm, get_group_size, get_rank, known_as
from mindspore.ops._primitive import Primitive
from mindspore.ops._training_primitives import REDUCTIONS, ReduceOp
from muster import Tensor, ops


class _Collective(Primitive):
    def __init__(self, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__()
        known_as(group)
        self.group = GlobalComm.WORLD_COMM_GROUP if group is None else group

    @property
    def _known(self) -> str | None:
        """The group as muster.ops take it."""
        return known_as(self.group) or None

    def _reduction(self) -> str:
        return REDUCTIONS[self.op]

    def _require_tensor(self, x):
        if not isinstance(x, Tensor):
            raise TypeError(f"{self.name}: a Tensor is needed, not {type(x).__name__} {x!r}")

    def _require_rank(self, setting: str, rank) -> int:
        size = get_group_size(self.group)
        if isinstance(rank, bool) or not isinstance(rank, int):
            raise TypeError(f"{self.name}: {setting} is a rank, not {type(rank).__name__} {rank!r}")
        if not 0 <= rank < size:
            raise ValueError(f"{self.name}: {setting} is a rank from 0 to {size - 1}, not {rank}")
        return rank

    def _require_axis(self, setting: str, axis, x) -> None:
        self._require_tensor(x)
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"{self.name}: {setting} is no axis of a tensor of shape {x.shape}: {axis}")

    def _part(self, x, axis: int, setting: str) -> int:
        """How much of `axis` each worker has."""
        size = get_group_size(self.group)
        if x.shape[axis] % size:
            raise ValueError(
                f"{self.name}: {setting} has {x.shape[axis]} elements, "
                f"which {size} workers cannot share evenly"
            )
        return x.shape[axis] // size

    def _on(self, rank: int, x):
        """`x` on worker `rank`, a zero on the others, which pass gradients on as that one does."""
        first = ops.reshape(x, (-1,))[:1]
        return x if get_rank(self.group) == rank else ops.select(Tensor(False), first, ops.zeros_like(first))


class AllGather(_Collective):
    """The tensors of all workers joined along the first axis, in the order of the ranks."""

    def compute(self, input_x):
        """(workers times n, ...)."""
        self._require_tensor(input_x)
        if input_x.ndim == 0:
            raise ValueError("AllGather: a tensor without axes cannot be joined: reshape it to (1,)")
        return ops.all_gather(input_x, self._known)


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
        return tuple(ops.broadcast(each, root, self._known) for each in input_x)


class ReduceScatter(_Collective):
    """This worker's part of the tensors of all workers joined: the first axis is cut into as many parts."""

    def __init__(self, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        _names.refuse("mindspore.ops.ReduceScatter", op=(op, *REDUCTIONS))
        self.op = op

    def compute(self, input_x):
        """(n / workers, ...)."""
        self._require_axis("axis 0", 0, input_x)
        self._part(input_x, 0, "axis 0")
        return ops.reduce_scatter(input_x, self._reduction(), self._known)


class AlltoAll(_Collective):
    """Part i of axis split_dim goes to worker i; what comes is joined along concat_dim."""

    def __init__(self, split_count, split_dim, concat_dim, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        self.split_count, self.split_dim, self.concat_dim = split_count, split_dim, concat_dim

    def compute(self, input_x):
        """The parts for this worker."""
        size = get_group_size(self.group)
        if self.split_count != size:
            raise ValueError(
                f"AlltoAll: split_count is the number of workers, {size}, not {self.split_count}"
            )
        for setting in ("split_dim", "concat_dim"):
            self._require_axis(setting, getattr(self, setting), input_x)
        axis = self.split_dim % input_x.ndim
        count = self._part(input_x, axis, f"axis {self.split_dim}")
        parts = ops.stack(ops.split(input_x, count, axis), 0)  # one of each worker along a new first axis
        got = ops.all_to_all(parts, self._known)
        return ops.concat([got[at] for at in range(size)], self.concat_dim)


class Reduce(_Collective):
    """The tensors of all workers joined, for worker dest_rank; zeros of shape (1,) on the others."""

    def __init__(self, dest_rank, op=ReduceOp.SUM, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        _names.refuse("mindspore.ops.Reduce", op=(op, *REDUCTIONS))
        self.dest_rank, self.op = dest_rank, op

    def compute(self, input_x):
        """The joined tensor on dest_rank."""
        root = self._require_rank("dest_rank", self.dest_rank)
        self._require_tensor(input_x)
        return self._on(root, ops.reduce(input_x, self._reduction(), root, self._known))


class CollectiveGather(_Collective):
    """AllGather for worker dest_rank; zeros of shape (1,) on the others."""

    def __init__(self, dest_rank, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        self.dest_rank = dest_rank

    def compute(self, input_x):
        """(workers times n, ...) on dest_rank."""
        return self._on(self._require_rank("dest_rank", self.dest_rank), AllGather(self.group)(input_x))


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
        begin = get_rank(self.group) * count
        return ops.broadcast(input_x, root, self._known)[begin : begin + count]


class Barrier(_Collective):
    """Waits for all workers of the group."""

    def compute(self):
        """Nothing."""
        ops.all_reduce(ops.zeros((1,)), "sum", self._known)


class Send(_Collective):
    """Sends a tensor to worker dest_rank of the group, whose Receive has the same sr_tag; gives the tensor.

    The gradient that the other side's Receive passes back is added to what comes from the uses of the result.
    """

    def __init__(
        self,
        sr_tag,
        dest_rank,
        group=GlobalComm.WORLD_COMM_GROUP,
        group_back=GlobalComm.WORLD_COMM_GROUP,
    ):
        super().__init__(group)
        self.sr_tag, self.rank, self.group_back = sr_tag, dest_rank, group_back

    def compute(self, input_x):
        """input_x itself."""
        self._require_tensor(input_x)
        return ops.send(input_x, self._require_rank("dest_rank", self.rank), self.sr_tag, self._known)


class Receive(_Collective):
    """The tensor that worker src_rank of the group sends with the same sr_tag: of this shape and dtype.

    Called with a tensor, gradients of it are wanted, and go back to the sender.
    """

    def __init__(
        self,
        sr_tag,
        src_rank,
        shape,
        dtype,
        group=GlobalComm.WORLD_COMM_GROUP,
        group_back=GlobalComm.WORLD_COMM_GROUP,
    ):
        super().__init__(group)
        self.tag, self.rank, self.shape, self.dtype = sr_tag, src_rank, tuple(shape), dtype
        self.group_back = group_back

    def compute(self, virtual_input=None):
        """What was sent."""
        like = ops.zeros(self.shape, dtype=self.dtype)
        if virtual_input is not None:
            self._require_tensor(virtual_input)
            like = like + ops.broadcast_to(
                ops.reshape(virtual_input, (-1,))[:1].astype(self.dtype), self.shape
            )
        return ops.receive(like, self._require_rank("src_rank", self.rank), self.tag, self._known)


__all__ = [
    "AllGather",
    "AlltoAll",
    "Barrier",
    "Broadcast",
    "CollectiveGather",
    "CollectiveScatter",
    "Receive",
    "Reduce",
    "ReduceScatter",
    "Send",
]
