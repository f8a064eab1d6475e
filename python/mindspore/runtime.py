"""mindspore.runtime and mindspore.hal: what has a meaning where the device is the processor."""

from mindspore import _device, _names


def synchronize() -> None:
    """Waits for nothing: an op is done when its call returns."""


def launch_blocking() -> None:
    """Changes nothing: ops are done when their calls return."""


def set_cpu_affinity(enable_affinity=True, affinity_cpu_list=None) -> None:
    """Changes nothing: threads follow OMP_NUM_THREADS and the affinity of the process."""
    _device.note_once("note: set_cpu_affinity has no effect: start the process under taskset")


def set_memory(*args, **kwargs) -> None:
    """Changes nothing: memory is planned from the graph."""


def empty_cache() -> None:
    """Frees nothing: there is no cache of memory."""


def set_kernel_launch_group(*args, **kwargs) -> None:
    """Changes nothing: kernels run one after another."""


def _bytes_used() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def memory_allocated() -> int:
    """Bytes of main memory that the process uses now."""
    return _bytes_used()


def memory_reserved() -> int:
    """The same: nothing is reserved."""
    return _bytes_used()


def _bytes_used_most() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def max_memory_allocated() -> int:
    """The most bytes of main memory that the process has used."""
    return _bytes_used_most()


def max_memory_reserved() -> int:
    """The same: nothing is reserved."""
    return _bytes_used_most()


__all__ = [
    "empty_cache",
    "launch_blocking",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "set_cpu_affinity",
    "set_kernel_launch_group",
    "set_memory",
    "synchronize",
]
__getattr__ = _names.missing(__name__)
