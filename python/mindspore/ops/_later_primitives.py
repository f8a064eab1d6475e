"""mindspore.ops: further functions as classes; each row says what its constructor takes."""

import muster
from mindspore import _names
from mindspore.ops import (
    _array,
    _boxes,
    _lapack,
    _later_activations,
    _lengths,
    _math,
    _matrices,
    _moves,
    _numbers,
    _places,
    _windows,
)
from mindspore.ops._primitive import of_row, without_settings
from muster import ops

_made = {}

# ---- Without settings --------------------------------------------------------------------------------------

_WITHOUT = {
    _numbers: {
        "AccumulateNV2": "accumulate_n",
        "Addcdiv": "addcdiv",
        "Addcmul": "addcmul",
        "Atan2": "atan2",
        "Conj": "positive",
        "DivNoNan": "div_no_nan",
        "Fmax": "fmax",
        "Fmin": "fmin",
        "Gcd": "gcd",
        "Heaviside": "heaviside",
        "Hypot": "hypot",
        "Igamma": "igamma",
        "Igammac": "igammac",
        "Inv": "inv",
        "Lcm": "lcm",
        "LeftShift": "bitwise_left_shift",
        "Lerp": "lerp",
        "LerpScalar": "lerp",
        "MulNoNan": "mul_no_nan",
        "NextAfter": "nextafter",
        "Polygamma": "polygamma",
        "Real": "real",
        "RightShift": "bitwise_right_shift",
        "Sinc": "sinc",
        "TruncateDiv": "truncate_div",
        "TruncateMod": "truncate_mod",
        "Xdivy": "xdivy",
        "Xlogy": "xlogy",
        "Zeta": "zeta",
    },
    _places: {
        "IndexFill": "index_fill",
        "InvertPermutation": "invert_permutation",
        "MaskedScatter": "masked_scatter",
        "MaskedSelect": "masked_select",
        "NonZero": "nonzero",
        "ScatterNd": "scatter_nd",
        "ScatterNonAliasingAdd": "scatter_nd_add",
        "SegmentMax": "segment_max",
        "SegmentMean": "segment_mean",
        "SegmentMin": "segment_min",
        "SegmentProd": "segment_prod",
        "SegmentSum": "segment_sum",
        "TensorScatterAdd": "tensor_scatter_add",
        "TensorScatterDiv": "tensor_scatter_div",
        "TensorScatterMax": "tensor_scatter_max",
        "TensorScatterMin": "tensor_scatter_min",
        "TensorScatterMul": "tensor_scatter_mul",
        "TensorScatterSub": "tensor_scatter_sub",
        "TensorScatterUpdate": "tensor_scatter_update",
        "Unique": "unique",
        "UniqueWithPad": "unique_with_pad",
        "UnravelIndex": "unravel_index",
        "UnsortedSegmentMax": "unsorted_segment_max",
        "UnsortedSegmentMin": "unsorted_segment_min",
        "UnsortedSegmentProd": "unsorted_segment_prod",
        "UnsortedSegmentSum": "unsorted_segment_sum",
        "EmbeddingLookup": "embedding_lookup",
    },
    _moves: {
        "Eps": "eps",
        "Fills": "fills",
        "PopulationCount": "population_count",
    },
    _matrices: {
        "Dense": "dense",
        "Diag": "diag",
        "DiagPart": "diag_part",
        "Ger": "outer",
        "MatrixBandPart": "matrix_band_part",
        "Trace": "trace",
    },
    _lapack: {"LogMatrixDeterminant": "slogdet", "MatrixDeterminant": "det", "MatrixExp": "matrix_exp"},
    _later_activations: {"FastGeLU": "fast_gelu", "FastGelu": "fast_gelu"},
    _boxes: {"CheckValid": "check_valid"},
    _array: {"MaskedFill": "masked_fill", "ScalarToArray": "scalar_to_tensor"},
}
for _module, _each in _WITHOUT.items():
    for _name, _function in _each.items():
        _made[_name] = without_settings(_name, getattr(_module, _function))

_made["FillV2"] = without_settings("FillV2", lambda shape, value: _filled(shape, value))
_made["StopGradient"] = without_settings("StopGradient", ops.stop_gradient)
_made["Rint"] = without_settings("Rint", ops.round)
_made["TensorShape"] = without_settings("TensorShape", lambda x: muster.Tensor(list(x.shape), muster.int64))


def _filled(shape, value):
    sizes = shape.asnumpy().tolist() if isinstance(shape, muster.Tensor) else shape
    return ops.broadcast_to(_numbers.tensor(value), tuple(sizes))


# ---- With settings -----------------------------------------------------------------------------------------


def _named(name, function, **settings):
    """`function` takes the inputs, then the settings by name."""
    _made[name] = of_row(name, settings, function)


def _locking(*names):
    """Classes whose setting use_locking has no meaning here."""
    for name, function in names:
        _named(name, lambda *inputs, use_locking=False, f=function: f(*inputs), use_locking=False)


def _refused(name, **arguments):
    _names.refuse(f"mindspore.ops.{name}", **arguments)


_locking(
    ("ScatterUpdate", _places.scatter_update),
    ("ScatterAdd", _places.scatter_add),
    ("ScatterSub", _places.scatter_sub),
    ("ScatterMul", _places.scatter_mul),
    ("ScatterDiv", _places.scatter_div),
    ("ScatterMax", _places.scatter_max),
    ("ScatterMin", _places.scatter_min),
    ("ScatterNdUpdate", _places.scatter_nd_update),
    ("ScatterNdAdd", _places.scatter_nd_add),
    ("ScatterNdSub", _places.scatter_nd_sub),
    ("ScatterNdMul", _places.scatter_nd_mul),
    ("ScatterNdDiv", _places.scatter_nd_div),
    ("ScatterNdMax", _places.scatter_nd_max),
    ("ScatterNdMin", _places.scatter_nd_min),
)
_named("TensorScatterElements", _places.tensor_scatter_elements, axis=0, reduction="none")
_named("ScatterAddWithAxis", _places.scatter_add_with_axis, axis=0)
_named(
    "IndexAdd",
    lambda x, indices, y, axis, use_lock, check_index_bound: _places.index_add(x, indices, y, axis),
    axis=...,
    use_lock=True,
    check_index_bound=True,
)
_named("InplaceIndexAdd", _places.inplace_index_add, axis=...)
_named("InplaceAdd", _places.inplace_add, indices=...)
_named("InplaceSub", _places.inplace_sub, indices=...)
_named("InplaceUpdate", _places.inplace_update, indices=...)
_made["InplaceUpdateV2"] = without_settings(
    "InplaceUpdateV2", lambda x, at, v: _places.inplace_update(x, v, at)
)
_named(
    "Median",
    lambda x, global_median, axis, keep_dims, ignore_nan: _median(x, global_median, axis, keep_dims),
    global_median=False,
    axis=0,
    keep_dims=False,
    ignore_nan=False,
)
_named(
    "Quantile",
    lambda x, q, dim, keep_dims, ignore_nan: _places._quantile(x, q, dim, keep_dims, ignore_nan),
    dim=None,
    keep_dims=False,
    ignore_nan=False,
)
_named("InTopK", _places.intopk, k=...)
_named("NthElement", lambda x, n, reverse: _nth_element(x, n, reverse), reverse=False)
_named(
    "SearchSorted",
    lambda sequence, values, dtype, right: ops.cast(
        _places.searchsorted(sequence, values, right=right), dtype
    ),
    dtype=muster.int64,
    right=False,
)
_named("LowerBound", lambda x, v, out_type: ops.cast(ops.searchsorted(x, v), out_type), out_type=muster.int32)
_named(
    "UpperBound",
    lambda x, v, out_type: ops.cast(ops.searchsorted(x, v, True), out_type),
    out_type=muster.int32,
)
_named("Bucketize", lambda x, boundaries: _places.bucketize(x, boundaries, right=True), boundaries=...)
_named("Histogram", lambda x, bins, min, max: _places.histc(x, bins, min, max), bins=100, min=0.0, max=0.0)
_named("ListDiff", lambda x, y, out_idx: _diff_of_lists(x, y, out_idx), out_idx=muster.int32)
_named(
    "UniqueConsecutive",
    lambda x, **k: _all_of_unique(x, **k),
    return_inverse=False,
    return_counts=False,
    dim=None,
)
_made["Bincount"] = without_settings("Bincount", lambda x, size, weights: _counted(x, size, weights))
_named("Cummax", lambda x, axis: _numbers.cummax(x, axis), axis=...)
_named("Cummin", lambda x, axis: _numbers.cummin(x, axis), axis=...)


def _median(x, global_median, axis, keep_dims):
    if global_median:
        return _places.median(ops.reshape(x, (-1,)), 0)
    return _places.median(x, axis, keep_dims)


def _nth_element(x, n, reverse):
    n = n.item() if isinstance(n, muster.Tensor) else n
    return ops.sort(x, -1, reverse)[0][..., n]


def _diff_of_lists(x, y, out_idx):
    values, places = _places.list_diff(x, y)
    return values, ops.cast(places, out_idx)


def _all_of_unique(x, return_inverse, return_counts, dim):
    import numpy

    values, inverse, counts = _places.unique_consecutive(x, True, True, dim)
    nothing = muster.Tensor(numpy.zeros(0, numpy.int32))
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


def _counted(x, size, weights):
    size = size.item() if isinstance(size, muster.Tensor) else size
    weights = weights if weights._size else ops.ones_like(x)
    return _places.unsorted_segment_sum(weights, x, size)


# Elements that move.
_named("Meshgrid", lambda inputs, indexing: _moves.meshgrid(*inputs, indexing=indexing), indexing="xy")
_named("DepthToSpace", _moves.depth_to_space, block_size=...)
_named("SpaceToDepth", _moves.space_to_depth, block_size=...)
_named(
    "BatchToSpace",
    lambda x, block_size, crops: _moves.batch_to_space_nd(x, block_size, crops),
    block_size=...,
    crops=...,
)
_named(
    "BatchToSpaceND",
    lambda x, block_shape, crops: _moves.batch_to_space_nd(x, block_shape, crops),
    block_shape=...,
    crops=...,
)
_named(
    "SpaceToBatch",
    lambda x, block_size, paddings: _moves.space_to_batch_nd(x, block_size, paddings),
    block_size=...,
    paddings=...,
)
_named(
    "SpaceToBatchND",
    lambda x, block_shape, paddings: _moves.space_to_batch_nd(x, block_shape, paddings),
    block_shape=...,
    paddings=...,
)
_named("ChannelShuffle", lambda x, group: _moves.channel_shuffle(x, group), group=...)
_named("Padding", _moves.padding, pad_dim_size=8)
_named("Roll", _moves.roll, shifts=..., dims=None)
_named("ReverseSequence", _lengths.reverse_sequence, seq_dim=..., batch_dim=0)
_named(
    "TrilIndices",
    lambda row, col, offset, dtype: _moves.tril_indices(row, col, offset, dtype=dtype),
    row=...,
    col=...,
    offset=0,
    dtype=muster.int32,
)
_named(
    "TriuIndices",
    lambda row, col, offset, dtype: _moves.triu_indices(row, col, offset, dtype=dtype),
    row=...,
    col=...,
    offset=0,
    dtype=muster.int32,
)
_named(
    "LogSpace",
    lambda start, end, steps, base, dtype: _moves.logspace(
        _numbers.scalar_number(start), _numbers.scalar_number(end), steps, base, dtype=dtype
    ),
    steps=10,
    base=10,
    dtype=muster.float32,
)
_named(
    "PadV3",
    lambda x, paddings, value=None, *, mode, paddings_contiguous: _padded(
        x, paddings, value, mode, paddings_contiguous
    ),
    mode="constant",
    paddings_contiguous=True,
)
_named("Pack", lambda *x, axis: ops.stack(x[0] if len(x) == 1 else x, axis), axis=0)
_named("Unpack", lambda x, axis: ops.unstack(x, axis), axis=0)
_named(
    "Im2Col",
    lambda x, ksizes, strides, dilations, pads: _windows.col_windows(x, ksizes, dilations, pads, strides),
    ksizes=...,
    strides=1,
    dilations=1,
    pads=0,
)
_named(
    "Col2Im",
    lambda x, output_size, kernel_size, dilation, padding, stride: _windows.col2im(
        x, output_size, kernel_size, dilation, padding, stride
    ),
    kernel_size=...,
    dilation=1,
    padding=0,
    stride=1,
)
_made["TensorToTuple"] = without_settings("TensorToTuple", lambda x: tuple(x.asnumpy().tolist()))
_made["IdentityN"] = without_settings("IdentityN", lambda x: tuple(x))
_made["SquareSumAll"] = without_settings(
    "SquareSumAll", lambda x, y: (ops.reduce_sum(ops.square(x)), ops.reduce_sum(ops.square(y)))
)
_named(
    "SplitV",
    lambda x, size_splits, split_dim, num_split: _cut(x, size_splits, split_dim),
    size_splits=...,
    split_dim=...,
    num_split=...,
)


def _cut(x, sizes, axis):
    known = sum(size for size in sizes if size >= 0)
    sizes = [x.shape[axis] - known if size < 0 else size for size in sizes]
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes) - 1)]
    return _moves.tensor_split(x, ends, axis)


def _padded(x, paddings, value, mode, contiguous):
    paddings = paddings.asnumpy().tolist() if isinstance(paddings, muster.Tensor) else list(paddings)
    if not contiguous:
        half = len(paddings) // 2
        paddings = [each for pair in zip(paddings[:half], paddings[half:], strict=True) for each in pair]
    if mode == "edge":
        mode = "replicate"
    if mode == "wrap":
        mode = "circular"
    value = value.item() if isinstance(value, muster.Tensor) else value
    return ops.pad(x, paddings, mode, value) if mode == "constant" else ops.pad(x, paddings, mode)


# Products, diagonals, LAPACK.
_named("Einsum", lambda operands, equation: _matrices.einsum(equation, *operands), equation=...)
_named("Cdist", _numbers.cdist, p=2.0)
_named("Pdist", _lapack.pdist, p=2.0)
_named("Cross", lambda a, b, dim: _matrices.cross(a, b, None if dim == -65530 else dim), dim=-65530)
_named(
    "LpNorm",
    lambda x, axis, p, keep_dims, epsilon: _numbers.lp_norm(x, axis, p, keep_dims, epsilon),
    axis=...,
    p=2,
    keep_dims=False,
    epsilon=1e-12,
)
_named(
    "EuclideanNorm",
    lambda x, axes=None, *, keep_dims: _numbers.vector_norm(x, 2, _axes_of(axes), keep_dims),
    keep_dims=False,
)
_named("Renorm", lambda x, p, dim, maxnorm: _numbers.renorm(x, p, dim, maxnorm), p=..., dim=..., maxnorm=...)
_named(
    "MatrixInverse",
    lambda x, adjoint: _lapack.inverse(ops.swapaxes(x, -1, -2) if adjoint else x),
    adjoint=False,
)
_named("MatrixPower", lambda x, n: _lapack.matrix_power(x, n), n=...)
_named("MatrixSolve", lambda a, b, adjoint: _lapack.matrix_solve(a, b, adjoint), adjoint=False)
_named(
    "MatrixTriangularSolve",
    lambda a, b, lower, adjoint: _lapack.matrix_triangular_solve(a, b, lower, adjoint),
    lower=True,
    adjoint=False,
)
_named("MatrixDiagV3", lambda *x, align: _matrices.matrix_diag(*x, align=align), align="RIGHT_LEFT")
_named("MatrixDiagPartV3", lambda *x, align: _matrices.matrix_diag_part(*x, align=align), align="RIGHT_LEFT")
_named("MatrixSetDiagV3", lambda *x, align: _matrices.matrix_set_diag(*x, align=align), align="RIGHT_LEFT")
_named("Cholesky", _lapack.cholesky, upper=False)
_named("CholeskyInverse", _lapack.cholesky_inverse, upper=False)
_named("CholeskySolve", lambda a, b, upper: _lapack.cholesky_solve(a, b, upper), upper=False)
_named(
    "Qr",
    lambda x, full_matrices: _lapack.qr(x, "complete" if full_matrices else "reduced"),
    full_matrices=False,
)
_named(
    "Svd",
    lambda x, full_matrices, compute_uv: _svd(x, full_matrices, compute_uv),
    full_matrices=False,
    compute_uv=True,
)
_named("NuclearNorm", _lapack.nuclear_norm, dim=None, keepdim=False)


def _svd(x, full_matrices, compute_uv):
    made = _lapack.svd(x, full_matrices, compute_uv)
    return made if compute_uv else (made, ops.zeros((1,)), ops.zeros((1,)))


def _axes_of(axes):
    if isinstance(axes, muster.Tensor):
        axes = axes.asnumpy().reshape(-1).tolist()
    return None if axes is None or axes == [] else axes if isinstance(axes, int) else tuple(axes)


# Numbers.
_named("ApproximateEqual", _numbers.approximate_equal, tolerance=1e-5)
_named("CeLU", _math.celu, alpha=1.0)
_named("CountNonZero", lambda x, dims: _numbers.count_nonzero(x, dims), dims=None)
_named("GLU", _later_activations.glu, axis=-1)
_named("HShrink", _later_activations.hardshrink, lambd=0.5)
_named("SoftShrink", _later_activations.softshrink, lambd=0.5)
_named("IsClose", _numbers.isclose, rtol=1e-5, atol=1e-8, equal_nan=False)
_named("Logit", _numbers.logit, eps=-1.0)
_named("Mvlgamma", _numbers.mvlgamma, p=...)
_named("NanToNum", _numbers.nan_to_num, nan=None, posinf=None, neginf=None)
_named(
    "ReduceStd",
    lambda x, axis, unbiased, keep_dims: _numbers.reduce_std(x, axis or (), unbiased, keep_dims),
    axis=(),
    unbiased=True,
    keep_dims=False,
)
_named("LRN", _windows.lrn, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS")


# Other names of the same classes.
def _existing(name):
    from mindspore.ops import operations

    return _made.get(name) or vars(operations)[name]


for _new, _old in (
    ("TensorAdd", "Add"),
    ("Gelu", "GeLU"),
    ("GatherV2", "Gather"),
    ("TransposeView", "Transpose"),
    ("Expand", "BroadcastTo"),
):
    _made[_new] = type(_new, (_existing(_old),), {"__doc__": _existing(_old).__doc__})
_made["Expand"] = without_settings("Expand", _moves.expand)

globals().update(_made)
__all__ = sorted(_made)
