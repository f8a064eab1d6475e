"""mindspore.hal: the device, which is the processor."""

from mindspore import _names
from mindspore.runtime import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
    synchronize,
)


def is_available(device_target="CPU") -> bool:
    """Whether there is such a device: the CPU."""
    return device_target == "CPU"


def is_initialized(device_target="CPU") -> bool:
    """Whether it is in use: the CPU is."""
    return device_target == "CPU"


def device_count(device_target=None) -> int:
    """One CPU, no GPU and no NPU."""
    return 1 if device_target in (None, "CPU") else 0


def get_arch_list(device_target=None) -> None:
    """Nothing, as for MindSpore's CPU."""


def get_device_name(device_id=0, device_target=None) -> str:
    """ "CPU": what MindSpore calls the processor."""
    return "CPU"


def get_device_properties(device_id=0, device_target=None) -> None:
    """Nothing, as for MindSpore's CPU."""


def get_device_capability(device_id=0, device_target=None) -> None:
    """Nothing, as for MindSpore's CPU."""


__all__ = [
    "device_count",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "is_initialized",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "synchronize",
]
__getattr__ = _names.missing(__name__)
__path__: list = []  # MindSpore has it as a package: more paths to these names
