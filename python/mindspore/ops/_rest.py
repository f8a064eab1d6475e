"""mindspore.ops: what is used seldom: colours, histograms, normalization in groups, attention's helpers."""

import functools
import math

import muster
from mindspore.ops import _lengths, _matrices, _places, _random
from mindspore.ops._primitive import Primitive, class_keeper
from muster import ops

_made = {}
_class = class_keeper(_made)


# ---- Normalization -----------------------------------------------------------------------------------------


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """(N, C, ...) with mean 0 and variance 1 in each of num_groups groups of channels."""
    batch, channels = input.shape[:2]
    if channels % num_groups:
        raise ValueError(f"group_norm: {channels} channels are no multiple of {num_groups} groups")
    flat = ops.reshape(input, (batch, num_groups, -1))
    away = ops.sub(flat, ops.reduce_mean(flat, 2, True))
    size = ops.rsqrt(ops.add(ops.reduce_mean(ops.square(away), 2, True), eps))
    made = ops.reshape(ops.mul(away, size), input.shape)
    each = (1, channels) + (1,) * (input.ndim - 2)
    made = made if weight is None else ops.mul(made, ops.reshape(weight, each))
    return made if bias is None else ops.add(made, ops.reshape(bias, each))


def add_rms_norm(x1, x2, gamma, epsilon=1e-6):
    """(y, 1 / root mean square, x1 + x2): the sum over its root mean square, times gamma."""
    total = ops.add(x1, x2)
    return (*ops.rms_norm(total, gamma, epsilon), total)


def rotary_position_embedding(x, cos, sin, mode=0):
    """x turned by the angles: mode 0 pairs the halves of the last axis, 1 its neighbours."""
    if mode == 0:
        a, b = ops.split(x, x.shape[-1] // 2, x.ndim - 1)
        turned = ops.concat([ops.neg(b), a], x.ndim - 1)
    else:
        pairs = ops.reshape(x, (*x.shape[:-1], -1, 2))
        turned = ops.reshape(ops.stack([ops.neg(pairs[..., 1]), pairs[..., 0]], -1), x.shape)
    return ops.add(ops.mul(x, cos), ops.mul(turned, sin))


# ---- Counting ----------------------------------------------------------------------------------------------


@_class("ConfusionMatrix", num_classes=..., dtype="int32")
def _confusion(labels, predictions, weights=None, *, num_classes, dtype):
    """How often each class (row) was taken for each (column)."""
    flat = ops.add(ops.mul(ops.cast(labels, muster.int32), num_classes), ops.cast(predictions, muster.int32))
    ones = (
        ops.ones_like(ops.cast(flat, muster.float32))
        if weights is None
        else ops.cast(weights, muster.float32)
    )
    counts = _places.unsorted_segment_sum(ones, flat, num_classes * num_classes)
    return ops.cast(ops.reshape(counts, (num_classes, num_classes)), dtype)


@_class("HistogramFixedWidth", nbins=..., dtype="int32")
def _fixed_width(x, range, nbins, dtype):
    """How many elements lie in each of nbins equal parts of the range, those outside in the outer ones."""
    low, high = range[0], range[1]
    part = ops.div(ops.mul(ops.sub(x, low), float(nbins)), ops.sub(high, low))
    at = ops.cast(ops.clip(ops.floor(part), 0.0, nbins - 1.0), muster.int32)
    ones = ops.ones_like(ops.reshape(at, (-1,)))
    return ops.cast(_places.unsorted_segment_sum(ones, ops.reshape(at, (-1,)), nbins), dtype)


def sparse_segment_mean(x, indices, segment_ids):
    """The means of the rows at the indices, by segments; the ids are sorted."""
    return _places.segment_mean(ops.gather(x, indices, 0), segment_ids)


@_class("EditDistance", normalize=True)
def _edit_distance(h_indices, h_values, h_shape, t_indices, t_values, t_shape, normalize):
    """Levenshtein's distances of sequences in sparse form."""

    def sequences(indices, values, shape):
        found = {}
        for place, value in zip(indices.asnumpy().tolist(), values.asnumpy().tolist(), strict=True):
            found.setdefault(tuple(place[:-1]), []).append(value)
        return found, shape.asnumpy().tolist()[:-1]

    import numpy

    first, sizes = sequences(h_indices, h_values, h_shape)
    second, others = sequences(t_indices, t_values, t_shape)
    made = numpy.zeros([max(a, b) for a, b in zip(sizes, others, strict=True)], numpy.float32)
    for place in numpy.ndindex(*made.shape):
        truth = second.get(place, [])
        distance = _lengths.edit_distance(first.get(place, []), truth)
        made[place] = distance / len(truth) if normalize and truth else distance
        if normalize and not truth and distance:
            made[place] = math.inf
    return muster.Tensor(made)


# ---- Colours -----------------------------------------------------------------------------------------------


@_class("RGBToHSV")
def rgb_to_hsv(images):
    """Hue, saturation and value of the last axis, all from 0 to 1."""
    r, g, b = (images[..., at] for at in range(3))
    top, low = ops.reduce_max(images, -1), ops.reduce_min(images, -1)
    span, zero = ops.sub(top, low), ops.zeros_like(top)
    safe = ops.select(ops.greater(span, 0.0), span, ops.ones_like(span))
    red = ops.div(ops.sub(g, b), safe)
    green = ops.add(ops.div(ops.sub(b, r), safe), 2.0)
    blue = ops.add(ops.div(ops.sub(r, g), safe), 4.0)
    hue = ops.select(ops.equal(top, r), red, ops.select(ops.equal(top, g), green, blue))
    hue = ops.div(ops.select(ops.less(hue, 0.0), ops.add(hue, 6.0), hue), 6.0)
    hue = ops.select(ops.greater(span, 0.0), hue, zero)
    full = ops.select(ops.greater(top, 0.0), top, ops.ones_like(top))
    return ops.stack([hue, ops.select(ops.greater(top, 0.0), ops.div(span, full), zero), top], -1)


@_class("HSVToRGB")
def hsv_to_rgb(x):
    """Red, green and blue of hue, saturation and value (the last axis)."""
    hue, saturation, value = (x[..., at] for at in range(3))
    parts = []
    for turn in (5.0, 3.0, 1.0):
        k = ops.mod(ops.add(ops.mul(hue, 6.0), turn), 6.0)
        away = ops.clip(ops.minimum(k, ops.sub(4.0, k)), 0.0, 1.0)
        parts.append(ops.sub(value, ops.mul(ops.mul(value, saturation), away)))
    return ops.stack(parts, -1)


def _in_float32(adjust):
    """The function of an image and a number, computed in float32 and given in the image's dtype."""

    @functools.wraps(adjust)
    def call(image, number):
        wide = (ops.cast(each, muster.float32) for each in (image, number))
        return ops.cast(adjust(*wide), image.dtype)

    return call


@_class("AdjustHue")
@_in_float32
def adjust_hue(image, delta):
    """The image with the hue turned by delta."""
    hsv = rgb_to_hsv(image)
    hue = ops.mod(ops.add(hsv[..., 0], delta), 1.0)
    return hsv_to_rgb(ops.stack([hue, hsv[..., 1], hsv[..., 2]], -1))


@_class("AdjustContrastv2")
@_in_float32
def adjust_contrast(images, contrast_factor):
    """The distance of each number from the mean of its channel (..., H, W, C) times the factor."""
    mean = ops.reduce_mean(images, (-3, -2), keep_dims=True)
    return ops.add(ops.mul(ops.sub(images, mean), contrast_factor), mean)


@_class("AdjustSaturation")
@_in_float32
def adjust_saturation(image, scale):
    """The image with the saturation times `scale`."""
    hsv = rgb_to_hsv(image)
    return hsv_to_rgb(
        ops.stack([hsv[..., 0], ops.clip(ops.mul(hsv[..., 1], scale), 0.0, 1.0), hsv[..., 2]], -1)
    )


# ---- Elements ----------------------------------------------------------------------------------------------


@_class("FillDiagonal", fill_value=..., wrap=False)
def _fill_diagonal(x, fill_value, wrap):
    """x with a number on the diagonal; `wrap` goes on below a square."""
    step = sum(math.prod(x.shape[at + 1 :]) for at in range(x.ndim))
    end = x._size if wrap or x.ndim > 2 else min(x._size, x.shape[1] * x.shape[1])
    places = muster.Tensor([[at] for at in range(0, end, step)], muster.int32)
    flat = ops.reshape(x, (-1,))
    values = ops.full((places.shape[0],), fill_value, dtype=x.dtype)
    return ops.reshape(ops.scatter_nd_update(flat, places, values, "update"), x.shape)


@_class("ConjugateTranspose")
def _conjugate_transpose(x, perm):
    """The axes in another order."""
    return ops.transpose(x, tuple(perm))


@_class("DataFormatDimMap", src_format="NHWC", dst_format="NCHW")
def _dim_map(x, src_format, dst_format):
    """The numbers of axes in another format."""
    table = muster.Tensor([src_format.index(each) for each in dst_format], x.dtype)
    return ops.gather(table, x, 0)


@_class("DataFormatVecPermute", src_format="NHWC", dst_format="NCHW")
def _vec_permute(x, src_format, dst_format):
    """A list of four numbers (or pairs) in the order of another format."""
    return ops.gather(x, muster.Tensor([src_format.index(each) for each in dst_format], muster.int32), 0)


@_class("IndexPut", accumulate=0)
def _index_put(x1, x2, indices, accumulate):
    """x1 with x2 at a tensor of indices for each of the first axes."""
    places = ops.stack(list(indices), -1)
    sizes = (*places.shape[:-1], *x1.shape[places.shape[-1] :])
    updates = ops.cast(ops.broadcast_to(x2, sizes), x1.dtype)
    return ops.scatter_nd_update(x1, places, updates, "add" if accumulate else "update")


@_class("ParallelConcat")
def _parallel_concat(values):
    """Joined along the first axis."""
    return ops.concat(values, 0)


@_class("RaggedRange", Tsplits=...)
def _ragged_range(starts, limits, deltas, Tsplits):  # noqa: N803 - MindSpore's name
    """(where each range begins, the numbers of all ranges); outside of graphs only."""
    import numpy

    parts = [
        numpy.arange(*each)
        for each in zip(
            *[_places.eager("RaggedRange", x).tolist() for x in (starts, limits, deltas)], strict=True
        )
    ]
    splits = numpy.cumsum([0, *map(len, parts)])
    values = numpy.concatenate(parts).astype(starts.asnumpy().dtype)
    return ops.cast(muster.Tensor(splits), Tsplits), muster.Tensor(values)


@_class("SubAndFilter")
def _sub_and_filter(input_x, max_num, offset):
    """(the elements less offset that lie in [0, max_num), their places); outside of graphs only."""
    import numpy

    x = _places.eager("SubAndFilter", input_x) - int(offset)
    at = ((x >= 0) & (x < int(max_num))).nonzero()[0]
    return muster.Tensor(x[at]), muster.Tensor(at.astype(numpy.int32))


@_class("LARSUpdate", epsilon=1e-5, hyperpara=0.001, use_clip=False)
def _lars_update(
    weight, gradient, norm_weight, norm_gradient, weight_decay, learning_rate, epsilon, hyperpara, use_clip
):
    """The gradient of LARS, of the sums of squares of weight and gradient."""
    w, g = ops.sqrt(norm_weight), ops.sqrt(norm_gradient)
    size = ops.add(ops.add(g, ops.mul(w, weight_decay)), epsilon)
    rate = ops.div(ops.mul(w, hyperpara), size)
    if use_clip:
        rate = ops.clip(ops.div(rate, learning_rate), 0.0, 1.0)
    return ops.mul(ops.add(gradient, ops.mul(weight, weight_decay)), rate)


@_class("TridiagonalMatMul")
def _tridiagonal(superdiag, maindiag, subdiag, rhs):
    """The product of a tridiagonal matrix, whose diagonals are given, and rhs."""
    above = _matrices.diag_embed(superdiag[..., 0, :-1], 1)
    below = _matrices.diag_embed(subdiag[..., 0, 1:], -1)
    return ops.matmul(ops.add(ops.add(above, below), _matrices.diag_embed(maindiag[..., 0, :])), rhs)


@_class("ParameterizedTruncatedNormal", seed=0, seed2=0)
def _bounded_normal(shape, mean, stdevs, min, max, seed, seed2):
    """Normal numbers between bounds; one of each for each part of the first axis."""
    sizes = shape.asnumpy().tolist() if isinstance(shape, muster.Tensor) else list(shape)

    def each(x):
        return ops.reshape(x, (-1,) + (1,) * (len(sizes) - 1)) if x.ndim else x

    mean, deviation, low, high = (each(x) for x in (mean, stdevs, min, max))

    def below(bound):
        return ops.mul(ops.erfc(ops.div(ops.sub(mean, bound), ops.mul(deviation, math.sqrt(2)))), 0.5)

    first, last = below(low), below(high)
    part = ops.add(ops.mul(_random.uniform_01(sizes, seed + seed2), ops.sub(last, first)), first)
    normal = ops.mul(ops.erfinv(ops.sub(ops.mul(part, 2.0), 1.0)), math.sqrt(2))
    return ops.maximum(ops.minimum(ops.add(ops.mul(normal, deviation), mean), high), low)


@_class("NonMaxSuppressionV3")
def _non_max_suppression(boxes, scores, max_output_size, iou_threshold, score_threshold):
    """The numbers of the boxes that stay, the best first; outside of graphs only."""
    import numpy

    from mindspore.ops import _boxes

    found, points = _places.eager("NonMaxSuppressionV3", boxes), _places.eager("NonMaxSuppressionV3", scores)
    near = _boxes._overlaps(found, numpy) > float(iou_threshold)
    stays = []
    for at in numpy.argsort(-points, kind="stable"):
        if points[at] > float(score_threshold) and not near[at, stays].any():
            stays.append(int(at))
    return muster.Tensor(numpy.array(stays[: int(max_output_size)], numpy.int32))


@_class("DtypeToEnum")
def _number_of_dtype(name, argument, dtype):
    """The dtype itself."""
    return dtype


# ---- Functions ---------------------------------------------------------------------------------------------


def custom_info_register(*reg_info):
    """The function: what is said of a custom op is not asked."""
    return lambda function: function


op_info_register = custom_info_register


def prim_arg_register(fn):
    """The __init__ of an op; its arguments do not become attributes."""

    @functools.wraps(fn)
    def init(self, *args, **kwargs):
        Primitive.__init__(self)
        fn(self, *args, **kwargs)

    return init


def switch(condition, x, y):
    """x where the condition holds, else y."""
    return ops.select(condition, x, y) if isinstance(condition, muster.Tensor) else x if condition else y


class _Registry(dict):
    """Functions by the name of an op; `register` is a decorator."""

    def register(self, name):
        """A decorator that takes a function up under the name."""

        def add(function):
            self[name if isinstance(name, str) else name.__name__] = function
            return function

        return add


vm_impl_registry = _Registry()


def get_vm_impl_fn(prim):
    """The function that vm_impl_registry has for the op or its name, else the op itself."""
    name = prim if isinstance(prim, str) else getattr(prim, "name", None)
    if name in vm_impl_registry:
        return vm_impl_registry[name](prim)
    if isinstance(prim, str):
        raise ValueError(f"get_vm_impl_fn: vm_impl_registry has no function for {prim!r}")
    return lambda *inputs: prim(*inputs)


def env_get(env, key, default=None):
    """The entry of a dict, or the default."""
    return env.get(key, default)


globals().update(_made)
__all__ = [
    "add_rms_norm",
    "custom_info_register",
    "env_get",
    "get_vm_impl_fn",
    "group_norm",
    "op_info_register",
    "prim_arg_register",
    "rotary_position_embedding",
    "sparse_segment_mean",
    "switch",
    "vm_impl_registry",
    *sorted(_made),
]
