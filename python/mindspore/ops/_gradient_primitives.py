"""mindspore.ops.operations._grad_ops: gradients of ops as classes, made of the ops' own gradients.

Where a class is called with the input of its op, the gradient is that of the op (`_pulled`); where with the
output, or where MindSpore's kernel has a formula of its own, the formula stands here.
"""

import math

import muster
from mindspore import _names, ops
from mindspore.ops import operations
from mindspore.ops._primitive import CONVOLUTION, of_row, sizes_of, without_settings


def _pulled(function, inputs, flow, wrt=0):
    """The gradients of `function` at `inputs` for the gradient `flow` of its (first) result."""

    def weighed(*given):
        made = function(*given)
        made = made[0] if isinstance(made, tuple) else made
        return ops.reduce_sum(ops.mul(made, flow))

    return muster.value_and_grad(weighed, wrt)(*inputs)[1]


def _zeros(shape, like):
    return ops.zeros(sizes_of(shape), like.dtype)


# ---- Of the output -----------------------------------------------------------------------------------------


def _selu_grad(dy, y):
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return ops.where(ops.greater(y, 0), dy * scale, dy * (y + scale * alpha))


def _log_softmax_grad(y, dy, axis):
    return dy - ops.exp(y) * ops.reduce_sum(dy, axis, keep_dims=True)


_OF_OUTPUT = {
    "AcoshGrad": lambda y, dy: dy / ops.sinh(y),
    "AsinhGrad": lambda y, dy: dy / ops.cosh(y),
    "InvGrad": lambda y, dy: -dy * y * y,
    "ReciprocalGrad": lambda y, dy: -dy * y * y,
    "RsqrtGrad": lambda y, dy: dy * y * y * y * -0.5,
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SqrtGrad": lambda y, dy: dy / y * 0.5,
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "SoftmaxGrad": lambda y, dy: y * (dy - ops.reduce_sum(y * dy, -1, keep_dims=True)),
    "EluGrad": lambda dy, y: ops.where(ops.greater(y, 0), dy, dy * (y + 1)),
    "ReluGrad": lambda dy, y: ops.where(ops.greater(y, 0), dy, ops.zeros_like(dy)),
    "SeluGrad": _selu_grad,
}

# ---- Of the input ------------------------------------------------------------------------------------------

_OF_INPUT_THEN_FLOW = {
    "ACosGrad": ops.acos,
    "AsinGrad": ops.asin,
    "AtanGrad": ops.atan,
}
_OF_FLOW_THEN_INPUT = {
    "FastGeLUGrad": ops.fast_gelu,
    "HSigmoidGrad": ops.hardsigmoid,
    "HSwishGrad": ops.hardswish,
    "ReLU6Grad": ops.relu6,
    "SiLUGrad": ops.silu,
    "SoftplusGrad": ops.softplus,
}

_made = {name: without_settings(name, function) for name, function in _OF_OUTPUT.items()}
for _name, _function in _OF_INPUT_THEN_FLOW.items():
    _made[_name] = without_settings(_name, lambda x, dy, f=_function: _pulled(f, (x,), dy))
for _name, _function in _OF_FLOW_THEN_INPUT.items():
    _made[_name] = without_settings(_name, lambda dy, x, f=_function: _pulled(f, (x,), dy))


def _plain(name, function):
    _made[name] = without_settings(name, function)


def _named(name, function, **settings):
    """`function` takes the inputs, then the settings by name."""
    _made[name] = of_row(name, settings, function)


def _of_class(name, primitive, order, wrt=0, **settings):
    """The gradient of a class of the same settings: `order` says where the op's inputs and the flow stand."""

    def compute(*given, **chosen):
        *inputs, flow = (given[at] for at in order)
        return _pulled(getattr(operations, primitive)(**chosen), tuple(inputs), flow, wrt)

    _named(name, compute, **settings)


_plain("AbsGrad", lambda x, dy: dy * ops.sign(x))  # of whole numbers, too
_plain("GeLUGrad", lambda dy, x, y: _pulled(operations.GeLU(), (x,), dy))
_plain("PReLUGrad", lambda dy, x, w: _pulled(operations.PReLU(), (x, w), dy, (0, 1)))
_named("LogSoftmaxGrad", _log_softmax_grad, axis=-1)
_named("HShrinkGrad", lambda dy, x, lambd: _pulled(lambda t: ops.hardshrink(t, lambd), (x,), dy), lambd=0.5)
_named(
    "SoftShrinkGrad", lambda dy, x, lambd: _pulled(lambda t: ops.softshrink(t, lambd), (x,), dy), lambd=0.5
)
_named("GluGrad", lambda dy, x, axis: _pulled(lambda t: ops.glu(t, axis), (x,), dy), axis=...)
_of_class("LogitGrad", "Logit", (1, 0), eps=-1.0)
_of_class("MvlgammaGrad", "Mvlgamma", (1, 0), p=...)
_of_class("PdistGrad", "Pdist", (1, 0), p=2.0)
_of_class("L2NormalizeGrad", "L2Normalize", (0, 2), axis=0, epsilon=1e-4)
_of_class("LRNGrad", "LRN", (1, 0), depth_radius=5, bias=1.0, alpha=1.0, beta=0.5)
_named(
    "CdistGrad",
    lambda dy, x, y, made, p: _pulled(lambda t: ops.cdist(t, y, float(p)), (x,), dy),
    p=2.0,
)

# ---- Losses ------------------------------------------------------------------------------------------------

_of_class("KLDivLossGrad", "KLDivLoss", (1, 2, 0), reduction="mean")
_of_class("SmoothL1LossGrad", "SmoothL1Loss", (0, 1, 2), beta=1.0, reduction="none")
_of_class("SoftMarginLossGrad", "SoftMarginLoss", (0, 1, 2), reduction="mean")
_of_class("SigmoidCrossEntropyWithLogitsGrad", "SigmoidCrossEntropyWithLogits", (0, 1, 2))
_of_class("MultiMarginLossGrad", "MultiMarginLoss", (1, 2, 0), p=1, margin=1.0, reduction="mean")
_of_class("MultilabelMarginLossGrad", "MultilabelMarginLoss", (1, 2, 0), reduction="mean")


def _binary_cross_entropy_grad(x, y, dy, weight=None, *, reduction):
    weight = ops.ones_like(x) if weight is None else weight
    return _pulled(operations.BinaryCrossEntropy(reduction), (x, y, weight), dy)


def _nll_loss_grad(x, dy, labels, weight, total_weight, reduction, ignore_index):
    if reduction == "mean":  # by the weight that is given
        reduction, dy = "sum", dy / total_weight
    return _pulled(operations.NLLLoss(reduction, ignore_index), (x, labels, weight), dy)


_named("BinaryCrossEntropyGrad", _binary_cross_entropy_grad, reduction="mean")
_named("NLLLossGrad", _nll_loss_grad, reduction="mean", ignore_index=-100)

# ---- Pairs -------------------------------------------------------------------------------------------------


def _extreme_grad(wins):
    """Equal elements share the gradient, as in MindSpore."""

    def compute(x, y, dy, grad_x, grad_y):
        nothing = ops.zeros_like(dy)
        half = ops.where(ops.equal(x, y), ops.cast(dy / 2, dy.dtype), nothing)
        parts = ops.where(wins(x, y), dy, half), ops.where(wins(y, x), dy, half)
        return tuple(_summed_to(part, each) for part, each in zip(parts, (x, y), strict=True))

    return compute


def _summed_to(gradient, like):
    """The sum over the axes along which `like` was broadcast."""
    extra = gradient.ndim - like.ndim
    axes = tuple(
        at
        for at in range(gradient.ndim)
        if at < extra or (like.shape[at - extra] == 1 and gradient.shape[at] != 1)
    )
    return ops.reshape(ops.reduce_sum(gradient, axes) if axes else gradient, like.shape)


_named("MaximumGrad", _extreme_grad(ops.greater), grad_x=True, grad_y=True)
_named("MinimumGrad", _extreme_grad(ops.less), grad_x=True, grad_y=True)
_named(
    "MaximumGradGrad",
    lambda x, y, dx, dy, grad_x, grad_y: _second(ops.greater_equal(x, y), x, y, dx, dy),
    grad_x=True,
    grad_y=True,
)
_plain("MinimumGradGrad", lambda x, y, dx, dy: _second(ops.less_equal(x, y), x, y, dx, dy))


def _second(first, x, y, dx, dy):
    return ops.zeros_like(x), ops.zeros_like(y), ops.where(first, dx, dy)


# ---- Elements that moved -----------------------------------------------------------------------------------

_plain("FlattenGrad", lambda dy, shape: ops.reshape(dy, sizes_of(shape)))
_plain(
    "SliceGrad",
    lambda dy, x, begin, size: _pulled(lambda t: ops.slice(t, sizes_of(begin), sizes_of(size)), (x,), dy),
)
_plain("GatherDGradV2", lambda x, dim, at, dy: _pulled(lambda t: ops.gather_elements(t, dim, at), (x,), dy))
_plain("TraceGrad", lambda dy, shape: _pulled(ops.trace, (_zeros(shape, dy),), dy))
_plain("MaskedSelectGrad", lambda x, mask, dy: _masked_select_grad(x, mask, dy))
_plain("UniqueGrad", lambda dy, y: ops.gather(dy[0], y[1], 0))
_of_class("EinsumGrad", "Einsum", (0, 1), equation=...)


def _masked_select_grad(x, mask, dy):
    shape = ops.broadcast_to(mask, ops.add(x, ops.cast(mask, x.dtype)).shape)
    places = ops.nonzero(ops.reshape(shape, (-1,)))
    flat = ops.tensor_scatter_update(ops.zeros((shape.size,), dy.dtype), places, dy)
    return _summed_to(ops.reshape(flat, shape.shape), x)


def _strided_slice_grad(dy, shape, begin, end, strides, **masks):
    taken = operations.StridedSlice(**masks)
    return _pulled(
        lambda t: taken(t, sizes_of(begin), sizes_of(end), sizes_of(strides)), (_zeros(shape, dy),), dy
    )


_named(
    "StridedSliceGrad",
    _strided_slice_grad,
    begin_mask=0,
    end_mask=0,
    ellipsis_mask=0,
    new_axis_mask=0,
    shrink_axis_mask=0,
)


def _mirror_pad_grad(dy, paddings, mode):
    pairs = paddings.asnumpy().tolist() if isinstance(paddings, muster.Tensor) else paddings
    sizes = [size - before - after for size, (before, after) in zip(dy.shape, pairs, strict=True)]
    return _pulled(lambda t: operations.MirrorPad(mode)(t, paddings), (_zeros(sizes, dy),), dy)


_named("MirrorPadGrad", _mirror_pad_grad, mode="REFLECT")


def _concat_offset(inputs, N, axis):  # noqa: N803 - MindSpore's name
    rank = inputs[0].ndim
    at, rows = 0, []
    for each in inputs:
        rows.append([at if place == axis % rank else 0 for place in range(rank)])
        at += each.shape[axis]
    return muster.Tensor(rows, muster.int64)


_named("ConcatOffset", _concat_offset, N=2, axis=0)

# ---- Windows -----------------------------------------------------------------------------------------------

_POOL = {"kernel_size": 1, "strides": 1, "pad_mode": "VALID", "data_format": "NCHW"}
_of_class("AvgPoolGrad", "AvgPool", (0, 2), **_POOL)
_of_class("MaxPoolGrad", "MaxPool", (0, 2), **_POOL)
_of_class("MaxPoolGradV1", "MaxPool", (0, 2), **_POOL)


def _volume(sizes):
    """MindSpore's gradients of volumes take five sizes, of which the last three count."""
    return tuple(sizes)[-3:] if isinstance(sizes, (tuple, list)) else sizes


def _max_pool3d_grad(x, y, dy, kernel_size, strides, pad_mode, pad_list, data_format):
    made = operations.MaxPool3D(
        kernel_size=_volume(kernel_size),
        strides=_volume(strides),
        pad_mode=pad_mode,
        pad_list=pad_list,
        data_format=data_format,
    )
    return _pulled(made, (x,), dy)


_ONES = (1, 1, 1, 1, 1)
_named(
    "MaxPool3DGrad",
    _max_pool3d_grad,
    kernel_size=_ONES,
    strides=_ONES,
    pad_mode="VALID",
    pad_list=0,
    data_format="NCDHW",
)


def _avg_pool3d_grad(shape, dy, pads, **settings):
    settings["kernel_size"] = _volume(settings["kernel_size"])
    settings["strides"] = _volume(settings["strides"])
    made = operations.AvgPool3D(pad=pads, **settings)
    return _pulled(made, (_zeros(shape, dy),), dy)


_named(
    "AvgPool3DGrad",
    _avg_pool3d_grad,
    kernel_size=1,
    strides=1,
    pads=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=0,
    data_format="NCDHW",
    pad_mode="pad",
)
_plain(
    "AdaptiveAvgPool2DGrad",
    lambda dy, shape: _pulled(operations.AdaptiveAvgPool2D(dy.shape[-2:]), (_zeros(shape, dy),), dy),
)
_plain(
    "AdaptiveAvgPool3DGrad",
    lambda dy, shape: _pulled(operations.AdaptiveAvgPool3D(dy.shape[-3:]), (_zeros(shape, dy),), dy),
)


def _to_places(dy, x, at, axes):
    """The gradients at the places `at` of the last `axes` axes, counted over all of them."""
    lead = x.shape[: x.ndim - axes]
    flat = ops.zeros((math.prod(lead), math.prod(x.shape[x.ndim - axes :])), dy.dtype)
    rows = (flat.shape[0], -1)
    added = ops.tensor_scatter_elements(flat, ops.reshape(at, rows), ops.reshape(dy, rows), 1, "add")
    return ops.reshape(added, x.shape)


_plain("AdaptiveMaxPool2DGrad", lambda dy, x, at: _to_places(dy, x, at, 2))
_plain("AdaptiveMaxPool3DGrad", lambda dy, x, at: _to_places(dy, x, at, 3))
_named(
    "MaxPoolGradWithArgmaxV2",
    lambda x, dy, at, **settings: _to_places(dy, x, at, 2),
    kernel_size=...,
    strides=None,
    pads=0,
    dilation=(1, 1),
    ceil_mode=False,
    argmax_type=muster.int64,
)
_named(
    "MaxPool3DGradWithArgmax",
    lambda x, dy, at, **settings: _to_places(dy, x, at, 3),
    ksize=...,
    strides=...,
    pads=...,
    dilation=(1, 1, 1),
    ceil_mode=False,
    data_format="NCDHW",
)


def _convolution(settings, out_channel):
    """The op whose gradient it is: strides and dilations may have four sizes there."""

    def pair(value):
        return tuple(value)[-2:] if isinstance(value, (tuple, list)) else value

    _names.refuse("mindspore.ops.Conv2D", mode=(settings["mode"], 1))
    return operations.Conv2D(
        out_channel,
        settings["kernel_size"],
        pad_mode=settings["pad_mode"],
        pad=settings["pad"],
        stride=pair(settings["stride"]),
        dilation=pair(settings["dilation"]),
        group=settings["group"],
        data_format=settings["data_format"],
    )


def _conv2d_filter_grad(dy, x, sizes, out_channel, **settings):
    op = _convolution(settings, out_channel)
    return _pulled(lambda w: op(x, w), (_zeros(sizes, dy),), dy)


def conv2d_input_grad(dy, w, sizes, out_channel, **settings):
    op = _convolution(settings, w.shape[0])
    return _pulled(lambda x: op(x, w), (_zeros(sizes, dy),), dy)


_named("Conv2DBackpropFilter", _conv2d_filter_grad, out_channel=..., kernel_size=..., **CONVOLUTION)
_named(
    "BiasAddGrad",
    lambda dy, data_format: ops.reduce_sum(
        dy, tuple(at for at in range(dy.ndim) if at != (dy.ndim - 1 if data_format == "NHWC" else 1))
    ),
    data_format="NCHW",
)

# ---- Sizes of images ---------------------------------------------------------------------------------------


def _resize_grad(primitive):
    def compute(dy, to, align_corners, half_pixel_centers=False):
        size = to.shape[-2:] if isinstance(to, muster.Tensor) and to.ndim == 4 else sizes_of(to)
        x = _zeros((*dy.shape[:2], *size), dy)
        op = getattr(operations, primitive)
        if primitive == "ResizeNearestNeighbor":
            return _pulled(op(dy.shape[-2:], align_corners, half_pixel_centers), (x,), dy)
        return _pulled(lambda t: op(align_corners, half_pixel_centers)(t, dy.shape[-2:]), (x,), dy)

    return compute


for _name, _primitive in (
    ("ResizeBilinearGrad", "ResizeBilinearV2"),
    ("ResizeBicubicGrad", "ResizeBicubic"),
    ("ResizeNearestNeighborGrad", "ResizeNearestNeighbor"),
    ("ResizeNearestNeighborV2Grad", "ResizeNearestNeighborV2"),
):
    _named(_name, _resize_grad(_primitive), align_corners=False, half_pixel_centers=False)
for _name, _primitive in (("GridSampler2DGrad", "GridSampler2D"), ("GridSampler3DGrad", "GridSampler3D")):
    _named(
        _name,
        lambda dy, x, grid, output_mask, f=_primitive, **settings: _pulled(
            getattr(operations, f)(**settings), (x, grid), dy, (0, 1)
        ),
        interpolation_mode="bilinear",
        padding_mode="zeros",
        align_corners=False,
        output_mask=(1, 1),
    )
_named(
    "AffineGridGrad",
    lambda dy, sizes, align_corners: _pulled(
        lambda theta: operations.AffineGrid(align_corners)(theta, sizes_of(sizes)),
        (ops.zeros((dy.shape[0], dy.ndim - 2, dy.ndim - 1), dy.dtype),),
        dy,
    ),
    align_corners=False,
)
_named(
    "ROIAlignGrad",
    lambda dy, rois, shape, pooled_height, pooled_width, spatial_scale, sample_num: _pulled(
        lambda x: operations.ROIAlign(pooled_height, pooled_width, spatial_scale, sample_num)(x, rois),
        (_zeros(shape, dy),),
        dy,
    ),
    pooled_height=...,
    pooled_width=...,
    spatial_scale=...,
    sample_num=2,
)

# ---- Normalizations ----------------------------------------------------------------------------------------


def _normalized_grad(dy, x, gamma, mean, scale, axes):
    """Of (x - mean) * scale * gamma over `axes`, both taken of x: of x alone."""
    flow, near = dy * gamma, (x - mean) * scale
    means = [ops.reduce_mean(each, axes, keep_dims=True) for each in (flow, flow * near)]
    return scale * (flow - means[0] - near * means[1])


def _layer_norm_grad(x, dy, variance, mean, gamma, begin_norm_axis, begin_params_axis):
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))
    lead = tuple(range(begin_params_axis % x.ndim))
    scale = ops.rsqrt(variance + 1e-12)
    shape = gamma.shape
    dx = _normalized_grad(dy, x, gamma, mean, scale, axes)
    near = (x - mean) * scale  # its mean is 0, unless another `mean` than that of x was given
    slope = ops.reduce_mean(dy * gamma * near, axes, keep_dims=True)
    dx = dx + scale * slope * ops.reduce_mean(near, axes, keep_dims=True)
    d_gamma = ops.reduce_sum(dy * (x - mean) * scale, lead)
    return dx, ops.reshape(d_gamma, shape), ops.reshape(ops.reduce_sum(dy, lead), shape)


_named("LayerNormGrad", _layer_norm_grad, begin_norm_axis=1, begin_params_axis=1)


def _batch_norm_grad(dy, x, scale, mean, variance, reserve, is_training, epsilon, data_format):
    channel = x.ndim - 1 if data_format == "NHWC" else 1
    axes = tuple(at for at in range(x.ndim) if at != channel)
    wide = [1] * x.ndim
    wide[channel] = -1
    mean, inverse, gamma = (ops.reshape(each, wide) for each in (mean, ops.rsqrt(variance + epsilon), scale))
    near = (x - mean) * inverse
    dx = _normalized_grad(dy, x, gamma, mean, inverse, axes) if is_training else dy * gamma * inverse
    return dx, ops.reduce_sum(dy * near, axes), ops.reduce_sum(dy, axes)


_named("BatchNormGrad", _batch_norm_grad, is_training=False, epsilon=1e-5, data_format="NCHW")
_named("DropoutGrad", lambda dy, mask, keep_prob: dy * ops.cast(mask, dy.dtype) / keep_prob, keep_prob=0.5)


def _cholesky_grad(factor, dy):
    """Symmetric. Source: Murray, Differentiation of the Cholesky decomposition, 2016."""
    inverse = ops.inverse(factor)
    turned = ops.swapaxes(inverse, -1, -2)
    lower = ops.tril(ops.matmul(ops.swapaxes(factor, -1, -2), dy))
    middle = ops.tril(lower, -1) + lower * ops.eye(factor.shape[-1], dtype=lower.dtype) * 0.5
    whole = ops.matmul(ops.matmul(turned, middle), inverse)
    return (whole + ops.swapaxes(whole, -1, -2)) * 0.5


_plain("CholeskyGrad", _cholesky_grad)

globals().update(_made)
_PATH = "mindspore.ops.operations._grad_ops"
_missing = _names.missing(_PATH)


def _shown():
    from mindspore import _refused
    from mindspore.ops import _further_gradients

    base = ("Primitive", "PrimitiveWithInfer", "prim_attr_register")
    return sorted({*_made, *_further_gradients.__all__, *_refused.ops_below(_PATH), *base})


def __getattr__(name):
    if name == "__all__":
        return _shown()
    from mindspore.ops import _further_gradients, primitive  # the first takes functions of this module

    if name in _further_gradients.__all__:
        return getattr(_further_gradients, name)
    return getattr(primitive, name) if name in primitive.__all__ else _missing(name)
