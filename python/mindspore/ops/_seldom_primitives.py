"""mindspore.ops: classes of ops for deformed convolutions, larger volumes, replay buffers and boxes."""

import muster
from mindspore.ops import _places, _resize
from mindspore.ops._primitive import class_keeper, sizes_of
from muster import ops

_made = {}
_class = class_keeper(_made)


@_class("ConvertToDynamic", is_dynamic_rank=False)
def _as_it_is(x, is_dynamic_rank):
    """x: every shape is traced by itself here."""
    return x


# ---- Convolutions whose places move ------------------------------------------------------------------------


def _line(count, step, low):
    """`count` places, `step` apart, from `low` on."""
    return muster.Tensor([low + step * at for at in range(count)], muster.float32)


def _places_before(sizes, kernel, strides, pads, dilations):
    """Where each tap of each window lies, (taps, windows) for both axes, before it is moved."""
    (height, width), (rows, columns) = sizes, kernel
    high = ops.reshape(_line(height, strides[0], -pads[0]), (1, 1, height, 1))
    wide = ops.reshape(_line(width, strides[1], -pads[1]), (1, 1, 1, width))
    down = ops.reshape(_line(rows, dilations[0], 0), (rows, 1, 1, 1))
    along = ops.reshape(_line(columns, dilations[1], 0), (1, columns, 1, 1))
    whole = (rows, columns, height, width)
    flat = (1, rows * columns, height * width)
    return [
        ops.reshape(ops.broadcast_to(each, whole), flat)
        for each in (ops.add(high, down), ops.add(wide, along))
    ]


@_class(
    "DeformableOffsets",
    strides=...,
    pads=...,
    ksize=...,
    dilations=(1, 1, 1, 1),
    data_format="NCHW",
    deformable_groups=1,
    modulated=True,
)
def deformable_offsets(
    x, offsets, strides, pads, ksize, dilations, data_format, deformable_groups, modulated
):
    """The taps of all windows, moved by `offsets`, as an image (N, C, windows * kernel, windows * kernel).

    offsets (N, 3 * groups * taps, H, W): how far to the right, how far down, and what a tap is multiplied by.
    """
    if data_format != "NCHW" or not modulated:
        raise ValueError(
            f"DeformableOffsets: data_format is 'NCHW', modulated True, not {data_format!r}, {modulated}"
        )
    batch, channels = x.shape[:2]
    height, width = offsets.shape[2:]
    rows, columns = ksize
    taps, points = rows * columns, height * width
    if offsets.shape[1] != 3 * deformable_groups * taps:
        raise ValueError(
            f"DeformableOffsets: offsets has {offsets.shape[1]} channels, "
            f"{3 * deformable_groups * taps} wanted: 3 * {deformable_groups} groups * {taps} taps"
        )
    moves = ops.reshape(offsets, (batch, 3, deformable_groups, taps, points))
    before = _places_before((height, width), ksize, strides[2:], (pads[0], pads[2]), dilations[2:])
    share = channels // deformable_groups
    parts = []
    for group in range(deformable_groups):
        right, down, factor = (moves[:, kind, group] for kind in range(3))
        at = [
            ops.reshape(ops.add(ops.cast(place, x.dtype), move), (batch, taps * points))
            for place, move in zip(before, (down, right), strict=True)
        ]
        found = _resize.linear_at(x[:, group * share : (group + 1) * share], at)
        parts.append(ops.mul(found, ops.reshape(factor, (batch, 1, taps * points))))
    whole = parts[0] if len(parts) == 1 else ops.concat(parts, 1)
    whole = ops.reshape(whole, (batch, channels, rows, columns, height, width))
    whole = ops.transpose(whole, (0, 1, 4, 2, 5, 3))
    return ops.reshape(whole, (batch, channels, height * rows, width * columns))


def deformable_conv2d(
    x,
    weight,
    offsets,
    kernel_size,
    strides,
    padding,
    bias=None,
    dilations=(1, 1, 1, 1),
    groups=1,
    deformable_groups=1,
    modulated=True,
):
    """A convolution of x (N, C, H, W) whose taps `offsets` move and weigh (Deformable ConvNets v2)."""
    taps = deformable_offsets(
        x, offsets, strides, padding, kernel_size, dilations, "NCHW", deformable_groups, modulated
    )
    made = ops.conv2d(taps, weight, stride=tuple(kernel_size), groups=groups)
    return made if bias is None else ops.add(made, ops.reshape(bias, (1, -1, 1, 1)))


# ---- Volumes -----------------------------------------------------------------------------------------------


def _larger(x, output_size, scales, mode, align_corners=None):
    if (output_size is None) == (scales is None):
        raise ValueError("either output_size or scales is given, not both and not none")
    size = None if output_size is None else sizes_of(output_size)
    return _resize.interpolate(x, size, None if scales is None else list(scales), mode, align_corners)


@_class("UpsampleNearest3D")
def _nearest_3d(x, output_size=None, scales=None):
    return _larger(x, output_size, scales, "nearest")


@_class("UpsampleTrilinear3D", align_corners=False)
def _trilinear_3d(x, output_size=None, scales=None, align_corners=False):
    return _larger(x, output_size, scales, "trilinear", align_corners)


# ---- Replay buffers ----------------------------------------------------------------------------------------


def _whole(tensor) -> int:
    return int(_places.eager("a replay buffer", tensor))


@_class("BufferAppend", capacity=..., buffer_shape=..., buffer_dtype=...)
def _buffer_append(data, exp, count, head, capacity, buffer_shape, buffer_dtype):
    """Puts a row into each tensor of `data`: behind those that are there, else in the place of the oldest."""
    filled, oldest = _whole(count), _whole(head)
    if filled < capacity:
        at = filled
        ops.assign(count, muster.Tensor(filled + 1, count.dtype))
    else:
        at = oldest
        ops.assign(head, muster.Tensor((oldest + 1) % capacity, head.dtype))
    for rows, row in zip(data, exp, strict=True):
        rows[at] = row
    return muster.Tensor(0, count.dtype)


@_class("BufferGetItem", capacity=..., buffer_shape=..., buffer_dtype=...)
def _buffer_item(data, count, head, index, capacity, buffer_shape, buffer_dtype):
    """The row of each tensor that is `index` rows younger than the oldest."""
    filled, at = _whole(count), int(index)
    if not -filled <= at < filled:
        raise RuntimeError(f"BufferGetItem: there is no row {at} among {filled}")
    at = (_whole(head) + at % filled) % capacity
    return tuple(rows[at] for rows in data)


@_class(
    "BufferSample", capacity=..., batch_size=..., buffer_shape=..., buffer_dtype=..., seed=0, unique=False
)
def _buffer_sample(data, count, head, capacity, batch_size, buffer_shape, buffer_dtype, seed, unique):
    """Rows of each tensor, drawn among those that are there."""
    import numpy

    filled = _whole(count)
    if unique and filled < batch_size:
        raise RuntimeError(f"BufferSample: {batch_size} different rows are wanted, there are {filled}")
    draw = numpy.random.default_rng(seed or None)
    chosen = muster.Tensor(draw.choice(filled, batch_size, replace=not unique).astype(numpy.int32))
    return tuple(ops.gather(rows, chosen, 0) for rows in data)


# ---- Shapes and boxes --------------------------------------------------------------------------------------


@_class("ConcatOffsetV1")
def _concat_offset(axis, x):
    """Where each of the tensors of these shapes begins in their concatenation along `axis`."""
    import numpy

    shapes = numpy.stack([_places.eager("ConcatOffsetV1", each) for each in x])
    along = int(axis) % shapes.shape[1]
    made = numpy.zeros_like(shapes)
    made[1:, along] = numpy.cumsum(shapes[:-1, along])
    return tuple(map(muster.Tensor, made))


def _overlap(box, others):
    """The intersection over the union of a box with others; corners may stand in any order."""
    import numpy

    def corners(boxes):
        pairs = boxes.reshape(-1, 2, 2)
        return pairs.min(1), pairs.max(1)

    (low, high), (lows, highs) = corners(box[None]), corners(others)
    inner = numpy.clip(numpy.minimum(high, highs) - numpy.maximum(low, lows), 0, None).prod(-1)
    union = (high - low).prod(-1) + (highs - lows).prod(-1) - inner
    return numpy.divide(inner, union, out=numpy.zeros_like(inner), where=union > 0)


def _best_of_class(boxes, scores, most, overlap, least):
    """The places of the best boxes, none of which covers one before it by more than `overlap`."""
    import numpy

    kept: list[int] = []
    for at in numpy.argsort(-scores, kind="stable"):
        if len(kept) == most or scores[at] <= least:
            break
        if not kept or _overlap(boxes[at], boxes[kept]).max() <= overlap:
            kept.append(int(at))
    return kept


@_class("CombinedNonMaxSuppression", pad_per_class=False, clip_boxes=True)
def _combined_suppression(
    boxes,
    scores,
    max_output_size_per_class,
    max_total_size,
    iou_threshold,
    score_threshold,
    pad_per_class,
    clip_boxes,
):
    """(boxes, scores, classes, how many) of the best of all classes; what is left of a row is zeros."""
    import numpy

    name = "CombinedNonMaxSuppression"
    boxes, scores = _places.eager(name, boxes), _places.eager(name, scores)
    most, total = int(max_output_size_per_class), int(max_total_size)
    overlap, least = float(iou_threshold), float(score_threshold)
    classes = scores.shape[2]
    size = min(total, most * classes) if pad_per_class else total
    made = [numpy.zeros((len(boxes), size, *tail), numpy.float32) for tail in ((4,), (), ())]
    counts = numpy.zeros(len(boxes), numpy.int32)
    for image in range(len(boxes)):
        found = [
            (-scores[image, at, kind], kind, at)
            for kind in range(classes)
            for at in _best_of_class(
                boxes[image, :, kind % boxes.shape[2]], scores[image, :, kind], most, overlap, least
            )
        ]
        best = sorted(found)[:size]
        counts[image] = len(best)
        for place, (score, kind, at) in enumerate(best):
            box = boxes[image, at, kind % boxes.shape[2]]
            made[0][image, place] = numpy.clip(box, 0, 1) if clip_boxes else box
            made[1][image, place], made[2][image, place] = -score, kind
    return (*map(muster.Tensor, made), muster.Tensor(counts))


# ---- Steps of AdaFactor ------------------------------------------------------------------------------------


def _root_mean(x):
    return ops.sqrt(ops.reduce_mean(ops.square(x)))


def _factored(gradient, square, row, column, decay):
    """The gradient over its factored second moment, which is kept as means of rows and of columns."""
    ops.assign(row, ops.add(ops.mul(row, decay), ops.mul(ops.reduce_mean(square, -1), 1 - decay)))
    ops.assign(column, ops.add(ops.mul(column, decay), ops.mul(ops.reduce_mean(square, -2), 1 - decay)))
    share = ops.div(row, ops.reduce_mean(row, -1, True))
    return ops.div(
        gradient, ops.mul(ops.expand_dims(ops.sqrt(share), -1), ops.expand_dims(ops.sqrt(column), -2))
    )


_ADAFACTOR = {
    "enable_scale_parameter": False,
    "enable_first_moment": False,
    "enable_weight_decay": False,
}


@_class("FusedAdaFactor", **_ADAFACTOR)
def _adafactor(
    epsilon,
    clip_threshold,
    beta1,
    beta2,
    weight_decay,
    learning_rate,
    gradient,
    param,
    exp_avg,
    exp_avg_sq_row,
    exp_avg_sq_col,
    exp_avg_sq,
    **settings,
):
    """One step of AdaFactor (Shazeer and Stern, 2018), which writes into the parameters. Gives `param`."""
    square = ops.add(ops.square(gradient), epsilon[0])
    if len(param.shape) > 1:
        away = _factored(gradient, square, exp_avg_sq_row, exp_avg_sq_col, beta2)
    else:
        ops.assign(exp_avg_sq, ops.add(ops.mul(exp_avg_sq, beta2), ops.mul(square, 1 - beta2)))
        away = ops.div(gradient, ops.sqrt(exp_avg_sq))
    away = ops.div(away, ops.maximum(ops.div(_root_mean(away), clip_threshold), 1.0))
    rate = learning_rate
    if settings["enable_scale_parameter"]:
        rate = ops.mul(ops.maximum(_root_mean(param), epsilon[1]), learning_rate)
    away = ops.mul(away, rate)
    if settings["enable_first_moment"]:
        ops.assign(exp_avg, ops.add(ops.mul(exp_avg, beta1), ops.mul(away, 1 - beta1)))
        away = exp_avg
    if settings["enable_weight_decay"]:
        away = ops.add(away, ops.mul(param, weight_decay * rate))
    return ops.assign(param, ops.sub(param, away))


@_class("FusedAdaFactorWithGlobalNorm", **_ADAFACTOR)
def _adafactor_of_norm(*inputs, **settings):
    """FusedAdaFactor of the gradient divided by the last input."""
    *inputs, norm = inputs
    inputs[6] = ops.div(inputs[6], norm)
    return _adafactor(*inputs, **settings)


globals().update(_made)
__all__ = sorted([*_made, "deformable_conv2d"])
