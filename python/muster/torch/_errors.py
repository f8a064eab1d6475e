"""What Muster raises, as the error that scripts of torch.distributed expect: DistBackendError."""

import torch.distributed as dist
from torch.distributed import DistBackendError

from muster import JobAbortedError, PeerLostError, RefusedError
from muster.torch._flight_recorder import dump_after_failure

FAILURES = (TimeoutError, PeerLostError, JobAbortedError, RefusedError, ConnectionError)
RAISED = (*FAILURES, ValueError)  # by a call of Muster; the last where its arguments are wrong


def failure(error: BaseException) -> BaseException:
    """The error to raise for `error`: itself, where it is none of Muster's.

    Wrong arguments are a RuntimeError, as in PyTorch's own backends. The flight recorder of failures is kept.
    """
    if isinstance(error, ValueError):
        return RuntimeError(f"muster: {error}")
    if not isinstance(error, FAILURES):
        return error
    if dist.is_initialized():
        dump_after_failure(dist.get_rank())
    end = " (the timeout of the call or of its group)" if isinstance(error, TimeoutError) else ""
    return DistBackendError(f"muster: {error}{end}")
