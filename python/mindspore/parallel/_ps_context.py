"""mindspore.parallel._ps_context: the role of this process in a job with parameter servers."""

import os

import muster
from mindspore import _device, _names
from mindspore.context import get_ps_context as _get_ps_context
from mindspore.context import reset_ps_context as _reset_ps_context
from mindspore.context import set_ps_context as _set_ps_context


def _is_role(role: str) -> bool:
    return _is_ps_mode() and os.environ.get("MS_ROLE") == role


def _is_ps_mode() -> bool:
    """Whether set_ps_context(enable_ps=True) was called."""
    return muster.get_ps_context("enable_ps")


def _is_role_worker() -> bool:
    """Whether this process trains (MS_WORKER), in a job with parameter servers."""
    return _is_role("MS_WORKER")


def _is_role_pserver() -> bool:
    """Whether this process holds parameters (MS_PSERVER)."""
    return _is_role("MS_PSERVER")


def _is_role_sched() -> bool:
    """Whether this process is the scheduler (MS_SCHED)."""
    return _is_role("MS_SCHED")


def _set_rank_id(rank_id: int) -> None:
    """The job knows the rank of each worker: nothing is set."""
    _device.note_once(f"note: _set_rank_id({rank_id}) has no effect: a worker's rank is that of its job")


__all__ = [
    "_get_ps_context",
    "_is_ps_mode",
    "_is_role_pserver",
    "_is_role_sched",
    "_is_role_worker",
    "_reset_ps_context",
    "_set_ps_context",
    "_set_rank_id",
]
__getattr__ = _names.missing(__name__)
