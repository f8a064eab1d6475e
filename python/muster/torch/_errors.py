"""What Muster raises, as the error that scripts of torch.distributed expect: DistBackendError."""

import re
from weakref import WeakValueDictionary

import torch.distributed as dist
from torch.distributed import DistBackendError

from muster import JobAbortedError, PeerLostError, RefusedError
from muster.torch._flight_recorder import dump_after_failure

FAILURES = (TimeoutError, PeerLostError, JobAbortedError, RefusedError, ConnectionError)
RAISED = (*FAILURES, ValueError)  # by a call of Muster; the last where its arguments are wrong
_groups: WeakValueDictionary = WeakValueDictionary()  # states by the address of the native group


def with_ranks_of_job(text: str, name: str, ranks: list[int]) -> str:
    """Says which ranks of the job those are that `text` names, where the group counts its own.

    ranks: of the job, by those of the group `name`.
    """
    named = sorted({int(rank) for rank in re.findall(r"\brank (\d+)", text)})
    others = [rank for rank in named if rank < len(ranks) and ranks[rank] != rank]
    if not others:
        return text
    told = ", ".join(f"rank {rank} of {name} is rank {ranks[rank]} of the job" for rank in others)
    return f"{text} ({told})"


def failure(error: BaseException, group=None) -> BaseException:
    """The error to raise for `error`: itself, where it is none of Muster's.

    Wrong arguments are a RuntimeError, as in PyTorch's own backends. The flight recorder of failures is kept.
    group: its GroupState.
    """
    if not isinstance(error, RAISED):
        return error
    end = " (the timeout of the call or of its group)" if isinstance(error, TimeoutError) else ""
    text = f"muster: {error}{end}"
    if group is not None:
        text = with_ranks_of_job(text, group.name, group.ranks)
    if isinstance(error, ValueError):
        return RuntimeError(text)
    if dist.is_initialized():
        dump_after_failure(dist.get_rank())
    return DistBackendError(text)


def name_group(address: int, group) -> None:
    """For failure_of(), until the state `group` is gone."""
    _groups[address] = group


def failure_of(error: BaseException, address: int) -> BaseException:
    """As failure(), for the part in C++, which knows a group by its address."""
    return failure(error, _groups.get(address))
