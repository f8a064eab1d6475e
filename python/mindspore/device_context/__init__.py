"""mindspore.device_context: what a script asks and sets of its devices, of which there is the CPU."""

from mindspore import _names
from mindspore.device_context import ascend, cpu, gpu

__all__ = ["ascend", "cpu", "gpu"]
__getattr__ = _names.missing(__name__)
