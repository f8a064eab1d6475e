"""mindspore.ops: boxes of images, (x1, y1, x2, y2) each."""

import math

import muster
from mindspore.ops import _host, _places, _resize
from muster import ops


def _columns(boxes):
    return [boxes[:, at] for at in range(4)]


def iou(anchor_boxes, gt_boxes, mode="iou"):
    """The overlap of each ground truth box with each anchor: of both, or 'iof' of the former, (M, N)."""
    if mode not in ("iou", "iof"):
        raise ValueError(f"iou: mode is 'iou' or 'iof', not {mode!r}")
    a = [ops.expand_dims(each, 0) for each in _columns(anchor_boxes)]
    g = [ops.expand_dims(each, 1) for each in _columns(gt_boxes)]

    def side(high, low):
        return ops.maximum(ops.add(ops.sub(high, low), 1.0), 0.0)

    shared = ops.mul(
        side(ops.minimum(a[2], g[2]), ops.maximum(a[0], g[0])),
        side(ops.minimum(a[3], g[3]), ops.maximum(a[1], g[1])),
    )
    area_a, area_g = (ops.mul(side(b[2], b[0]), side(b[3], b[1])) for b in (a, g))
    whole = area_g if mode == "iof" else ops.sub(ops.add(area_a, area_g), shared)
    return ops.div(shared, ops.maximum(whole, 1e-10))  # a box without an area overlaps nothing


def check_valid(bboxes, img_metas):
    """Whether each box lies inside the image of (height, width, ratio)."""
    height, width = (ops.sub(ops.mul(img_metas[at], img_metas[2]), 1.0) for at in (0, 1))
    x1, y1, x2, y2 = (ops.cast(each, muster.float32) for each in _columns(bboxes))
    low = ops.logical_and(ops.greater_equal(x1, 0.0), ops.greater_equal(y1, 0.0))
    return ops.logical_and(low, ops.logical_and(ops.less_equal(x2, width), ops.less_equal(y2, height)))


def _centred(boxes):
    """(x, y, width, height) of the middle."""
    x1, y1, x2, y2 = _columns(boxes)
    middle = [ops.mul(ops.add(low, high), 0.5) for low, high in ((x1, x2), (y1, y2))]
    return (*middle, ops.add(ops.sub(x2, x1), 1.0), ops.add(ops.sub(y2, y1), 1.0))


def bounding_box_encode(anchor_box, groundtruth_box, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0)):
    """How far each box is from its anchor: (dx, dy, log of the widths' ratio, of the heights')."""
    ax, ay, aw, ah = _centred(anchor_box)
    gx, gy, gw, gh = _centred(groundtruth_box)
    parts = [
        ops.div(ops.sub(gx, ax), aw),
        ops.div(ops.sub(gy, ay), ah),
        ops.log(ops.div(gw, aw)),
        ops.log(ops.div(gh, ah)),
    ]
    made = [ops.div(ops.sub(part, m), s) for part, m, s in zip(parts, means, stds, strict=True)]
    return ops.stack(made, 1)


def bounding_box_decode(
    anchor_box,
    deltas,
    max_shape,
    means=(0.0, 0.0, 0.0, 0.0),
    stds=(1.0, 1.0, 1.0, 1.0),
    wh_ratio_clip=0.016,
):
    """The boxes that the deltas of bounding_box_encode say, inside of an image of max_shape."""
    ax, ay, aw, ah = _centred(anchor_box)
    dx, dy, dw, dh = (
        ops.add(ops.mul(each, s), m) for each, m, s in zip(_columns(deltas), means, stds, strict=True)
    )
    limit = abs(math.log(wh_ratio_clip))
    width, height = (ops.mul(ops.exp(ops.clip(d, -limit, limit)), side) for d, side in ((dw, aw), (dh, ah)))
    x, y = ops.add(ops.mul(dx, aw), ax), ops.add(ops.mul(dy, ah), ay)
    bounds = (float(max_shape[1]), float(max_shape[0]))
    lows = [ops.add(ops.sub(at, ops.mul(side, 0.5)), 0.5) for at, side in ((x, width), (y, height))]
    highs = [ops.sub(ops.add(at, ops.mul(side, 0.5)), 0.5) for at, side in ((x, width), (y, height))]
    made = [
        ops.clip(each, 0.0, bound) for part in (lows, highs) for each, bound in zip(part, bounds, strict=True)
    ]
    return ops.stack(made, 1)


def _overlaps(boxes, numpy):
    """Of all pairs."""
    sides = boxes[:, None, 2:4], boxes[None, :, 2:4], boxes[:, None, :2], boxes[None, :, :2]
    shared = numpy.clip(numpy.minimum(sides[0], sides[1]) - numpy.maximum(sides[2], sides[3]), 0, None).prod(
        -1
    )
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return shared / numpy.maximum(area[:, None] + area[None, :] - shared, 1e-30)


def nms_with_mask(bboxes, iou_threshold=0.5):
    """(boxes by score, 0, 1, 2, ..., whether each stays): of boxes that overlap more the best one stays."""
    count = bboxes.shape[0]

    def suppress(boxes):
        import numpy

        order = numpy.argsort(-boxes[:, 4], kind="stable")
        found = boxes[order]
        too_near = _overlaps(found.astype(numpy.float32), numpy) > iou_threshold
        stays = numpy.ones(len(found), bool)
        for at in range(len(found)):
            if stays[at]:
                stays[at + 1 :] &= ~too_near[at, at + 1 :]
        return found, numpy.arange(len(found), dtype=numpy.int32), stays

    shapes = [(count, 5), (count,), (count,)]
    dtypes = [bboxes.dtype, muster.int32, muster.bool_]
    return _host.without_gradient(("nms_with_mask", iou_threshold), suppress, [bboxes], shapes, dtypes)


def roi_align(features, rois, pooled_height, pooled_width, spatial_scale, sample_num=2, roi_end_mode=1):
    """The mean of points of each part of each region (batch, x1, y1, x2, y2) of the features (N, C, H, W).

    Each part has sample_num points along both axes, with 0 one for each whole pixel of its size. With
    roi_end_mode 1 the last pixel belongs to the region, with 0 a region is at least a pixel wide and high.
    """
    rois = ops.stop_gradient(ops.cast(rois, features.dtype))
    if sample_num > 0:
        parts, samples = (pooled_height, pooled_width), (sample_num, sample_num)
        return _aligned(features, rois, parts, spatial_scale, samples, roi_end_mode)
    sides = _sides_of_regions(_places.eager("ROIAlign(sample_num=0)", rois), spatial_scale, roi_end_mode)
    made = []
    for at, (height, width) in enumerate(sides):
        samples = max(int(height) // pooled_height, 1), max(int(width) // pooled_width, 1)
        part = ops.slice(rois, (at, 0), (1, 5))
        made.append(
            _aligned(features, part, (pooled_height, pooled_width), spatial_scale, samples, roi_end_mode)
        )
    return ops.concat(made, 0)


def _sides_of_regions(rois, spatial_scale, roi_end_mode):
    """(height, width) of each region of an array."""
    low, high = rois[:, 1:3] * spatial_scale, (rois[:, 3:5] + roi_end_mode) * spatial_scale
    sides = (high - low)[:, ::-1]
    return (sides if roi_end_mode == 1 else sides.clip(min=1)).tolist()


def _aligned(features, rois, parts, spatial_scale, samples, roi_end_mode):
    count = rois.shape[0]
    height, width = features.shape[2:]
    batch = ops.cast(rois[:, 0], muster.int32)
    x1, y1, x2, y2 = (ops.mul(rois[:, at], spatial_scale) for at in range(1, 5))
    if roi_end_mode == 1:
        x2, y2 = (ops.mul(ops.add(rois[:, at], 1.0), spatial_scale) for at in (3, 4))
    lines = []
    for low, high, several, points in ((y1, y2, parts[0], samples[0]), (x1, x2, parts[1], samples[1])):
        size = ops.sub(high, low)
        size = ops.div(size if roi_end_mode == 1 else ops.maximum(size, 1.0), float(several))
        steps = [k + (s + 0.5) / points for k in range(several) for s in range(points)]
        steps = ops.reshape(muster.Tensor(steps, features.dtype), (1, -1))
        lines.append(ops.add(ops.expand_dims(low, 1), ops.mul(ops.expand_dims(size, 1), steps)))
    rows, columns = (each.shape[1] for each in lines)
    y = ops.broadcast_to(ops.expand_dims(lines[0], 2), (count, rows, columns))
    x = ops.broadcast_to(ops.expand_dims(lines[1], 1), (count, rows, columns))
    y, x = ops.reshape(y, (count, -1)), ops.reshape(x, (count, -1))
    outside = None
    for at, size in ((y, height), (x, width)):
        here = ops.logical_or(ops.less(at, -1.0), ops.greater(at, float(size)))
        outside = here if outside is None else ops.logical_or(outside, here)
    inside = [ops.clip(at, 0.0, size - 1.0) for at, size in ((y, height), (x, width))]
    found = _resize.linear_at(ops.gather(features, batch, 0), inside)
    found = ops.select(ops.expand_dims(outside, 1), ops.zeros_like(found), found)
    channels = features.shape[1]
    found = ops.reshape(found, (count, channels, parts[0], samples[0], parts[1], samples[1]))
    return ops.reduce_mean(found, (3, 5))


__all__ = ["bounding_box_decode", "bounding_box_encode", "check_valid", "iou"]
