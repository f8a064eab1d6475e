"""Images seen through a matrix, with OpenCV's whole-number arithmetic."""

import math

from mindspore._lazy import numpy
from mindspore.dataset.vision._base import pil
from mindspore.dataset.vision._enums import Inter

_STEPS = 32  # parts of a pixel
_ONE = 1 << 15


def _taken(image, rows, columns, fill):
    """Pixels at whole places; `fill` outside."""
    height, width = image.shape[:2]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    made = image[numpy.clip(rows, 0, height - 1), numpy.clip(columns, 0, width - 1)]
    colour = numpy.array(fill[: image.shape[2]] if image.ndim == 3 else fill[0], image.dtype)
    return numpy.where(inside[..., None] if image.ndim == 3 else inside, made, colour)


def _cubic(part):
    a = -0.75
    first = ((a * (part + 1) - 5 * a) * (part + 1) + 8 * a) * (part + 1) - 4 * a
    second = ((a + 2) * part - (a + 3)) * part * part + 1
    third = ((a + 2) * (1 - part) - (a + 3)) * (1 - part) * (1 - part) + 1
    return [first, second, third, 1 - first - second - third]


def sample(image, x, y, interpolation, fill):
    """Pixels at places in 32nds: whole parts and rests of `x` and `y`."""
    columns, rows = x >> 5, y >> 5
    right, down = (x & 31) / _STEPS, (y & 31) / _STEPS
    if interpolation == Inter.CUBIC:
        across, along, first = _cubic(right), _cubic(down), -1
    else:
        across, along, first = [1 - right, right], [1 - down, down], 0
    is_whole = image.dtype == numpy.uint8
    total = 0
    for at_row, row_weight in enumerate(along):
        for at_column, weight in enumerate(across):
            share = weight * row_weight
            share = numpy.rint(share * _ONE) if is_whole else share
            values = _taken(image, rows + first + at_row, columns + first + at_column, fill).astype(float)
            total = total + values * (share[..., None] if image.ndim == 3 else share)
    if not is_whole:
        return total.astype(image.dtype)
    return numpy.clip(numpy.floor((total + _ONE // 2) / _ONE), 0, 255).astype(numpy.uint8)


def affine(image, matrix, size, interpolation, fill):
    """The image moved by a matrix (2, 3) from old to new places, at `size` (height, width)."""
    back = numpy.linalg.inv(numpy.vstack([matrix, [0, 0, 1]]))[:2]
    height, width = size
    one = 1 << 10
    half = one // 2 if interpolation == Inter.NEAREST else one // _STEPS // 2
    columns, rows = numpy.arange(width), numpy.arange(height)[:, None]

    def places(of):
        start = numpy.rint((of[1] * rows + of[2]) * one).astype(numpy.int64) + half
        return start + numpy.rint(of[0] * columns * one).astype(numpy.int64)

    x, y = places(back[0]), places(back[1])
    if interpolation == Inter.NEAREST:
        return _taken(image, y >> 10, x >> 10, fill)
    return sample(image, x >> 5, y >> 5, interpolation, fill)


def projective(image, matrix, interpolation, fill=(0, 0, 0)):
    """The image moved by a matrix (3, 3) from old to new places."""
    back = numpy.linalg.inv(matrix)
    height, width = image.shape[:2]
    columns, rows = numpy.meshgrid(numpy.arange(width), numpy.arange(height))
    x, y, w = (back[at, 0] * columns + back[at, 1] * rows + back[at, 2] for at in range(3))
    w = numpy.where(w == 0, 0, 1 / numpy.where(w == 0, 1, w))
    if interpolation == Inter.NEAREST:
        return _taken(image, numpy.rint(y * w).astype(int), numpy.rint(x * w).astype(int), fill)
    x, y = (numpy.rint(each * w * _STEPS).astype(int) for each in (x, y))
    return sample(image, x, y, interpolation, fill)


def matrix_of_points(old, new):
    """The matrix (3, 3) that moves four points to four others."""
    rows, values = [], []
    for (x, y), (u, v) in zip(old, new, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -x * u, -y * u], [0, 0, 0, x, y, 1, -x * v, -y * v]]
        values += [u, v]
    return numpy.append(numpy.linalg.solve(numpy.array(rows, float), numpy.array(values, float)), 1).reshape(
        3, 3
    )


def rotation(degrees, center):
    """Counter-clockwise about a point (x, y)."""
    angle = math.radians(degrees)
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = center
    return numpy.array([[cos, sin, (1 - cos) * x - sin * y], [-sin, cos, sin * x + (1 - cos) * y]])


def rotated(image, degrees, resample, expand, center, fill):
    """The image turned counter-clockwise; `expand`: as large as needed to hold all of it."""
    height, width = image.shape[:2]
    if center is None or expand:
        center = ((width - 1) / 2, (height - 1) / 2)
    matrix = rotation(degrees, center)
    size = (height, width)
    if expand:
        wide, high = numpy.abs(matrix[:, :2]) @ [width, height]
        matrix[:, 2] += [wide / 2 - width / 2, high / 2 - height / 2]
        size = (round(high), round(wide))
    return affine(image, matrix, size, resample, fill)


def affine_matrix(size, degrees, translate, scale, shear):
    """MindSpore's: about the middle, sheared, turned and scaled, then moved by (x, y) pixels."""
    height, width = size
    middle = ((width - 1) / 2, (height - 1) / 2)
    turn, shear_x, shear_y = (math.radians(each) for each in (degrees, shear[0], shear[1]))
    a = scale * math.cos(turn - shear_y) / math.cos(shear_y)
    b = -scale * (math.cos(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) + math.sin(turn))
    c = scale * math.sin(turn - shear_y) / math.cos(shear_y)
    d = scale * (math.cos(turn) - math.sin(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y))
    x = middle[0] + translate[0] - a * middle[0] - b * middle[1]
    y = middle[1] + translate[1] - c * middle[0] - d * middle[1]
    return numpy.array([[a, b, x], [c, d, y]])


def picture_matrix(size, degrees, moved, scale, shear):
    """The six numbers by which Pillow finds where a pixel came from, as MindSpore computes them for it."""
    turn, shear_x, shear_y = (math.radians(each) for each in (degrees, *shear))
    first, second = turn + shear_x, turn + shear_y
    by = 1 / (scale * (math.cos(first) * math.cos(second) + math.sin(first) * math.sin(second)))
    a, b = by * math.cos(first), by * math.sin(first)
    c, d = -by * math.sin(second), by * math.cos(second)
    x, y = (each * 0.5 + 0.5 for each in size)
    back = (-x - moved[0], -y - moved[1])
    return a, b, a * back[0] + b * back[1] + x, c, d, c * back[0] + d * back[1] + y


_PICTURE = {
    Inter.NEAREST: "NEAREST",
    Inter.ANTIALIAS: "LANCZOS",
    Inter.LINEAR: "BILINEAR",
    Inter.CUBIC: "BICUBIC",
    Inter.AREA: "BOX",
    Inter.PILCUBIC: "BICUBIC",
}


def cubic_of_pillow(image, size):
    """Bytes at (height, width): Keys' cubic weights (a = -0.5), wider where it shrinks, of 22 bits."""
    for axis, to in ((1, size[1]), (0, size[0])):
        weights = numpy.rint(_cubic_weights(image.shape[axis], to) * (1 << 22)).astype(numpy.int64)
        sums = numpy.moveaxis(numpy.tensordot(weights, image.astype(numpy.int64), (1, axis)), 0, axis)
        image = numpy.clip((sums + (1 << 21)) >> 22, 0, 255).astype(numpy.uint8)
    return image


def _cubic_weights(size, to):
    """(to, size): what each old pixel gives to each new one."""
    ratio = size / to
    width = max(ratio, 1.0)
    middle = (numpy.arange(to)[:, None] + 0.5) * ratio
    first = numpy.maximum((middle - 2 * width + 0.5).astype(int), 0)
    last = numpy.minimum((middle + 2 * width + 0.5).astype(int), size)
    place = numpy.arange(size)[None]
    far = numpy.abs(place - middle + 0.5) / width
    near = (1.5 * far - 2.5) * far**2 + 1
    tail = ((-0.5 * far + 2.5) * far - 4) * far + 2
    weights = numpy.where(far < 1, near, numpy.where(far < 2, tail, 0))
    weights = numpy.where((place >= first) & (place < last), weights, 0)
    return weights / weights.sum(1, keepdims=True)


def picture_mode(interpolation):
    """Pillow's name of it."""
    return getattr(pil().Image.Resampling, _PICTURE[interpolation])
