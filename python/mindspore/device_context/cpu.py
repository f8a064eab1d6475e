"""mindspore.device_context.cpu: the device that there is."""

import muster
from mindspore import _names


def device_count() -> int:
    """One."""
    return 1


def is_available() -> bool:
    """True."""
    return True


class op_tuning:  # noqa: N801 - a module of MindSpore's
    """How ops use the processor."""

    @staticmethod
    def threads_num(num: int) -> None:
        """How many threads compute the ops of this process from now on."""
        muster.set_context(runtime_num_threads=num)


threads_num = op_tuning.threads_num
__all__ = ["device_count", "is_available", "threads_num"]
__getattr__ = _names.missing(__name__)
