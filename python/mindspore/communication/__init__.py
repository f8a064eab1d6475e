"""mindspore.communication: init, groups and ranks."""

import os
import sys

import muster
from mindspore import _device, _names
from muster import _core

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_ACCELERATOR_OF_BACKEND = {"nccl": "GPU", "hccl": "Ascend"}


class GlobalComm:
    """Names of groups, and of what carries their calls: "hccl" before init(), as in MindSpore."""

    BACKEND = "hccl"
    WORLD_COMM_GROUP = "muster_world_group"
    INITED = False


def init(backend_name=None) -> None:
    """Forms the cluster that the MS_* environment variables describe (muster.init)."""
    if backend_name in _ACCELERATOR_OF_BACKEND:
        _device.run_on(_ACCELERATOR_OF_BACKEND[backend_name], f"init('{backend_name}')")
    elif backend_name not in (None, "mccl"):
        raise ValueError(f"init: {backend_name!r} is no backend; there are 'mccl', 'nccl' and 'hccl'")
    muster.init()
    GlobalComm.BACKEND = backend_name or "mccl"
    GlobalComm.INITED = True
    if "mindspore.parallel._settings" in sys.modules:  # without it nothing was set
        from mindspore import context

        sys.modules["mindspore.parallel._settings"].join_workers(context._parallel)


def join_servers() -> None:
    """init() for scripts that leave it to MindSpore: those with parameter servers, in a process of a job."""
    if not GlobalComm.INITED and "MS_ROLE" in os.environ and muster.get_ps_context("enable_ps"):
        init()


# The groups of all workers by name, those of create_group among them.
_worlds = {
    GlobalComm.WORLD_COMM_GROUP,
    HCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
}

_some: dict[str, list[int]] = {}  # those of some workers


def known_as(group: str | None) -> str:
    """What muster's calls name a group: "" is all workers.

    Raises:
        TypeError: It is no name.
        ValueError: This worker has made no such group.
    """
    if group is None:
        return ""
    if not isinstance(group, str):
        raise TypeError(f"the argument 'group' must be type of string, not {type(group).__name__} {group!r}")
    if group in _worlds:
        return ""
    if group not in _some:
        raise ValueError(f"this worker has made no group '{group}' (create_group)")
    return group


def create_group(group: str, rank_ids: list[int], options=None) -> None:
    """Makes a group of the workers with these ranks, which each make it; the same again is nothing.

    Ranks in a group follow those of the job. They connect at their first call together.

    Raises:
        TypeError: `group` is no string, or `rank_ids` no list.
        ValueError: Ranks that do not exist or come twice, or there is such a group of other workers.
        RuntimeError: This worker is none of `rank_ids`.
        NotImplementedError: Some of the workers in a job whose processes may come back (MS_ENABLE_RECOVERY).
    """
    if not isinstance(group, str):
        raise TypeError(
            f"create_group: the argument 'group' must be type of string, not {type(group).__name__}"
        )
    if not isinstance(rank_ids, list):
        raise TypeError(
            f"create_group: the argument 'rank_ids' must be type of list, not {type(rank_ids).__name__}"
        )
    ranks = sorted(rank_ids)
    if ranks == list(range(muster.get_group_size())):
        if group in _some:
            raise ValueError(f"create_group: '{group}' is a group of {_some[group]}, not of all workers")
        _worlds.add(group)
    elif group in _worlds:
        raise ValueError(f"create_group: '{group}' is a group of all workers, not of {ranks}")
    elif ranks and ranks[0] < 0:
        raise ValueError(f"create_group: {ranks[0]} is no rank of the job")
    else:
        _core._create_group(group, ranks)
        _some[group] = ranks


def destroy_group(group: str) -> None:
    """Ends a group of create_group: its calls are over.

    Raises:
        ValueError: There is no such group, or it is the group of all workers.
    """
    if group == GlobalComm.WORLD_COMM_GROUP:
        raise ValueError("destroy_group: the group of all workers stays")
    if known_as(group):
        _core._destroy_group(group)
        del _some[group]
    else:
        _worlds.remove(group)


def release() -> None:
    """Nothing: a worker leaves its job when its process ends."""


def _unasked(group, variable: str, otherwise: int) -> int | None:
    """What a process that is in no job and has not called init() takes itself for: scripts ask all the same.

    As in MindSpore it is what a launcher of single processes says, else one process alone. None in a job.
    """
    if known_as(group) or GlobalComm.INITED or "MS_ROLE" in os.environ:
        return None
    try:
        muster.get_rank()
    except ValueError:
        return int(os.environ.get(variable, otherwise))
    return None


def get_rank(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """This worker's rank in the group, from 0."""
    if (rank := _unasked(group, "RANK_ID", 0)) is not None:
        return rank
    name = known_as(group)
    return get_process_group_ranks(group).index(muster.get_rank()) if name else muster.get_rank()


def get_group_size(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """The number of workers of the group."""
    if (size := _unasked(group, "RANK_SIZE", 1)) is not None:
        return size
    name = known_as(group)
    return len(_core._group_ranks(name)) if name else muster.get_group_size()


def get_local_rank(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """This worker's rank among those of the group on this host."""
    if (rank := _unasked(group, "LOCAL_RANK", 0)) is not None:
        return rank
    return _workers_here(group).index(muster.get_rank())


def get_local_rank_size(group=GlobalComm.WORLD_COMM_GROUP) -> int:
    """The number of workers of the group on this host."""
    if (size := _unasked(group, "LOCAL_RANK_SIZE", 1)) is not None:
        return size
    return len(_workers_here(group))


def _workers_here(group) -> list[int]:
    here = _core._workers_here()
    return [rank for rank in get_process_group_ranks(group) if rank in here]


def get_process_group_ranks(group=GlobalComm.WORLD_COMM_GROUP) -> list[int]:
    """The ranks in the job of the group's workers, in the order of their ranks in the group."""
    return list(_core._group_ranks(known_as(group)))


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The rank in the job of the worker with this rank in the group."""
    ranks = get_process_group_ranks(group)
    if isinstance(group_rank_id, bool) or not isinstance(group_rank_id, int):
        raise TypeError(f"get_world_rank_from_group_rank: a rank is an int, not {group_rank_id!r}")
    if not 0 <= group_rank_id < len(ranks):
        raise ValueError(
            f"get_world_rank_from_group_rank: a rank is 0 to {len(ranks) - 1}, not {group_rank_id}"
        )
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in the group of the worker with this rank in the job."""
    ranks = get_process_group_ranks(group)
    if isinstance(world_rank_id, bool) or not isinstance(world_rank_id, int):
        raise TypeError(f"get_group_rank_from_world_rank: a rank is an int, not {world_rank_id!r}")
    if world_rank_id not in ranks:
        known = f"0 to {len(ranks) - 1}" if not known_as(group) else f"one of {ranks} in group '{group}'"
        raise ValueError(f"get_group_rank_from_world_rank: a rank is {known}, not {world_rank_id}")
    return ranks.index(world_rank_id)


def get_comm_name(group=GlobalComm.WORLD_COMM_GROUP) -> str:
    """What errors call the group: its name."""
    return known_as(group) or GlobalComm.WORLD_COMM_GROUP


__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "create_group",
    "destroy_group",
    "get_comm_name",
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
