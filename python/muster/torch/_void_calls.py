"""What a call gives that a death has cut: no right value, and yet one that the body of the step can use.

The step is made again, but its body runs to its end before: an exception there would end a rank that lives.
"""

import ctypes
import sys
import threading

from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel

from muster.torch._tensors import DTYPES


def _in_forward_of_ddp() -> bool:
    frame = sys._getframe()
    while frame is not None and frame.f_code is not DistributedDataParallel._pre_forward.__code__:
        frame = frame.f_back
    return frame is not None


_ITEM_BYTES = {name: kind.itemsize for kind, name in DTYPES.items()}
Outputs = list[tuple[int, int]]  # addresses and sizes in bytes


class Cleared:
    """Zeros where a call would have written: what torch.empty() has given holds anything, sizes as well."""

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size

    def outputs(self, name: str, args: tuple) -> Outputs:
        """What the call writes beside its input. name, args: of the native call, and in its order."""
        of_call = getattr(self, f"_{name}", None)
        return of_call(*args) if of_call is not None else []

    def _broadcast(self, data: int, size_bytes: int, root: int, *_) -> Outputs:
        # DistributedDataParallel compares its buckets so: it has them already, and takes none that are empty.
        return [(data, size_bytes)] if root != self._rank and not _in_forward_of_ddp() else []

    def _all_gather(self, _source: int, output: int, size_bytes: int, *_) -> Outputs:
        return [(output, size_bytes * self._size)]

    def _all_gather_sizes(self, _source: int, outputs: list[int], sizes: list[int], *_) -> Outputs:
        return list(zip(outputs, sizes, strict=True))

    def _reduce_scatter(self, _source: int, output: int, count: int, dtype: str, *_) -> Outputs:
        return [(output, count * _ITEM_BYTES[dtype])]

    def _all_to_all(self, _sources, _sizes, outputs: list[int], sizes: list[int], *_) -> Outputs:
        return list(zip(outputs, sizes, strict=True))

    def _gather(self, _source: int, size_bytes: int, outputs: list[int], *_) -> Outputs:
        return [(output, size_bytes) for output in outputs]

    def _scatter(self, _sources: list[int], output: int, size_bytes: int, *_) -> Outputs:
        return [(output, size_bytes)]

    def _receive(self, data: int, size_bytes: int, *_) -> Outputs:
        return [(data, size_bytes)]

    _receive_from_any = _receive


def clear(outputs: Outputs) -> None:
    for address, size_bytes in outputs:
        if address and size_bytes:
            ctypes.memset(address, 0, size_bytes)


class _Objects:
    """PyTorch's calls of objects, which would take what has not come for a pickle: they give this rank's own
    object, or None where it has given none."""

    def __init__(self) -> None:
        self.is_void = lambda: False
        self._own = threading.local()
        self._to_tensor = distributed_c10d._object_to_tensor
        self._to_object = distributed_c10d._tensor_to_object
        distributed_c10d._object_to_tensor = self._keep
        distributed_c10d._tensor_to_object = self._give

    def _keep(self, given, *args, **kwargs):
        self._own.object = given
        return self._to_tensor(given, *args, **kwargs)

    def _give(self, *args, **kwargs):
        if self.is_void():
            return getattr(self._own, "object", None)
        return self._to_object(*args, **kwargs)


_objects: _Objects | None = None


def give_own_objects(is_void) -> None:
    """From now on, in calls of objects during which is_void() becomes true."""
    global _objects
    if _objects is None:
        _objects = _Objects()
    _objects.is_void = is_void
