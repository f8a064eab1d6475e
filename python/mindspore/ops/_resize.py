"""mindspore.ops: images in other sizes, and read at points between the pixels."""

import math

import numpy

import muster
from mindspore.ops import _windows
from muster import ops

# ---- Along one axis: each new element is a sum of a few old ones -------------------------------------------


def _step(size, count, align_corners, scale=None):
    """How far apart the new elements lie among the old ones."""
    if align_corners:
        return numpy.float32(size - 1) / numpy.float32(count - 1) if count > 1 else numpy.float32(0)
    return numpy.float32(1 / scale) if scale else numpy.float32(size) / numpy.float32(count)


def _coordinates(size, count, align_corners, half_pixel, scale=None):
    """Where the new elements lie among the old ones, in float32 as MindSpore has them.

    A weight is what follows the point: of a place near 200 it has five digits, and exact ones would give
    pictures that differ in the fifth.
    """
    half = numpy.float32(0.5 if half_pixel and not align_corners else 0)
    places = (numpy.arange(count, dtype=numpy.float32) + half) * _step(
        size, count, align_corners, scale
    ) - half
    return places.tolist()


def _mixed(x, axis, taps):
    """For each new element [(place, weight), ...], all of one length."""
    made = None
    for k in range(len(taps[0])):
        index = muster.Tensor([row[k][0] for row in taps], muster.int32)
        weights = [row[k][1] for row in taps]
        part = ops.gather(x, index, axis)
        if any(weight != 1.0 for weight in weights):
            sizes = [1] * x.ndim
            sizes[axis] = -1
            part = ops.mul(part, ops.reshape(muster.Tensor(weights, x.dtype), sizes))
        made = part if made is None else ops.add(made, part)
    return made


def _linear_taps(places, size):
    taps = []
    for place in places:
        place = min(max(place, 0.0), size - 1.0)
        low = math.floor(place)
        high = min(low + 1, size - 1)
        taps.append([(low, 1 - (place - low)), (high, place - low)])
    return taps


def _cubic_weight(distance, a):
    d = abs(distance)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0.0


def _cubic_taps(places, size, a, drop, parts=1024):
    """With `drop` places outside have no weight, else the nearest pixel has it. MindSpore reads the weights
    from a table of so many `parts`; None: exact ones."""
    taps = []
    for place in places:
        low = math.floor(place)
        part = place - low if parts is None else round((place - low) * parts) / parts
        at = [low + k for k in range(-1, 3)]
        weights = [_cubic_weight(part - k, a) for k in range(-1, 3)]
        if drop:
            weights = [w if 0 <= each < size else 0.0 for each, w in zip(at, weights, strict=True)]
            weights = [w / sum(weights) for w in weights]
        taps.append([(min(max(each, 0), size - 1), w) for each, w in zip(at, weights, strict=True)])
    return taps


def nearest(x, axis, count, align_corners=False, half_pixel=False, scale=None):
    """x with `count` elements along the axis, each the nearest old one."""
    size = x.shape[axis]
    if half_pixel:
        half = numpy.float32(0.5)
        places = (numpy.arange(count, dtype=numpy.float32) + half) * _step(size, count, False, scale)
        places = [math.floor(place) for place in places]
    else:
        places = [
            math.floor(at + 0.5) if align_corners else math.floor(at)
            for at in _coordinates(size, count, align_corners, False, scale)
        ]
    index = [min(max(at, 0), size - 1) for at in places]
    return ops.gather(x, muster.Tensor(index, muster.int32), axis)


def linear(x, axis, count, align_corners=False, half_pixel=True, scale=None):
    """x with `count` elements along the axis, between the two next old ones."""
    places = _coordinates(x.shape[axis], count, align_corners, half_pixel, scale)
    return _mixed(x, axis, _linear_taps(places, x.shape[axis]))


def cubic(x, axis, count, align_corners=False, half_pixel=True, scale=None, a=-0.75):
    """x with `count` elements along the axis, of the four next old ones (Keys, 1981)."""
    places = _coordinates(x.shape[axis], count, align_corners, half_pixel, scale)
    return _mixed(x, axis, _cubic_taps(places, x.shape[axis], a, half_pixel))


def _each_axis(x, sizes, resize, scales=None):
    for at, count in enumerate(sizes):
        axis = x.ndim - len(sizes) + at
        scale = None if scales is None else scales[at]
        if count != x.shape[axis] or scale is not None:
            x = resize(x, axis, count, scale)
    return x


# ---- Functions ---------------------------------------------------------------------------------------------


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
):
    """Images (N, C, ...) in another size, by the mode: 'nearest', 'bilinear', 'bicubic', 'area', ..."""
    rank = input.ndim - 2
    ranks = {"linear": (1,), "bilinear": (2,), "trilinear": (3,), "bicubic": (2,), "nearest-exact": (1, 2)}
    modes = {"nearest": (1, 2, 3), "area": (1, 2, 3), **ranks}
    if mode not in modes or rank not in modes[mode]:
        raise ValueError(f"interpolate: mode {mode!r} is not for a tensor of shape {input.shape}")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: either size or scale_factor is needed")
    if align_corners and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(f"interpolate: align_corners has no meaning for mode {mode!r}")
    scales = None
    if size is None:
        factors = [float(each) for each in _listed(scale_factor, rank)]
        sizes = [math.floor(n * f) for n, f in zip(input.shape[2:], factors, strict=True)]
        scales = None if recompute_scale_factor or mode in ("nearest", "bilinear", "area") else factors
    else:
        sizes = _listed(size, rank)
    if mode == "area":
        return _windows._adaptive(input, rank, tuple(sizes), ops.reduce_mean)
    align = bool(align_corners)

    def resize(x, axis, count, scale):
        if mode == "nearest":
            return nearest(x, axis, count, scale=scale)
        if mode == "nearest-exact":
            return nearest(x, axis, count, half_pixel=True, scale=scale)
        if mode == "bicubic":
            return cubic(x, axis, count, align, not align, scale, -0.75 if align else -0.5)
        return linear(x, axis, count, align, not align, scale)

    return _each_axis(input, sizes, resize, scales)


_RANKS = {"nearest": (1, 2, 3), "linear": (1,), "bilinear": (2,), "trilinear": (3,), "bicubic": (2,)}


def interpolate_ext(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
):
    """Images (N, C, ...) in another size, as PyTorch has it: at the scale given, by exact cubic weights."""
    rank = input.ndim - 2
    if mode not in _RANKS or rank not in _RANKS[mode]:
        raise ValueError(f"interpolate: mode {mode!r} is not for a tensor of shape {input.shape}")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: either size or scale_factor is needed")
    if mode == "nearest" and align_corners is not None:
        raise ValueError("interpolate: align_corners has no meaning for mode 'nearest'")
    if size is not None and recompute_scale_factor:
        raise ValueError("interpolate: recompute_scale_factor has no meaning with a size")
    align, scales = bool(align_corners), None
    if size is None:
        factors = [float(each) for each in _listed(scale_factor, rank)]
        sizes = [math.floor(n * factor) for n, factor in zip(input.shape[2:], factors, strict=True)]
        scales = None if recompute_scale_factor else factors
    else:
        sizes = _listed(size, rank)

    def resize(x, axis, count, scale):
        if mode == "nearest":
            return nearest(x, axis, count, scale=scale)
        if mode != "bicubic":
            return linear(x, axis, count, align, not align, scale)
        places = _coordinates(x.shape[axis], count, align, not align, scale)
        return _mixed(x, axis, _cubic_taps(places, x.shape[axis], -0.75, False, None))

    return _each_axis(input, sizes, resize, scales)


def _listed(value, count):
    return [value] * count if isinstance(value, (int, float)) else list(value)


def upsample(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
):
    """ops.interpolate."""
    return interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def resize_nearest(x, size, align_corners=False, half_pixel_centers=False):
    """ResizeNearestNeighbor of (N, C, H, W)."""
    return _each_axis(
        x, size, lambda each, axis, count, _: nearest(each, axis, count, align_corners, half_pixel_centers)
    )


def resize_bilinear(x, size, align_corners=False, half_pixel_centers=False):
    """ResizeBilinear of (N, C, H, W)."""
    return _each_axis(
        x, size, lambda each, axis, count, _: linear(each, axis, count, align_corners, half_pixel_centers)
    )


def resize_bicubic(x, size, align_corners=False, half_pixel_centers=False):
    """ResizeBicubic of (N, C, H, W)."""
    a = -0.5 if half_pixel_centers else -0.75
    return _each_axis(
        x, size, lambda each, axis, count, _: cubic(each, axis, count, align_corners, half_pixel_centers, a=a)
    )


def resize_linear(x, size, mode="align_corners"):
    """ResizeLinear1D of (N, C, W): coordinates 'align_corners', 'half_pixel' or 'asymmetric'."""
    count = size if isinstance(size, int) else next(iter(size))
    return linear(x, 2, count, mode == "align_corners", mode == "half_pixel")


# ---- Read at points ----------------------------------------------------------------------------------------


def _unnormalized(at, size, align_corners):
    """From [-1, 1] to places of pixels."""
    if align_corners:
        return ops.mul(ops.add(at, 1.0), (size - 1) / 2)
    return ops.sub(ops.mul(ops.add(at, 1.0), size / 2), 0.5)


def _reflected(at, low, high):
    """Mirrored at both bounds until it lies between."""
    if high <= low:
        return ops.zeros_like(at)
    span = high - low
    away = ops.abs(ops.sub(at, low))
    turns = ops.floor(ops.div(away, span))
    rest = ops.sub(away, ops.mul(turns, span))
    is_odd = ops.equal(ops.mod(turns, 2.0), 1.0)
    return ops.add(ops.select(is_odd, ops.sub(span, rest), rest), low)


def _where_nan(at, other):
    return ops.select(ops.not_equal(at, at), ops.full_like(at, other), at)


def _half_away(at):
    """The nearest whole number, of two the one away from 0, as MindSpore rounds here."""
    low = ops.floor(at)
    rest = ops.sub(at, low)
    goes_up = ops.logical_or(
        ops.greater(rest, 0.5), ops.logical_and(ops.equal(rest, 0.5), ops.greater_equal(at, 0.0))
    )
    return ops.select(goes_up, ops.add(low, 1.0), low)


def _kept_inside(at, size, padding_mode, align_corners):
    """As MindSpore has it, NaN is the last pixel where edges or mirrors count, else outside."""
    if padding_mode == "zeros":
        # Nothing far outside counts, and a bound keeps its weight finite.
        return ops.clip(_where_nan(at, -2.0), -2.0, size + 1.0)
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        is_infinite = ops.equal(ops.abs(at), math.inf)
        at = ops.select(is_infinite, ops.full_like(at, high), _reflected(at, low, high))
    return ops.clip(_where_nan(at, size - 1.0), 0.0, size - 1.0)


def pixels_at(x, places):
    """The pixels of x (N, C, ...) at whole places, a tensor (N, points) for each axis; 0 outside."""
    sizes = x.shape[2:]
    inside, flat = None, None
    for at, size in zip(places, sizes, strict=True):
        here = ops.logical_and(ops.greater_equal(at, 0.0), ops.less_equal(at, size - 1.0))
        inside = here if inside is None else ops.logical_and(inside, here)
        # Not clip: NaN would stay, and is no index.
        index = ops.cast(ops.select(here, at, ops.zeros_like(at)), muster.int32)
        flat = index if flat is None else ops.add(ops.mul(flat, size), index)
    pixels = ops.reshape(x, (*x.shape[:2], -1))
    index = ops.broadcast_to(ops.expand_dims(flat, 1), (*x.shape[:2], flat.shape[-1]))
    found = ops.gather_elements(pixels, index, 2)
    return ops.select(ops.expand_dims(inside, 1), found, ops.zeros_like(found))


def linear_at(x, places):
    """Between the pixels of x (N, C, ...): the mean of the corners around, weighted by nearness."""
    lows = [ops.stop_gradient(ops.floor(at)) for at in places]
    made = None
    for corner in range(2 ** len(places)):
        weight, at = None, []
        for axis, (place, low) in enumerate(zip(places, lows, strict=True)):
            is_high = corner >> axis & 1
            share = ops.sub(place, low) if is_high else ops.sub(ops.add(low, 1.0), place)
            weight = share if weight is None else ops.mul(weight, share)
            at.append(ops.add(low, 1.0) if is_high else low)
        part = ops.mul(pixels_at(x, at), ops.expand_dims(weight, 1))
        made = part if made is None else ops.add(made, part)
    return made


def _cubic_shares(t):
    """The weights of the four pixels around, for a place t behind the second one."""

    def near(d):
        return ops.add(ops.mul(ops.mul(ops.sub(ops.mul(d, 1.25), 2.25), d), d), 1.0)

    def far(d):
        return ops.add(ops.mul(ops.sub(ops.mul(ops.add(ops.mul(d, -0.75), 3.75), d), 6.0), d), 3.0)

    return [far(ops.add(t, 1.0)), near(t), near(ops.sub(1.0, t)), far(ops.sub(2.0, t))]


def _cubic_at(x, places, kept):
    lows = [ops.stop_gradient(ops.floor(at)) for at in places]
    shares = [_cubic_shares(ops.sub(at, low)) for at, low in zip(places, lows, strict=True)]
    made = None
    for i in range(4):
        for j in range(4):
            at = [
                kept(ops.add(low, k - 1.0), axis)
                for axis, (low, k) in enumerate(zip(lows, (i, j), strict=True))
            ]
            weight = ops.mul(shares[0][i], shares[1][j])
            part = ops.mul(pixels_at(x, at), ops.expand_dims(weight, 1))
            made = part if made is None else ops.add(made, part)
    return made


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """input (N, C, ...) at the points of the grid (N, ..., axes), which count from -1 to 1, x first."""
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"grid_sample: mode is 'bilinear', 'nearest' or 'bicubic', not {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"grid_sample: padding_mode is 'zeros', 'border' or 'reflection', not {padding_mode!r}"
        )
    align, sizes = bool(align_corners), input.shape[2:]
    points = ops.reshape(grid, (grid.shape[0], -1, len(sizes)))
    raw = [_unnormalized(points[..., len(sizes) - 1 - axis], size, align) for axis, size in enumerate(sizes)]

    def kept(at, axis):
        return _kept_inside(at, sizes[axis], padding_mode, align)

    if mode == "bicubic":
        made = _cubic_at(input, raw, kept)
    else:
        places = [kept(at, axis) for axis, at in enumerate(raw)]
        if mode == "nearest":
            made = pixels_at(input, [_half_away(at) for at in places])
        else:
            made = linear_at(input, places)
    return ops.reshape(made, (*input.shape[:2], *grid.shape[1:-1]))


def affine_grid(theta, size, align_corners=False):
    """The grid for grid_sample of affine maps theta (N, 2, 3) or (N, 3, 4)."""
    sizes = list(size)[2:]
    lines = []
    for count in reversed(sizes):
        if align_corners:
            line = [2 * k / (count - 1) - 1 if count > 1 else 0.0 for k in range(count)]
        else:
            line = [(2 * k + 1) / count - 1 for k in range(count)]
        lines.append(line)
    from mindspore.ops import _moves

    axes = [muster.Tensor(line, theta.dtype) for line in lines]
    planes = list(reversed(_moves.meshgrid(*reversed(axes), indexing="ij")))
    base = ops.stack([*planes, ops.ones_like(planes[0])], -1)
    flat = ops.reshape(base, (1, -1, len(sizes) + 1))
    flat = ops.broadcast_to(flat, (theta.shape[0], *flat.shape[1:]))
    made = ops.batch_matmul(flat, ops.swapaxes(theta, 1, 2))
    return ops.reshape(made, (theta.shape[0], *sizes, len(sizes)))


def crop_and_resize(image, boxes, box_indices, crop_size, method="bilinear", extrapolation_value=0.0):
    """Boxes (y1, x1, y2, x2 from 0 to 1) of images (N, H, W, C), each in crop_size."""
    height, width = image.shape[1:3]
    rows, columns = crop_size
    x = ops.transpose(ops.gather(image, box_indices, 0), (0, 3, 1, 2))

    def line(low, high, size, count):
        steps = ops.reshape(ops.cast(ops.arange(count), muster.float32), (1, -1))
        low, high = ops.expand_dims(low, 1), ops.expand_dims(high, 1)
        if count == 1:
            return ops.mul(ops.add(low, high), 0.5 * (size - 1))
        step = ops.div(ops.mul(ops.sub(high, low), size - 1.0), count - 1.0)
        return ops.add(ops.mul(low, size - 1.0), ops.mul(steps, step))

    y = line(boxes[:, 0], boxes[:, 2], height, rows)
    z = line(boxes[:, 1], boxes[:, 3], width, columns)
    count = boxes.shape[0]
    y = ops.reshape(ops.broadcast_to(ops.expand_dims(y, 2), (count, rows, columns)), (count, -1))
    z = ops.reshape(ops.broadcast_to(ops.expand_dims(z, 1), (count, rows, columns)), (count, -1))
    outside = None
    for at, size in ((y, height), (z, width)):
        here = ops.logical_or(ops.less(at, 0.0), ops.greater(at, size - 1.0))
        outside = here if outside is None else ops.logical_or(outside, here)
    if method == "nearest":
        made = pixels_at(x, [ops.floor(ops.add(at, 0.5)) for at in (y, z)])
    else:
        made = linear_at(x, [ops.clip(y, 0.0, height - 1.0), ops.clip(z, 0.0, width - 1.0)])
    made = ops.select(ops.expand_dims(outside, 1), ops.full_like(made, extrapolation_value), made)
    return ops.transpose(ops.reshape(made, (count, x.shape[1], rows, columns)), (0, 2, 3, 1))


__all__ = ["affine_grid", "crop_and_resize", "grid_sample", "interpolate", "upsample"]
