"""Groups as mindspore.mint.distributed makes and asks for them."""

import hashlib

from mindspore import _names
from mindspore import communication as _communication
from mindspore import log as _log
from mindspore.communication import GlobalComm, known_as


def is_available() -> bool:
    """True: collective calls are there."""
    return True


def is_initialized() -> bool:
    """Whether init_process_group (or init) was called."""
    return GlobalComm.INITED


def init_process_group(
    backend="hccl",
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    pg_options=None,
    device_id=None,
) -> None:
    """Forms the cluster that the MS_* environment variables describe (muster.init).

    Raises:
        ValueError: `backend` is neither 'hccl' nor 'mccl', or `world_size` is not the number of workers.
    """
    ignored = {
        "init_method": init_method,
        "timeout": timeout,
        "store": store,
        "pg_options": pg_options,
        "device_id": device_id,
        "rank": None if rank == -1 else rank,
    }
    for name, value in ignored.items():
        if value is not None:
            _log.warning(f"init_process_group: {name} is ignored: environment variables describe the cluster")
    if backend not in ("hccl", "mccl"):
        raise ValueError(f"init_process_group: backend is 'hccl' or 'mccl', not {backend!r}")
    _communication.init(backend if backend == "mccl" else None)
    if world_size not in (-1, _communication.get_group_size()):
        raise ValueError(
            f"init_process_group: world_size is {world_size}, but there are "
            f"{_communication.get_group_size()} workers"
        )


def destroy_process_group(group=None) -> None:
    """Ends a group of new_group; None is the group of all workers, which ends with the process."""
    if group is not None and known_as(group):
        _communication.destroy_group(group)


def _world(group) -> str:
    return GlobalComm.WORLD_COMM_GROUP if group is None else group


def _or_nothing(ask, group) -> int:
    """-1 for a group that this worker is not in."""
    if not isinstance(_world(group), str):
        raise TypeError(f"the argument 'group' must be type of string, not {type(group).__name__}")
    try:
        return ask(_world(group))
    except ValueError as error:
        _log.warning(str(error))
        return -1


def get_rank(group=None) -> int:
    """This worker's rank in the group; -1 where it is in no such group."""
    return _or_nothing(_communication.get_rank, group)


def get_world_size(group=None) -> int:
    """How many workers the group has; -1 where this worker is in no such group."""
    return _or_nothing(_communication.get_group_size, group)


def new_group(
    ranks=None,
    timeout=None,
    backend=None,
    pg_options=None,
    use_local_synchronization=False,
    group_desc=None,
) -> str:
    """The name of a group of the workers with these ranks; "" in a worker that is none of them.

    The same ranks give the same group. None is the group of all workers.
    """
    if ranks is None:
        return GlobalComm.WORLD_COMM_GROUP
    if not isinstance(ranks, list):
        raise TypeError(f"new_group: ranks must be list, but got {type(ranks)}")
    if backend not in (None, "hccl", "mccl"):
        raise TypeError(f"new_group: the input backend must be hccl or mccl, but got {backend}")
    _names.refuse("mindspore.mint.distributed.new_group", pg_options=(pg_options, None))
    ranks = sorted(ranks)
    digest = hashlib.sha1("_".join(map(str, ranks)).encode(), usedforsecurity=False).hexdigest()
    name = f"{backend or 'hccl'}_{len(ranks)}_{digest}"
    try:
        _communication.create_group(name, ranks)
    except RuntimeError as error:
        if isinstance(error, NotImplementedError):
            raise
        _log.warning(str(error))
        return ""
    return name


def get_backend(group=None) -> str:
    """'hccl' or 'mccl': what the group was made with."""
    return "mccl" if isinstance(group, str) and "mccl" in group and "hccl" not in group else "hccl"


def get_global_rank(group, group_rank) -> int:
    """The rank in the job of the worker with this rank in the group."""
    return _communication.get_world_rank_from_group_rank(_world(group), group_rank)


def get_group_rank(group, global_rank) -> int:
    """The rank in the group of the worker with this rank in the job."""
    return _communication.get_group_rank_from_world_rank(global_rank, _world(group))


def get_process_group_ranks(group=None) -> list[int]:
    """The ranks in the job of the group's workers."""
    return _communication.get_process_group_ranks(_world(group))
