"""mindspore.numpy.dtypes: dtypes and constants by numpy's names."""

import math

import muster

inf = PINF = math.inf
NINF = -math.inf
nan = math.nan
pi = math.pi
bool_ = muster.bool_
int8, int16, int32, int64, int_ = muster.int8, muster.int16, muster.int32, muster.int64, muster.int32
uint8, uint16, uint32, uint64 = muster.uint8, muster.uint16, muster.uint32, muster.uint64
float16, float32, float64, float_ = muster.float16, muster.float32, muster.float64, muster.float32
numeric_types = [
    "int_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float_", "float16", "float32", "float64", "bool_",
]  # fmt: skip
# What `from mindspore.numpy import *` gives; the constants are asked for by name, as in MindSpore.
__all__ = list(numeric_types)
