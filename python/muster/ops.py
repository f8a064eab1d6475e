"""Functions of tensors, for construct and outside of it."""

from muster._core import (
    add,
    argmax,
    bias_add,
    cast,
    div,
    equal,
    flatten,
    matmul,
    mul,
    reduce_mean,
    reduce_sum,
    relu,
    reshape,
    sub,
    tanh,
)

__all__ = [
    "add",
    "argmax",
    "bias_add",
    "cast",
    "div",
    "equal",
    "flatten",
    "matmul",
    "mul",
    "reduce_mean",
    "reduce_sum",
    "relu",
    "reshape",
    "sub",
    "tanh",
]
