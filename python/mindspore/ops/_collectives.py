"""mindspore.ops: collective classes, by all_reduce. Every worker calls them at the same place."""

from mindspore import _names
from mindspore.communication import GlobalComm, get_group_size, get_rank
from mindspore.ops._primitive import Primitive
from muster import ops


class _Collective(Primitive):
    def __init__(self, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__()
        _names.refuse(f"mindspore.ops.{self.name}", group=(group, GlobalComm.WORLD_COMM_GROUP))


def _gathered(x):
    """The tensors of all workers along a new first axis: zeros but for the own one, added up."""
    rank, size = get_rank(), get_group_size()
    parts = [x if at == rank else ops.zeros_like(x) for at in range(size)]
    return ops.all_reduce(ops.stack(parts, 0), "sum")


class AllGather(_Collective):
    """The tensors of all workers joined along the first axis, in the order of the ranks."""

    def compute(self, input_x):
        """(workers times n, ...)."""
        made = _gathered(input_x)
        return ops.reshape(made, (made.shape[0] * made.shape[1], *made.shape[2:]))


class Broadcast(_Collective):
    """The tensors of worker root_rank for all, as a tuple."""

    def __init__(self, root_rank, group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        self.root_rank = root_rank

    def compute(self, input_x):
        """A tuple of the root's tensors."""
        own = get_rank() == self.root_rank
        return tuple(ops.all_reduce(x if own else ops.zeros_like(x), "sum") for x in input_x)


class ReduceScatter(_Collective):
    """This worker's part of the tensors of all workers joined: the first axis is cut into as many parts."""

    def __init__(self, op="sum", group=GlobalComm.WORLD_COMM_GROUP):
        super().__init__(group)
        _names.refuse("mindspore.ops.ReduceScatter", op=(op, "sum", "max", "min"))
        self.op = op

    def compute(self, input_x):
        """(n / workers, ...)."""
        made = ops.all_reduce(input_x, self.op)
        count = input_x.shape[0] // get_group_size()
        begin = get_rank() * count
        return made[begin : begin + count]


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
        made = _gathered(input_x)
        axis = 1 + self.split_dim % input_x.ndim
        count = made.shape[axis] // size
        begin = get_rank() * count
        part = made[(slice(None),) * axis + (slice(begin, begin + count),)]
        return ops.concat([part[at] for at in range(size)], self.concat_dim)


class Barrier(_Collective):
    """Waits for all workers."""

    def compute(self):
        """Nothing."""
        ops.all_reduce(ops.zeros((1,)), "sum")


__all__ = ["AllGather", "AlltoAll", "Barrier", "Broadcast", "ReduceScatter"]
