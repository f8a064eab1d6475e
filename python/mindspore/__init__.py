"""MindSpore's names for Muster, so that scripts that use the names below run unmodified.

Put the folder that `muster compat-path` prints in front of PYTHONPATH. Muster is no part of MindSpore.
"""

from mindspore import _names, amp, common, communication, context, dataset, nn, ops, train
from mindspore._gradient import grad, value_and_grad
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
    bfloat16,
    bool_,
    float32,
    float64,
    int8,
    int32,
    int64,
    jit,
    set_seed,
    uint8,
    uint32,
)

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
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
    "get_auto_parallel_context",
    "get_context",
    "get_ps_context",
    "grad",
    "int8",
    "int32",
    "int64",
    "jit",
    "load_checkpoint",
    "load_param_into_net",
    "nn",
    "ops",
    "reset_auto_parallel_context",
    "reset_ps_context",
    "save_checkpoint",
    "set_auto_parallel_context",
    "set_context",
    "set_ps_context",
    "set_seed",
    "train",
    "uint8",
    "uint32",
    "value_and_grad",
]
_names.refuse_missing_modules()
__version__ = "2.7.0"  # of MindSpore, for scripts that ask: the one whose names and defaults these are
__getattr__ = _names.missing(__name__, later=("numpy",))
