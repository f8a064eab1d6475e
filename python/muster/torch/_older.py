"""The process group of PyTorchs whose backends cannot be written in Python: older ones than 2.15.

There a group can be, and a creator may return one: it makes the calls itself, by the names that those
versions have for them. What calls it from C++ (DistributedDataParallel, functional collectives) finds them
by the same names. Such a group has no other backend beside Muster's.
"""

import torch
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import ProcessGroup

from muster.torch._backend import Calls
from muster.torch._work import CollectiveWork

# By the names of newer ones: the older name, the number of arguments before the options, and their class.
_CALLS = {
    "allreduce": ("allreduce", 1, c10d.AllreduceOptions),
    "allreduce_coalesced": ("allreduce_coalesced", 1, c10d.AllreduceCoalescedOptions),
    "reduce": ("reduce", 1, c10d.ReduceOptions),
    "broadcast": ("broadcast", 1, c10d.BroadcastOptions),
    "allgather": ("allgather", 2, c10d.AllgatherOptions),
    "allgather_coalesced": ("allgather_coalesced", 2, c10d.AllgatherOptions),
    "all_gather_single": ("_allgather_base", 2, c10d.AllgatherOptions),
    "all_gather_single_coalesced": ("allgather_into_tensor_coalesced", 2, c10d.AllgatherOptions),
    "gather": ("gather", 2, c10d.GatherOptions),
    "scatter": ("scatter", 2, c10d.ScatterOptions),
    "reduce_scatter": ("reduce_scatter", 2, c10d.ReduceScatterOptions),
    "reduce_scatter_single": ("_reduce_scatter_base", 2, c10d.ReduceScatterOptions),
    "reduce_scatter_single_coalesced": ("reduce_scatter_tensor_coalesced", 2, c10d.ReduceScatterOptions),
    "all_to_all_single": ("alltoall_base", 4, c10d.AllToAllOptions),
    "alltoall": ("alltoall", 2, c10d.AllToAllOptions),
    "barrier": ("barrier", 0, c10d.BarrierOptions),
}


class OlderGroup(Calls, ProcessGroup):
    """Where a call is done already, its Work says so: these versions ask for one."""

    _group_name = _group_desc = "undefined"

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def name(self) -> str:
        return "muster"

    # PyTorch keeps both in the group's backends, and there is none.
    def getGroupName(self) -> str:  # noqa: N802 - c10d's names
        return self._group_name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._group_name = name

    def getGroupDesc(self) -> str:  # noqa: N802
        return self._group_desc

    def setGroupDesc(self, desc: str) -> None:  # noqa: N802
        self._group_desc = desc

    # Asked by asynchronous saving (torch.distributed.checkpoint).
    _device_types = property(lambda self: [torch.device("cpu")])

    def _start_coalescing(self, device) -> None:
        self.start_coalescing()

    def _end_coalescing(self, device):
        return self.end_coalescing()


def _giving_a_work(name: str, older: str, count: int, options: type):
    call = getattr(Calls, name)

    def method(self, *args, opts=None):
        if len(args) > count:
            *args, opts = args
        return call(self, *args, options() if opts is None else opts) or CollectiveWork([])

    method.__name__ = older
    return method


for _name, (_older, _count, _options) in _CALLS.items():
    setattr(OlderGroup, _older, _giving_a_work(_name, _older, _count, _options))
