"""Classes of mindspore.ops.auto_generate with the arguments of mindspore.mint: `AddExt()(x, y, alpha=2)`."""

import inspect

from mindspore import _names, mint
from mindspore import ops as named
from mindspore.ops._primitive import Primitive
from muster import float32, ops

_OF_MINT = {
    "AddExt": "add",
    "Arange": "arange",
    "ArgMaxExt": "argmax",
    "ArgMinExt": "argmin",
    "BatchMatMulExt": "bmm",
    "Chunk": "chunk",
    "ClampScalar": "clamp",
    "ClampTensor": "clamp",
    "CumsumExt": "cumsum",
    "EqualExt": "equal",
    "FlattenExt": "flatten",
    "FmodScalar": "fmod",
    "FmodTensor": "fmod",
    "IndexSelect": "index_select",
    "MatMulExt": "matmul",
    "MaxDim": "max",
    "MeanExt": "mean",
    "MinDim": "min",
    "Muls": "mul",
    "Narrow": "narrow",
    "OnesLikeExt": "ones_like",
    "Outer": "outer",
    "ProdExt": "prod",
    "RepeatInterleaveInt": "repeat_interleave",
    "RepeatInterleaveTensor": "repeat_interleave",
    "SplitTensor": "split",
    "SplitWithSize": "split",
    "SubExt": "sub",
    "SumExt": "sum",
    "TopkExt": "topk",
    "TrilExt": "tril",
    "ZerosLikeExt": "zeros_like",
}


class _Ext(Primitive):
    """Inputs of these classes may be named."""

    def __call__(self, *inputs, **given):
        if given:
            bound = inspect.signature(self.compute).bind(*inputs, **given)
            bound.apply_defaults()
            inputs = bound.args
        return super().__call__(*inputs)


def _by_order(function):
    """The function; what it takes by name alone may be given by its place, too."""
    parameters = list(inspect.signature(function).parameters.values())
    places = sum(each.kind is not each.KEYWORD_ONLY for each in parameters)

    def call(*inputs):
        named_ones = zip((each.name for each in parameters[places:]), inputs[places:], strict=False)
        return function(*inputs[:places], **dict(named_ones))

    call.__doc__ = function.__doc__
    call.__signature__ = inspect.Signature(
        [each.replace(kind=each.POSITIONAL_OR_KEYWORD) for each in parameters]
    )
    return call


class Empty(_Ext):
    """A tensor whose elements nobody has set: zeros."""

    def compute(self, size, dtype=None, device=None, pin_memory=False):
        return ops.zeros((size,) if isinstance(size, int) else tuple(size), dtype or float32)


class StackExt(_Ext):
    """mint.stack."""

    def __init__(self, dim=0):
        super().__init__()
        self.dim = dim

    def compute(self, tensors):
        return mint.stack(tensors, self.dim)


class OneHotExt(_Ext):
    """ops.one_hot along `axis`."""

    def __init__(self, axis=-1):
        super().__init__()
        self.axis = axis

    def compute(self, tensor, num_classes, on_value, off_value):
        return named.one_hot(tensor, num_classes, on_value, off_value, self.axis)


class SortExt(_Ext):
    """mint.sort."""

    def compute(self, input, dim=-1, descending=False, stable=False):
        return mint.sort(input, dim=dim, descending=descending, stable=stable)


class SliceExt(_Ext):
    """input[start:end:step] along `dim`."""

    def compute(self, input, dim, start, end, step):
        return input[(slice(None),) * (dim % input.ndim) + (slice(start, end, step),)]


class Swiglu(_Ext):
    """The first half along `dim`, by silu, times the second."""

    def compute(self, input, dim=-1):
        gate, value = ops.split(input, input.shape[dim] // 2, dim)
        return ops.mul(ops.silu(gate), value)


def __getattr__(name: str):
    if name not in _OF_MINT:
        return _missing(name)
    function = _by_order(getattr(mint, _OF_MINT[name]))
    made = type(name, (_Ext,), {"compute": staticmethod(function), "__doc__": function.__doc__})
    globals()[name] = made
    return made


NAMES = frozenset((*_OF_MINT, "Empty", "OneHotExt", "SliceExt", "SortExt", "StackExt", "Swiglu"))
_missing = _names.missing(__name__)
