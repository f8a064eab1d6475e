"""mindspore._c_expression: the few of MindSpore's inner names that scripts and libraries import.

What says something of a device says here what MindSpore says where there is only a CPU.
"""

import copy

import muster
from mindspore import _names

Tensor = TensorPy = muster.Tensor


class MSContext:
    """What a process knows of its devices: it has none but the CPU."""

    _only = None

    @classmethod
    def get_instance(cls) -> "MSContext":
        """The one object."""
        cls._only = cls._only or cls()
        return cls._only

    def get_ascend_soc_version(self) -> str:
        """The name of the NPU: there is none."""
        return ""

    def is_ascend_plugin_loaded(self) -> bool:
        """Whether NPUs can be used: never."""
        return False

    def is_pkg_support_device(self, device_target: str) -> bool:
        """Whether there are kernels for a device: for 'CPU'."""
        return device_target == "CPU"

    def load_plugin_error(self) -> str:
        """What went wrong with the devices: nothing."""
        return ""


class ParamInfo:
    """What MindSpore notes of a parameter beside its elements, which libraries with parameters of their own
    set on their tensors."""

    def __init__(self):
        self.name = "Parameter"
        self.requires_grad = True
        self.parameter_shape: list = []
        self.alias_name: list = []
        self.origin_shape: list = []
        self.key = -1
        self.cache_enable = self.init_in_server = self.layerwise_parallel = self.is_param_init = False
        self.cache_shape: list = []
        self.comm_fusion = 1
        self.parallel_optimizer = self.requires_aggr = True
        self.parallel_optimizer_comm_recompute = self.is_pipeline_shared_param = False
        self.storage_format = ""

    def clone(self) -> "ParamInfo":
        """Another one that says the same."""
        return copy.copy(self)


def _empty_instance(size, dtype=None, device=None):
    """A tensor whose elements nobody has set: zeros."""
    return muster.ops.zeros((size,) if isinstance(size, int) else tuple(size), dtype or muster.float32)


def disable_multi_thread() -> None:
    """Nothing: ops run where they are called."""


def _ms_memory_recycle() -> None:
    """Nothing: memory goes back with the tensors that hold it."""


__path__: list = []  # `typing` lies below
__all__ = ["MSContext", "ParamInfo", "Tensor", "TensorPy"]
__getattr__ = _names.missing(__name__)
