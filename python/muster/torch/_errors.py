"""What Muster raises, as the error that scripts of torch.distributed expect: DistBackendError."""

from torch.distributed import DistBackendError

from muster import JobAbortedError, PeerLostError, RefusedError

FAILURES = (TimeoutError, PeerLostError, JobAbortedError, RefusedError, ConnectionError)


def failure(error: BaseException) -> BaseException:
    """The error to raise for `error`: itself, where it is none of Muster's."""
    if not isinstance(error, FAILURES):
        return error
    end = " (the timeout of the call or of its group)" if isinstance(error, TimeoutError) else ""
    return DistBackendError(f"muster: {error}{end}")
