"""mindspore.device_context.gpu: devices that there are not."""

from mindspore import _device, _names


def device_count() -> int:
    """How many there are. Raises RuntimeError, as MindSpore does where it finds none."""
    raise RuntimeError("Device GPU not exist.")


def is_available() -> bool:
    """False."""
    return False


_PLACE = "mindspore.device_context.gpu"
op_precision = _device.settings_without_effect(f"{_PLACE}.op_precision", "matmul_allow_tf32 conv_allow_tf32")
op_tuning = _device.settings_without_effect(
    f"{_PLACE}.op_tuning", "conv_fprop_algo conv_wgrad_algo conv_dgrad_algo"
)
globals().update(vars(op_precision) | vars(op_tuning))

__all__ = ["device_count", "is_available"]
__getattr__ = _names.missing(__name__)
