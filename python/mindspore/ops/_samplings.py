"""mindspore.ops: classes of ops that take parts of images: dilations, glimpses, patches, uneven pools."""

import math

import muster
from mindspore.ops import _host, _places, _random
from mindspore.ops._primitive import class_keeper, sizes_of
from muster import ops

_made = {}
_class = class_keeper(_made)


def _at_making(name, check):
    """Has the class check its settings when it is made, not when it is called."""
    made = _made[name]
    settled = made.__init__

    def __init__(self, *args, **kwargs):  # noqa: N807 - it becomes the class's own
        settled(self, *args, **kwargs)
        check(*(getattr(self, each) for each in made._settings))

    made.__init__ = __init__


def _inner_sizes(name, what, value, axes):
    """`axes` whole numbers of one, of as many, or of as many behind two that are 1."""
    sizes = (value,) * axes if isinstance(value, int) else tuple(value)
    if len(sizes) == axes + 2 and sizes[:2] == (1, 1):
        sizes = sizes[2:]
    if len(sizes) != axes or any(each < 1 for each in sizes):
        raise ValueError(f"{name}: {what} is {axes} numbers of at least 1, or 1, 1 and these, not {value}")
    return sizes


def _outside(name, mode, sizes, windows, strides):
    """How many windows of an axis there are, and the elements before and behind it, for each axis."""
    if mode.upper() not in ("SAME", "VALID"):
        raise ValueError(f"{name}: the padding is 'SAME' or 'VALID', not {mode!r}")
    found = []
    for size, window, step in zip(sizes, windows, strides, strict=True):
        if mode.upper() == "VALID":
            found.append(((size - window) // step + 1, 0, 0))
            continue
        count = -(-size // step)
        missing = max((count - 1) * step + window - size, 0)
        found.append((count, missing // 2, missing - missing // 2))
    return found


def _padded(x, outside, value):
    """x with that many elements around its last axes."""
    around = [each for _, before, behind in reversed(outside) for each in (before, behind)]
    return ops.pad(x, around, "constant", value) if any(around) else x


def _tap(x, starts, counts, strides):
    """Of each window of the last axes the element that lies `starts` behind its first."""
    for axis, start, count, step in zip(range(-len(starts), 0), starts, counts, strides, strict=True):
        at = muster.Tensor([start + step * each for each in range(count)], muster.int32)
        x = ops.gather(x, at, x.ndim + axis)
    return x


@_class("Dilation2D", stride=..., dilation=..., pad_mode="SAME", data_format="NCHW")
def _dilation(x, filter, stride, dilation, pad_mode, data_format):
    """The greatest of element plus filter over each window of x (N, C, H, W), filter (C, rows, columns)."""
    if data_format != "NCHW":
        raise ValueError(f"Dilation2D: data_format is 'NCHW', not {data_format!r}")
    strides = _inner_sizes("Dilation2D", "stride", stride, 2)
    apart = _inner_sizes("Dilation2D", "dilation", dilation, 2)
    kernel = tuple(filter.shape[1:])
    windows = [(size - 1) * step + 1 for size, step in zip(kernel, apart, strict=True)]
    outside = _outside("Dilation2D", pad_mode, x.shape[2:], windows, strides)
    counts = [count for count, *_ in outside]
    floats = _is_floating(x)
    wide = x if floats else ops.cast(x, muster.float64)
    added = filter if floats else ops.cast(filter, muster.float64)
    wide = _padded(wide, outside, -math.inf)
    best = None
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            taken = _tap(wide, (row * apart[0], column * apart[1]), counts, strides)
            summed = ops.add(taken, ops.reshape(added[:, row, column], (-1, 1, 1)))
            best = summed if best is None else ops.maximum(best, summed)
    return best if floats else ops.cast(best, x.dtype)


def _is_floating(x) -> bool:
    return "float" in str(x.dtype).lower()


@_class("ExtractVolumePatches", kernel_size=..., strides=..., padding=...)
def _volume_patches(input_x, kernel_size, strides, padding):
    """The windows of volumes (N, C, D, H, W), each as the channels of one element: (N, taps * C, ...)."""
    kernel = _inner_sizes("ExtractVolumePatches", "kernel_size", kernel_size, 3)
    steps = _inner_sizes("ExtractVolumePatches", "strides", strides, 3)
    outside = _outside("ExtractVolumePatches", padding, input_x.shape[2:], kernel, steps)
    counts = [count for count, *_ in outside]
    whole = _padded(input_x, outside, 0)
    taps = [(d, h, w) for d in range(kernel[0]) for h in range(kernel[1]) for w in range(kernel[2])]
    return ops.concat([_tap(whole, tap, counts, steps) for tap in taps], 1)


# ---- Pools of uneven windows (B. Graham, Fractional Max-Pooling) -------------------------------------------


def _ends(size, count, pseudo_random, numbers):
    """Where the `count` windows of an axis begin, and behind them its size: two lengths in random order."""
    if size % count == 0:
        return [size // count * at for at in range(count + 1)]
    if pseudo_random:
        ratio, k = size / count, size // count
        most = min((k + 2) / ratio - 1, (size + 1 - k) / ratio - (count - 1))
        start = float(numbers[0]) * most
        return [0, *(math.ceil(ratio * (at + start)) - 1 for at in range(1, count)), size]
    longer = set(numbers.argsort()[: size % count].tolist())
    found = [0]
    for at in range(count):
        found.append(found[-1] + size // count + (at in longer))
    return found


def window_places(ends, overlapping):
    """For each window the places of its elements; short ones repeat their last."""
    last = ends[-1] - 1
    firsts = ends[:-1]
    lasts = [min(end - (not overlapping), last) for end in ends[1:]]
    longest = max(high - low for low, high in zip(firsts, lasts, strict=True)) + 1
    return [[min(low + at, high) for at in range(longest)] for low, high in zip(firsts, lasts, strict=True)]


def _members(places, size):
    """(size, windows): 1 where the window has the element."""
    import numpy

    made = numpy.zeros((size, len(places)))
    for window, at in enumerate(places):
        made[at, window] = 1
    return made


def _sequences(name, x, pooling_ratio, pseudo_random, deterministic, seed):
    """Where the windows of the rows and of the columns begin."""
    import numpy

    ratios = list(pooling_ratio)
    if len(ratios) != 4 or ratios[0] != 1.0 or ratios[3] != 1.0 or any(each < 1.0 for each in ratios):
        raise ValueError(
            f"{name}: pooling_ratio is four numbers of at least 1, the outer ones 1.0, not {ratios}"
        )
    if x.ndim != 4:
        raise TypeError(f"{name}: images (N, H, W, C) are needed, not {tuple(x.shape)}")
    made = numpy.random.default_rng(seed) if deterministic or seed != (0, 0) else None
    found = []
    for size, ratio in zip(x.shape[1:3], ratios[1:3], strict=True):
        count = math.floor(size / ratio)
        even = size % count == 0
        if not even and not deterministic:
            _places.eager(name, x)  # windows of a graph would be the same in each call
        numbers = None if even else made.random(count) if made else _random.rand(count).asnumpy()
        found.append(_ends(size, count, pseudo_random, numbers))
    return found


def _greatest(x, places, axis):
    count, longest = len(places), len(places[0])
    at = muster.Tensor([each for window in places for each in window], muster.int32)
    shape = [*x.shape[:axis], count, longest, *x.shape[axis + 1 :]]
    return ops.reduce_max(ops.reshape(ops.gather(x, at, axis), shape), axis + 1)


def _sums(x, places, axis):
    matrix = muster.Tensor(_members(places, x.shape[axis])).astype(x.dtype)
    order = [each for each in range(4) if each != axis]
    last = ops.matmul(ops.transpose(x, (*order, axis)), matrix)
    back = list(range(3))
    back.insert(axis, 3)
    return ops.transpose(last, back)


_POOL = {
    "pooling_ratio": ...,
    "pseudo_random": False,
    "overlapping": False,
    "deterministic": False,
    "seed": 0,
    "seed2": 0,
}


def greatest(x, rows, columns):
    """The greatest elements of the windows."""
    return _greatest(_greatest(x, rows, 1), columns, 2)


def mean(x, rows, columns):
    """The means of the windows, those of whole numbers rounded towards 0."""
    wide = x if _is_floating(x) else ops.cast(x, muster.float64)
    sums = _sums(_sums(wide, rows, 1), columns, 2)
    counts = [[[len(set(row)) * len(set(column))] for column in columns] for row in rows]
    means = ops.div(sums, muster.Tensor(counts, muster.float64).astype(wide.dtype))
    return ops.cast(means, x.dtype)


def _windows(name, x, settings):
    """Where windows of the rows and of the columns begin, and the places of the elements of each."""
    seed = (settings["seed"], settings["seed2"])
    kept = settings["pooling_ratio"], settings["pseudo_random"], settings["deterministic"], seed
    both = _sequences(name, x, *kept)
    starts = [muster.Tensor(ends, muster.int64) for ends in both]
    return starts, [window_places(ends, settings["overlapping"]) for ends in both]


@_class("FractionalMaxPool", **_POOL)
def _max_pool(x, **settings):
    """The greatest elements of windows, and where those of rows and of columns begin."""
    starts, (rows, columns) = _windows("FractionalMaxPool", x, settings)
    return (greatest(x, rows, columns), *starts)


@_class("FractionalAvgPool", **_POOL)
def _mean_pool(x, **settings):
    """The means of windows, those of whole numbers rounded towards 0, and where rows and columns begin."""
    starts, (rows, columns) = _windows("FractionalAvgPool", x, settings)
    return (mean(x, rows, columns), *starts)


# ---- Images at other places --------------------------------------------------------------------------------


def _lanczos(radius):
    def weigh(x):
        if x <= 1e-3:
            return 1.0
        return radius * math.sin(math.pi * x) * math.sin(math.pi * x / radius) / (math.pi * x) ** 2

    return radius, lambda x: weigh(x) if x <= radius else 0.0


def _cubic(inner, outer):
    """A kernel of two polynomials, given by their coefficients from the highest power on."""

    def value(coefficients, x):
        made = 0.0
        for each in coefficients:
            made = made * x + each
        return made

    return 2, lambda x: value(inner, x) if x < 1 else value(outer, x) if x < 2 else 0.0


_KERNELS = {
    "lanczos1": _lanczos(1),
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
    "gaussian": (1.5, lambda x: math.exp(-(x**2) / 0.5) if x < 1.5 else 0.0),
    "box": (1, lambda x: 1.0 if x < 0.5 else 0.5 if x == 0.5 else 0.0),
    "triangle": (1, lambda x: max(1.0 - x, 0.0)),
    "keyscubic": _cubic((1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2)),
    "mitchellcubic": _cubic((7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9)),
}


def _resampling(size, count, scale, translation, kernel, antialias):
    """(count, size): what each element of an axis adds to each of the new ones."""
    import numpy

    radius, weigh = _KERNELS[kernel]
    step = numpy.float32(1) / numpy.float32(scale)
    start = -step * numpy.float32(translation)
    made = numpy.zeros((count, size))
    wide = max(1 / scale, 1.0) if antialias else 1.0
    for row, weights in enumerate(made):
        middle = float(numpy.float32(row + 0.5) * step + start)
        if not 0 <= middle <= size:
            continue
        low = max(math.ceil(middle - radius * wide - 0.5), 0)
        high = min(math.floor(middle + radius * wide - 0.5), size - 1)
        for at in range(low, high + 1):
            weights[at] = weigh(abs((at + 0.5 - middle) / wide))
        total = weights.sum()
        if abs(total) > 1e-35:
            weights /= total
    return made


@_class("ScaleAndTranslate", kernel_type="lanczos3", antialias=True)
def _scale_and_translate(images, size, scale, translation, kernel_type, antialias):
    """Images (N, H, W, C) in another size, larger by `scale` and moved by `translation`, float32."""
    if images.ndim != 4:
        raise ValueError(f"ScaleAndTranslate: images (N, H, W, C) are needed, not {tuple(images.shape)}")
    by_name = {"size": size, "scale": scale, "translation": translation}
    for name, given in by_name.items():
        if tuple(given.shape) != (2,):
            raise ValueError(f"ScaleAndTranslate: {name} has 2 elements, not {tuple(given.shape)}")
    counts, scales, moves = (_places.eager("ScaleAndTranslate", each).tolist() for each in by_name.values())
    made = ops.transpose(ops.cast(images, muster.float32), (0, 3, 1, 2))
    rows, columns = (
        muster.Tensor(_resampling(*each, kernel_type, antialias)).astype(muster.float32)
        for each in zip(images.shape[1:3], counts, scales, moves, strict=True)
    )
    made = ops.matmul(ops.matmul(rows, made), ops.transpose(columns, (1, 0)))
    return ops.transpose(made, (0, 2, 3, 1))


def _check_kernel(kernel_type, antialias):
    if kernel_type not in _KERNELS:
        raise ValueError(
            f"ScaleAndTranslate: kernel_type is one of {', '.join(_KERNELS)}, not {kernel_type!r}"
        )


_at_making("ScaleAndTranslate", _check_kernel)
_GLIMPSE = {"centered": True, "normalized": True, "uniform_noise": True, "noise": "uniform"}


@_class("ExtractGlimpse", **_GLIMPSE)
def _glimpse(x, size, offsets, centered, normalized, uniform_noise, noise):
    """A window of each image (N, H, W, C) around its offset; what lies outside is noise."""
    import numpy

    height, width = sizes_of(size)
    if offsets.ndim != 2 or tuple(offsets.shape) != (x.shape[0], 2):
        raise ValueError(f"ExtractGlimpse: offsets are ({x.shape[0]}, 2), not {tuple(offsets.shape)}")
    images, middles = _places.eager("ExtractGlimpse", x), _places.eager("ExtractGlimpse", offsets)
    made = numpy.empty((x.shape[0], height, width, x.shape[3]), images.dtype)
    for image, middle, window in zip(images, middles, made, strict=True):
        window[:] = _noise_of(image, window.shape, noise)
        starts = []
        for at, whole, part in zip(middle.tolist(), image.shape, (height, width), strict=False):
            at = at * whole if normalized else at
            at = at / 2 + whole / 2 if centered else at
            starts.append(int(at - part / 2))
        _copy_inside(image, starts, window)
    return muster.Tensor(made)


def _check_noise(centered, normalized, uniform_noise, noise):
    if noise not in ("uniform", "gaussian", "zero"):
        raise ValueError(f"ExtractGlimpse: noise is 'uniform', 'gaussian' or 'zero', not {noise!r}")
    if uniform_noise and noise != "uniform":
        raise ValueError(f"ExtractGlimpse: with uniform_noise=True noise is 'uniform', not {noise!r}")


_at_making("ExtractGlimpse", _check_noise)


def _noise_of(image, shape, noise):
    if noise == "zero":
        return 0
    made = _random.rand(*shape) if noise == "uniform" else _random.randn(*shape)
    if noise == "uniform":
        return image.min() + made.asnumpy() * (image.max() - image.min())
    return image.mean() + made.asnumpy() * image.std()


def _copy_inside(image, starts, window):
    """Writes into the window what it has of the image."""
    lows = [max(start, 0) for start in starts]
    highs = [
        max(min(start + part, whole), low)
        for start, part, whole, low in zip(starts, window.shape, image.shape, lows, strict=False)
    ]
    (top, left), (bottom, right) = lows, highs
    part = image[top:bottom, left:right]
    if part.size:
        window[top - starts[0] : bottom - starts[0], left - starts[1] : right - starts[1]] = part


@_class("CropAndResizeGradImage", T=..., method="bilinear")
def _cropped_images(grads, boxes, box_index, image_size, T, method):  # noqa: N803 - MindSpore's name
    """The gradient of CropAndResize by its images."""
    from mindspore.ops import _gradient_primitives, operations  # they ask for names of mindspore.ops

    op, size = operations.CropAndResize(method), tuple(grads.shape[1:3])
    images = ops.zeros(sizes_of(image_size), muster.float32)
    made = _gradient_primitives._pulled(lambda x: op(x, boxes, box_index, size), (images,), grads)
    return ops.cast(made, T)


@_class("CropAndResizeGradBoxes", method="bilinear")
def _cropped_boxes(grads, images, boxes, box_index, method):
    """The gradient of CropAndResize by its boxes, float32: none from points right on a row or column."""
    if method != "bilinear":
        raise ValueError(f"CropAndResizeGradBoxes: the method is 'bilinear', not {method!r}")
    inputs = [grads, ops.cast(images, muster.float32), boxes, box_index]
    key = ("CropAndResizeGradBoxes", method)
    return _host.without_gradient(key, _of_corners, inputs, [tuple(boxes.shape)], [muster.float32])


def _of_corners(grads, images, boxes, box_index):
    import numpy

    made = numpy.zeros(boxes.shape, numpy.float32)
    for at, (box, image) in enumerate(zip(boxes, images[box_index], strict=True)):
        lines = [
            _line_of_box(low, high, size, count)
            for low, high, size, count in zip(box[:2], box[2:], image.shape, grads.shape[1:3], strict=False)
        ]
        (rows, down, keeps_row, _), (columns, right, keeps_column, _) = lines
        corner = {(y, x): image[rows[y]][:, columns[x]] for y in (0, 1) for x in (0, 1)}
        down, right = down[:, None, None], right[None, :, None]
        flow = grads[at] * keeps_row[:, None, None] * keeps_column[None, :, None]
        by_y = (1 - right) * (corner[1, 0] - corner[0, 0]) + right * (corner[1, 1] - corner[0, 1])
        by_x = (1 - down) * (corner[0, 1] - corner[0, 0]) + down * (corner[1, 1] - corner[1, 0])
        for axis, slope in enumerate(((by_y * flow).sum((1, 2)), (by_x * flow).sum((0, 2)))):
            shares = lines[axis][3]
            made[at, axis] = (slope * (images.shape[axis + 1] - 1 - shares)).sum()
            made[at, axis + 2] = (slope * shares).sum()
    return made


def _line_of_box(low, high, size, count):
    """Of the points of one axis: the pixels around them, how far on, which count, the share of the end."""
    import numpy

    shares = numpy.linspace(0, size - 1, count) if count > 1 else numpy.array([(size - 1) / 2])
    places = low * (size - 1 - shares) + high * shares
    keeps = (places >= 0) & (places <= size - 1)
    places = places.clip(0, size - 1)
    around = [numpy.floor(places).astype(int), numpy.ceil(places).astype(int)]
    return around, places - around[0], keeps, shares


@_class("NonDeterministicInts", dtype=muster.int64)
def _any_integers(shape, dtype):
    """Random whole numbers of all sizes that the dtype has."""
    sizes = sizes_of(shape)
    if len(sizes) < 2 or any(each < 0 for each in sizes):
        raise ValueError(f"NonDeterministicInts: the shape has at least two sizes, none below 0, not {sizes}")
    return _random.randint(-(2**31), 2**31 - 1, sizes, dtype=dtype)


def _check_dtype(dtype):
    if dtype not in (muster.int32, muster.int64):
        raise TypeError(f"NonDeterministicInts: dtype is int32 or int64, not {dtype}")


_at_making("NonDeterministicInts", _check_dtype)
globals().update(_made)
__all__ = sorted(_made)
