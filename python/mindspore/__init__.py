"""MindSpore's names for Muster, so that scripts that use the names below run unmodified.

Put the folder that `muster compat-path` prints in front of PYTHONPATH. Muster is no part of MindSpore.
"""

import os

from mindspore import _cells as _cells
from mindspore import _members, _names, amp, common, communication, context, dataset, nn, ops, train
from mindspore import _optimizers as _optimizers
from mindspore import _tensors as _tensors
from mindspore._gradient import grad, jvp, value_and_grad, vjp
from mindspore._jit import JitConfig, jit, jit_class, lazy_inline, mutable
from mindspore._misc import _no_grad as _no_grad
from mindspore._misc import (
    from_numpy,
    get_grad,
    get_seed,
    is_tensor,
    run_check,
    set_deterministic,
    set_device,
    set_seed,
    tensor,
)
from mindspore.common import dtype
from mindspore.common.parameter import ParameterTuple
from mindspore.context import (
    GRAPH_MODE,
    PYNATIVE_MODE,
    ParallelMode,
    get_auto_parallel_context,
    get_context,
    get_ps_context,
    reset_auto_parallel_context,
    reset_ps_context,
    set_auto_parallel_context,
    set_context,
    set_ps_context,
)
from mindspore.train import Model, export, load_checkpoint, load_param_into_net, save_checkpoint
from muster import (
    Parameter,
    Tensor,
    _core,
    bfloat16,
    bool_,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint32,
)

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "JitConfig",
    "Model",
    "ParallelMode",
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "amp",
    "bfloat16",
    "bool_",
    "common",
    "communication",
    "context",
    "dataset",
    "dtype",
    "export",
    "float32",
    "float64",
    "from_numpy",
    "get_auto_parallel_context",
    "get_context",
    "get_grad",
    "get_ps_context",
    "get_seed",
    "grad",
    "int8",
    "int32",
    "int64",
    "is_tensor",
    "jit",
    "jit_class",
    "jvp",
    "lazy_inline",
    "load_checkpoint",
    "load_param_into_net",
    "mutable",
    "nn",
    "ops",
    "reset_auto_parallel_context",
    "reset_ps_context",
    "run_check",
    "save_checkpoint",
    "set_auto_parallel_context",
    "set_context",
    "set_deterministic",
    "set_device",
    "set_ps_context",
    "set_seed",
    "tensor",
    "train",
    "uint8",
    "uint32",
    "value_and_grad",
    "vjp",
]
# Names that other modules have, too.
_HOLDERS = {
    "Profiler": "mindspore.profiler",
    **dict.fromkeys(
        [
            "DynamicLossScaleManager",
            "FixedLossScaleManager",
            "LossScaleManager",
            "build_train_network",
        ],
        "mindspore.amp",
    ),
    "RowTensor": "mindspore.common._sparse",
    **dict.fromkeys(
        [
            "Accuracy",
            "Callback",
            "CheckpointConfig",
            "ConfusionMatrix",
            "EarlyStopping",
            "F1",
            "Fbeta",
            "History",
            "LambdaCallback",
            "LearningRateScheduler",
            "Loss",
            "LossMonitor",
            "MAE",
            "MSE",
            "Metric",
            "ModelCheckpoint",
            "Precision",
            "Recall",
            "ReduceLROnPlateau",
            "RunContext",
            "SummaryCollector",
            "SummaryRecord",
            "TimeMonitor",
            "Top1CategoricalAccuracy",
            "Top5CategoricalAccuracy",
            "TopKCategoricalAccuracy",
        ],
        "mindspore.train",
    ),
    **dict.fromkeys(
        [
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
        ],
        "mindspore.runtime",
    ),
    **dict.fromkeys(("get_level", "get_log_config"), "mindspore.log"),
}
_names.refuse_missing_modules()
_members.attach()
_core._run_foreign_scripts(True, os.environ.get("MUSTER_STRICT", "0") != "1")
__version__ = "2.7.0"  # of MindSpore, for scripts that ask: the one whose names and defaults these are
__getattr__ = _names.missing(
    __name__,
    later=("boost", "experimental", "hal", "log", "mint", "numpy", "parallel", "profiler", "runtime"),
    holders=_HOLDERS,
)
