"""The process group of Muster's backend alone.

c10d hides the Work of a backend that is written in Python behind one of its own, which knows wait() and
get_future() and nothing else: is_completed() of it is always False, and the source of a receive from any
rank an error. A group that calls c10d's method, with all that belongs to it (hooks, the profiler, the checks
of TORCH_DISTRIBUTED_DEBUG), and then returns the Work that the backend has made shows it whole.

Groups of several backends ("cpu:muster,cuda:nccl") are c10d's own, and their works are hidden.
"""

import torch
from torch._C._distributed_c10d import ProcessGroup

from muster.torch._backend import made
from muster.torch._compiled import part

_CPU = torch.device("cpu")
# By c10d's names; the second is that of older versions, which newer ones look for where the first is not
# overridden and which must not stand beside it then.
_CALLS = (
    ("allreduce_coalesced",),
    ("reduce",),
    ("allgather",),
    ("allgather_coalesced",),
    ("all_gather_single_coalesced", "allgather_into_tensor_coalesced"),
    ("gather",),
    ("scatter",),
    ("reduce_scatter",),
    ("reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"),
    ("all_to_all_single", "alltoall_base"),
    ("alltoall",),
    ("send",),
    ("recv",),
    ("recv_anysource",),
    ("_end_coalescing",),
)
_COMPILED_CALLS = (  # works of the compiled part are c10d's own
    ("allreduce",),
    ("broadcast",),
    ("all_gather_single", "_allgather_base"),
    ("reduce_scatter_single", "_reduce_scatter_base"),
    ("barrier",),
)


class MusterProcessGroup(ProcessGroup):
    """A group whose only backend is Muster's."""

    def __init__(self, store, backend) -> None:
        if backend.is_compiled:
            part().begin_group(self, store, backend.rank(), backend.size())
        else:
            super().__init__(store, backend.rank(), backend.size())
        kind = ProcessGroup.BackendType.CUSTOM
        self._set_default_backend(kind)
        self._register_backend(_CPU, kind, backend)

    def getBackendName(self) -> str:  # noqa: N802 - c10d's name
        return "muster"

    def split_group(self, new_ranks, *args, **kwargs):
        if self.rank() not in new_ranks:
            return None
        split = super().split_group(new_ranks, *args, **kwargs)
        group = type(self)(split.get_group_store(), split._get_backend(_CPU))
        group._set_group_name(split.group_name)
        group._set_group_desc(split.group_desc)
        return group


class UncompiledProcessGroup(MusterProcessGroup):
    """The same where the compiled part is missing."""


def _showing_works(name: str):
    call = getattr(ProcessGroup, name)

    def method(self, *args, **kwargs):
        made.work = None
        try:
            hidden = call(self, *args, **kwargs)
        except RuntimeError as error:
            if "No backend type associated with device type" not in str(error):
                raise
            raise RuntimeError(
                f"muster: this group sends tensors on the CPU only ({str(error).splitlines()[0]}): "
                'init_process_group("cpu:muster,cuda:nccl") gives each device its backend'
            ) from error
        work, made.work = made.work, None
        return hidden if work is None or hidden is None else work

    # pybind11 tells a call of an overridden method by the method itself by the name of its code.
    method.__code__ = method.__code__.replace(co_name=name)
    method.__name__, method.__qualname__, method.__doc__ = name, f"MusterProcessGroup.{name}", call.__doc__
    return method


def _show_works(kind: type, calls) -> None:
    for names in calls:
        for name in [name for name in names if hasattr(ProcessGroup, name)][:1]:
            setattr(kind, name, _showing_works(name))


_show_works(MusterProcessGroup, _CALLS)
_show_works(UncompiledProcessGroup, _COMPILED_CALLS)
