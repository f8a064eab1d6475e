"""mindspore.device_context.ascend: devices that there are not."""

from mindspore import _device, _names


def device_count() -> int:
    """How many there are. Raises RuntimeError, as MindSpore does where it finds none."""
    raise RuntimeError("Device Ascend not exist.")


def is_available() -> bool:
    """False."""
    return False


_PLACE = "mindspore.device_context.ascend"
op_debug = _device.settings_without_effect(
    f"{_PLACE}.op_debug", "execute_timeout debug_option aclinit_config"
)
op_precision = _device.settings_without_effect(
    f"{_PLACE}.op_precision", "precision_mode op_precision_mode matmul_allow_hf32 conv_allow_hf32"
)
op_tuning = _device.settings_without_effect(
    f"{_PLACE}.op_tuning", "op_compile aoe_tune_mode aoe_job_type aclnn_cache"
)
globals().update(vars(op_debug) | vars(op_precision) | vars(op_tuning))

__all__ = ["device_count", "is_available"]
__getattr__ = _names.missing(__name__)
