"""What a call gives that a death has cut: no right value, and yet one that the body of the step can use.

The step is made again, but its body runs to its end before: an exception there would end a rank that lives.
"""

import ctypes
import sys
import threading

from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel


def _clear(address: int, size_bytes: int) -> None:
    if address and size_bytes:
        ctypes.memset(address, 0, size_bytes)


def _in_forward_of_ddp() -> bool:
    frame = sys._getframe()
    while frame is not None and frame.f_code is not DistributedDataParallel._pre_forward.__code__:
        frame = frame.f_back
    return frame is not None


class Cleared:
    """Zeros where a call would have written: what torch.empty() has given holds anything, sizes as well."""

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size

    def clear(self, name: str, args: tuple) -> None:
        """name, args: of the native call, and in its order."""
        if name in ("broadcast", "all_gather", "all_gather_sizes", "scatter"):
            getattr(self, f"_{name}")(*args[:3])

    def _broadcast(self, data: int, size_bytes: int, root: int) -> None:
        # DistributedDataParallel compares its buckets so: it has them already, and takes none that are empty.
        if root != self._rank and not _in_forward_of_ddp():
            _clear(data, size_bytes)

    def _all_gather(self, _source: int, output: int, size_bytes: int) -> None:
        _clear(output, size_bytes * self._size)

    def _all_gather_sizes(self, _source: int, outputs: list[int], sizes: list[int]) -> None:
        for address, size_bytes in zip(outputs, sizes, strict=True):
            _clear(address, size_bytes)

    def _scatter(self, _sources: list[int], output: int, size_bytes: int) -> None:
        _clear(output, size_bytes)


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
