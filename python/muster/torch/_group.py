"""How torch.distributed gets a group of Muster: init_process_group, new_group and split_group end here."""

import sys

import torch
from torch.distributed import ProcessGroup

from muster.torch._backend import MusterBackend
from muster.torch._older import OlderGroup
from muster.torch._process_group import MusterProcessGroup, UncompiledProcessGroup
from muster.torch._recovering_backend import RecoveringBackend, recovers
from muster.torch._rendezvous import connect, ends_with_rank_0, master_of
from muster.torch._start import hint
from muster.torch._state import GroupState


def _can_be_written_in_python() -> bool:
    try:
        type("Empty", (torch._C._distributed_c10d.Backend,), {})(0, 1)
    except TypeError:
        return False
    return True


PYTHON_BACKENDS = _can_be_written_in_python()  # PyTorch 2.15 and newer


def backend(store, rank: int, ranks: list[int], timeout, name: str, kind=MusterBackend):
    """ranks: of the whole job, by those of the group."""
    native, liveness, own = connect(store, rank, ranks, timeout)
    return kind(native, liveness, GroupState(native, name, ranks, master_of(store)), own, timeout)


def recovering_backend(store, rank: int, size: int, timeout) -> RecoveringBackend:
    if torch.distributed.is_initialized():
        raise RuntimeError(
            "muster: a job that recovers (MS_ENABLE_RECOVERY=1) has the default group alone: leave out "
            "new_group and split_group, or the variable"
        )
    return RecoveringBackend(store, rank, size, timeout)


def _devices() -> dict[str, str]:
    """Which backend each device of the group gets, as PyTorch's function that makes it knows; or nothing."""
    frame = sys._getframe(2)
    config = frame.f_locals.get("backend_config")
    return dict(config.get_device_backend_map()) if config is not None else {}


def _check_timeout(timeout) -> None:
    """Raises RuntimeError for a negative one, which a store takes for none."""
    seconds = timeout.total_seconds()
    if seconds < 0:
        raise RuntimeError(
            f"muster: the timeout of the group is {seconds:g} s: give a positive one, and for a very "
            "long one timedelta(days=365) (PyTorch counts milliseconds in 64 bits, and timedelta.max turns "
            "negative)"
        )


def create(opts, backend_options) -> MusterBackend | ProcessGroup:
    """The backend of a group, or where it is the only one the group itself (see _process_group.py).

    Raises RuntimeError for devices other than the CPU, and for a negative timeout.
    """
    _check_timeout(opts.timeout)
    is_default = not torch.distributed.is_initialized()
    if is_default:
        hint()
    devices = _devices()
    others = [device for device, name in devices.items() if name == "muster" and device != "cpu"]
    if others:
        raise RuntimeError(
            f"muster: there is no backend of {', '.join(others)}, only of the CPU: "
            f'init_process_group("cpu:muster,{others[0]}:nccl") gives each device its backend'
        )
    if not PYTHON_BACKENDS and recovers():
        raise RuntimeError(f"muster: a job that recovers needs PyTorch 2.15, and this is {torch.__version__}")
    if not PYTHON_BACKENDS and set(devices) - {"cpu"}:
        raise RuntimeError(
            f"muster: a group of several backends ({devices}) needs PyTorch 2.15, and this is "
            f'{torch.__version__}: init_process_group("muster") and new_group(backend="nccl") give two groups'
        )
    if recovers():
        made = recovering_backend(opts.store, opts.group_rank, opts.group_size, opts.timeout)
    else:
        ranks = list(getattr(opts, "global_ranks_in_group", ())) or list(range(opts.group_size))
        name = getattr(opts, "group_id", "") or "the group"
        kind = MusterBackend if PYTHON_BACKENDS else OlderGroup
        made = backend(opts.store, opts.group_rank, ranks, opts.timeout, f"group {name}", kind)
        made.meets_at_rank_0 = is_default and ends_with_rank_0(opts.store)
    if set(devices) != {"cpu"} or not PYTHON_BACKENDS:
        return made
    alone = MusterProcessGroup if made.is_compiled else UncompiledProcessGroup
    group = alone(opts.process_group.get_group_store(), made)
    group.bound_device_id = opts.process_group.bound_device_id
    return group
