"""Primitives that mint and the methods of tensors make in files, by functions of theirs here."""

from mindspore import mint, ops
from mindspore.train._mindir._operators import _CHOICES, dtype_of

_functional = mint.nn.functional


def _reduced(function):
    """Of a reduction over all axes, or some: (x, axes, keepdim, dtype)."""

    def reduce(x, dim=None, keepdim=False, dtype=None):
        settings = {} if dtype is None else {"dtype": dtype_of(dtype)}
        return function(x, **settings) if dim is None else function(x, dim, keepdim, **settings)

    return reduce


def _spread(function):
    """Of a deviation: (x, axes, correction, keepdim)."""
    return lambda x, dim, correction, keepdim: function(x, dim, correction=correction, keepdim=keepdim)


def _divided(x, y, mode=None):
    return mint.div(x, y, rounding_mode=_CHOICES["rounding_mode"].get(mode, mode))


def _argument(function):
    return lambda x, dim=None, keepdim=False: function(x) if dim is None else function(x, dim, keepdim)


def _normalized_layer(x, shape, weight, bias, eps):
    return (_functional.layer_norm(x, tuple(shape), weight, bias, eps),)


def _normalized_groups(x, groups, weight, bias, eps):
    return (_functional.group_norm(x, groups, weight, bias, eps),)


def _embedded(indices, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale=False):
    return _functional.embedding(indices, weight, padding_idx, max_norm, norm_type, scale)


def _searched(sequence, values, sorter, dtype, right):
    if sorter is not None:
        raise NotImplementedError("SearchSorted: sorter is not provided: sort the sequence before")
    return ops.SearchSorted(dtype_of(dtype), right)(sequence, values)


def _lost(function):
    return lambda x, target, reduction: function(x, target, _CHOICES["reduction"].get(reduction, reduction))


FUNCTIONS = {
    "Abs": mint.abs,
    "AddExt": lambda x, y, alpha: mint.add(x, y, alpha=alpha),
    "AddScalar": lambda x, y, alpha: mint.add(x, y, alpha=alpha),
    "SubExt": lambda x, y, alpha: mint.sub(x, y, alpha=alpha),
    "SubScalar": lambda x, y, alpha: mint.sub(x, y, alpha=alpha),
    "Muls": lambda x, y: x * y,
    "Divs": lambda x, y: x / y,
    "DivMod": _divided,
    "DivMods": _divided,
    "FloorDivScalar": lambda x, y: mint.floor_divide(x, y),
    "PowTensorScalar": mint.pow,
    "PowScalarTensor": mint.pow,
    "RemainderTensorScalar": mint.remainder,
    "RemainderTensorTensor": mint.remainder,
    "RemainderScalarTensor": mint.remainder,
    "GreaterEqualScalar": mint.greater_equal,
    "BitwiseAndTensor": mint.bitwise_and,
    "BitwiseOrTensor": mint.bitwise_or,
    "BitwiseNot": mint.bitwise_not,
    "ArgMaxExt": _argument(mint.argmax),
    "ArgMinExt": _argument(mint.argmin),
    "Max": mint.max,
    "Min": mint.min,
    "MaxDim": mint.max,
    "MinDim": mint.min,
    "SumExt": _reduced(mint.sum),
    "MeanExt": _reduced(mint.mean),
    "ProdExt": _reduced(mint.prod),
    "Std": _spread(mint.std),
    "Var": _spread(mint.var),
    "LogSumExp": mint.logsumexp,
    "CountNonZero": lambda x, dim=None: mint.count_nonzero(x, dim),
    "Round": lambda x, decimals=0: ops.round(x, decimals=decimals) if decimals else ops.round(x),
    "SearchSorted": _searched,
    "Cast": lambda x, dtype: ops.cast(x, dtype_of(dtype)),
    "Diagonal": ops.diagonal,
    "FFTShift": ops.fftshift,
    "IFFTShift": ops.ifftshift,
    "CumsumExt": lambda x, dim, dtype: mint.cumsum(x, dim, dtype=dtype_of(dtype)),
    "MatMulExt": mint.matmul,
    "BatchMatMulExt": mint.bmm,
    "Mm": mint.mm,
    "Mv": mint.mv,
    "Dot": mint.dot,
    "Outer": mint.outer,
    "Addmm": lambda x, a, b, beta, alpha: mint.addmm(x, a, b, beta=beta, alpha=alpha),
    "Baddbmm": lambda x, a, b, beta, alpha: mint.baddbmm(x, a, b, beta=beta, alpha=alpha),
    "Chunk": mint.chunk,
    "ClampScalar": mint.clamp,
    "ClampTensor": mint.clamp,
    "FlattenExt": mint.flatten,
    "SplitTensor": mint.split,
    "SplitWithSize": mint.split,
    "Narrow": mint.narrow,
    "IndexSelect": mint.index_select,
    "StackExt": mint.stack,
    "SortExt": lambda x, dim, descending, stable: mint.sort(x, dim=dim, descending=descending, stable=stable),
    "TopkExt": mint.topk,
    "TrilExt": mint.tril,
    "Triu": mint.triu,
    "Log2": mint.log2,
    "Log10": mint.log10,
    "Exp2": mint.exp2,
    "Frac": mint.frac,
    "ZerosLikeExt": lambda x, dtype: mint.zeros_like(x, dtype=dtype_of(dtype)),
    "OnesLikeExt": lambda x, dtype: mint.ones_like(x, dtype=dtype_of(dtype)),
    "FullLike": lambda x, value, dtype: mint.full_like(x, value, dtype=dtype_of(dtype)),
    "GeluExt": lambda x, approximate: _functional.gelu(
        x, approximate=_CHOICES["approximate"].get(approximate, approximate)
    ),
    "LayerNormExt": _normalized_layer,
    "GroupNorm": _normalized_groups,
    "Embedding": _embedded,
    "EluExt": _functional.elu,
    "LeakyReLUExt": _functional.leaky_relu,
    "SoftplusExt": ops.softplus,
    "LogSoftmaxExt": lambda x, dim, dtype: _functional.log_softmax(x, dim, dtype=dtype_of(dtype)),
    "MSELossExt": _lost(_functional.mse_loss),
    "L1LossExt": _lost(_functional.l1_loss),
}
