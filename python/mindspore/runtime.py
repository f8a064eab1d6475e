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


def reset_peak_memory_stats() -> None:
    """Changes nothing: the system keeps the greatest number of a process while it runs."""
    _device.note_once("note: reset_peak_memory_stats has no effect: the peak is the one of the whole process")


reset_max_memory_allocated = reset_max_memory_reserved = reset_peak_memory_stats


def dispatch_threads_num(threads_num) -> None:
    """Changes nothing: ops run when they are called."""


def set_kernel_launch_capture(enable_capture_graph, op_capture_skip=None) -> None:
    """Changes nothing: there are no launches to record."""


__all__ = [
    "dispatch_threads_num",
    "empty_cache",
    "launch_blocking",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "set_cpu_affinity",
    "set_kernel_launch_capture",
    "set_kernel_launch_group",
    "set_memory",
    "synchronize",
]
__getattr__ = _names.missing(__name__)
__path__: list = []  # MindSpore has it as a package: more paths to these names
