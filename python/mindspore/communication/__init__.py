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


_GROUPS_OF_ALL = {GlobalComm.WORLD_COMM_GROUP}


def _only_world(group: str) -> None:
    if group not in _GROUPS_OF_ALL:
        raise NotImplementedError(
            _names.sentence(f"a communication group other than all workers ({group!r})")
        )


def create_group(group: str, rank_ids, options=None) -> None:
    """A further name of the group of all workers; other groups are refused."""
    workers = muster.get_group_size()
    if sorted(rank_ids) != list(range(workers)):
        asked = f"create_group({group!r}, {list(rank_ids)}): a group of some of the {workers} workers"
        raise NotImplementedError(_names.sentence(asked))
    _GROUPS_OF_ALL.add(group)


def destroy_group(group: str) -> None:
    """Forgets a name that create_group() gave."""
    if group == GlobalComm.WORLD_COMM_GROUP:
        raise ValueError("destroy_group: the group of all workers stays")
    _only_world(group)
    _GROUPS_OF_ALL.discard(group)


def release() -> None:
    """Nothing: a worker leaves its job as its process ends."""


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


__all__ = [
    "GlobalComm",
    "create_group",
    "destroy_group",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_rank",
    "init",
    "release",
]
__getattr__ = _names.missing(__name__)
