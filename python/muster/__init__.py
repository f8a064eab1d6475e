"""Muster starts a training job on any machines from environment variables alone, and trains on it fast."""

import muster._openmp  # noqa: F401 - first: it decides how the kernels' threads wait, which is read once
from muster._core import (
    CorruptDataError,
    DType,
    JobAbortedError,
    PeerLostError,
    RefusedError,
    Tensor,
    bool_,
    dtype,
    float32,
    float64,
    from_dlpack,
    int8,
    int32,
    int64,
    uint8,
    uint32,
)

__all__ = [
    "CorruptDataError",
    "DType",
    "JobAbortedError",
    "PeerLostError",
    "RefusedError",
    "Tensor",
    "bool_",
    "dtype",
    "float32",
    "float64",
    "from_dlpack",
    "int8",
    "int32",
    "int64",
    "uint8",
    "uint32",
]
