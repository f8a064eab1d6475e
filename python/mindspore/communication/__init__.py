"""mindspore.communication: init and ranks. There is one group, that of all workers."""

import muster
from mindspore import _device, _names

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
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


# The groups of all workers by name, those of create_group among them.
_worlds = {
    GlobalComm.WORLD_COMM_GROUP,
    HCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
}


def require_world(group: str) -> None:
    """Raises unless `group` is one of all workers: there are no others."""
    if group not in _worlds:
        raise NotImplementedError(
            _names.sentence(f"a communication group other than all workers ({group!r})")
        )


def create_group(group: str, rank_ids, options=None) -> None:
    """Gives the group of all workers one more name.

    Raises:
        NotImplementedError: `rank_ids` are not all ranks in their order.
    """
    if list(rank_ids) != list(range(muster.get_group_size())):
        raise NotImplementedError(
            _names.sentence(
                f"a communication group of some workers (create_group({group!r}, {list(rank_ids)}))"
            )
        )
    _worlds.add(group)


def destroy_group(group: str) -> None:
    """Forgets a name of create_group.

    Raises:
        ValueError: It is no such name.
    """
    if group == GlobalComm.WORLD_COMM_GROUP:
        raise ValueError("destroy_group: the group of all workers stays")
    if group not in _worlds:
        raise ValueError(f"destroy_group: {group!r} is no group of create_group")
    _worlds.remove(group)


def release() -> None:
    """Nothing: a worker leaves its job when its process ends."""


def get_rank(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """This worker's rank, from 0."""
    require_world(group)
    return muster.get_rank()


def get_group_size(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """The world size: the number of workers of the job."""
    require_world(group)
    return muster.get_group_size()


def get_local_rank(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """This worker's rank among those of this host."""
    require_world(group)
    return muster.get_local_rank()


def get_local_rank_size(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """The local world size: the number of workers of the job on this host."""
    require_world(group)
    return muster.get_local_rank_size()


def get_process_group_ranks(group=GlobalComm.WORLD_COMM_GROUP) -> list[int]:
    """The ranks of the group's workers."""
    return list(range(get_group_size(group)))


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The rank in the job of the worker with this rank in the group: the same one."""
    return _known_rank("get_world_rank_from_group_rank", group_rank_id, group)


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in the group of the worker with this rank in the job: the same one."""
    return _known_rank("get_group_rank_from_world_rank", world_rank_id, group)


def _known_rank(caller: str, rank: int, group: str) -> int:
    size = get_group_size(group)
    if not 0 <= rank < size:
        raise ValueError(f"{caller}: a rank is 0 to {size - 1}, not {rank}")
    return rank


__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "create_group",
    "destroy_group",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]
__getattr__ = _names.missing(__name__, later=("comm_func",))
