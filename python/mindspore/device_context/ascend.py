"""mindspore.device_context.ascend: devices that there are not."""

from mindspore import _names


def device_count() -> int:
    """How many there are. Raises RuntimeError, as MindSpore does where it finds none."""
    raise RuntimeError("Device Ascend not exist.")


def is_available() -> bool:
    """False."""
    return False


__all__ = ["device_count", "is_available"]
__getattr__ = _names.missing(__name__)
