"""mindspore.communication: init and ranks. There is one group, that of all workers."""

import muster
from mindspore import _device, _names

_ACCELERATOR_OF_BACKEND = {"nccl": "GPU", "hccl": "Ascend"}


class GlobalComm:
    """Names of groups."""

    WORLD_COMM_GROUP = "muster_world_group"
    INITED = False


def init(backend_name=None) -> None:
    """Forms the cluster that the MS_* environment variables describe (muster.init)."""
    if backend_name in _ACCELERATOR_OF_BACKEND:
        _device.run_on(_ACCELERATOR_OF_BACKEND[backend_name], f"init('{backend_name}')")
    elif backend_name not in (None, "mccl"):
        raise ValueError(f"init: {backend_name!r} is no backend; there are 'mccl', 'nccl' and 'hccl'")
    muster.init()
    GlobalComm.INITED = True


def _only_world(group: str) -> None:
    if group != GlobalComm.WORLD_COMM_GROUP:
        raise NotImplementedError(
            _names.sentence(f"a communication group other than all workers ({group!r})")
        )


def get_rank(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """This worker's rank, from 0."""
    _only_world(group)
    return muster.get_rank()


def get_group_size(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """The world size: the number of workers of the job."""
    _only_world(group)
    return muster.get_group_size()


def get_local_rank(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """This worker's rank among those of this host."""
    _only_world(group)
    return muster.get_local_rank()


def get_local_rank_size(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """The local world size: the number of workers of the job on this host."""
    _only_world(group)
    return muster.get_local_rank_size()


__all__ = ["GlobalComm", "get_group_size", "get_local_rank", "get_local_rank_size", "get_rank", "init"]
__getattr__ = _names.missing(__name__)
