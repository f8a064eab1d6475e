"""Muster starts a training job on any machines from environment variables alone, and trains on it fast."""

import os as _os

import muster._openmp  # first: it decides how the kernels' threads wait, which is read once
import muster._subclasses  # noqa: F401 - before there is any subclass
from muster import _attributes as _attributes
from muster import _copies as _copies
from muster import _display, _later, amp, dataset, initializers, nn, ops, parallel, train
from muster import _signatures as _signatures
from muster._core import (
    CorruptDataError,
    DType,
    JobAbortedError,
    Model,
    Parameter,
    PeerLostError,
    RefusedError,
    Tensor,
    bfloat16,
    bool_,
    dtype,
    export,
    float16,
    float32,
    float64,
    from_dlpack,
    get_group_size,
    get_local_rank,
    get_local_rank_size,
    get_ps_context,
    get_rank,
    get_replica_count,
    get_replica_rank,
    int8,
    int16,
    int32,
    int64,
    jit,
    load_checkpoint,
    load_param_into_net,
    load_state,
    recompute,
    reset_auto_parallel_context,
    reset_ps_context,
    save_checkpoint,
    save_state,
    set_auto_parallel_context,
    set_context,
    set_ps_context,
    set_seed,
    uint8,
    uint16,
    uint32,
    uint64,
    value_and_grad,
)
from muster._groups import Group, new_group
from muster._recoverable import recoverable
from muster._session import init
from muster._version import __version__ as __version__
from muster.nn import Cell

TYPE_CHECKING = False  # for the checkers of types
if TYPE_CHECKING:
    from muster._summary import summary
else:
    __getattr__, __dir__ = _later.names(__name__, {"summary": "muster._summary"})

_display.install()
if _folder := _os.environ.pop("MUSTER_PROFILE", None):  # no processes of this one record, too
    from muster import _profile

    _profile.record_until_exit(_folder)

__all__ = [
    "Cell",
    "CorruptDataError",
    "DType",
    "Group",
    "JobAbortedError",
    "Model",
    "Parameter",
    "PeerLostError",
    "RefusedError",
    "Tensor",
    "amp",
    "bfloat16",
    "bool_",
    "dataset",
    "dtype",
    "export",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_ps_context",
    "get_rank",
    "get_replica_count",
    "get_replica_rank",
    "init",
    "initializers",
    "int8",
    "int16",
    "int32",
    "int64",
    "jit",
    "load_checkpoint",
    "load_param_into_net",
    "load_state",
    "new_group",
    "nn",
    "ops",
    "parallel",
    "recompute",
    "recoverable",
    "reset_auto_parallel_context",
    "reset_ps_context",
    "save_checkpoint",
    "save_state",
    "set_auto_parallel_context",
    "set_context",
    "set_ps_context",
    "set_seed",
    "summary",
    "train",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "value_and_grad",
]
