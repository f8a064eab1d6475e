"""mindspore.hal: the device, which is the processor."""

from mindspore import _names
from mindspore.runtime import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
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


__all__ = [
    "device_count",
    "empty_cache",
    "get_arch_list",
    "is_available",
    "is_initialized",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "synchronize",
]
__getattr__ = _names.missing(__name__)
