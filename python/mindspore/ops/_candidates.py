"""mindspore.ops: classes drawn as candidates, and max pooling of windows at random places."""

import math

import muster
from mindspore import _names
from mindspore.ops import _host, _random, _windows
from mindspore.ops._primitive import Primitive
from muster import ops

# ---- Candidates --------------------------------------------------------------------------------------------

_DRAWS = 256  # those of the graph's own generator; the rest follow from the first


def _drawn(chances, count, unique):
    """(numbers of classes drawn by these chances, how many draws that took) of uniform numbers."""

    def draw(uniform):
        import numpy

        bounds = numpy.cumsum(chances)
        more = numpy.random.RandomState(int(uniform[0] * 2**31))
        found, tries = [], 0
        while len(found) < count:
            number = uniform[tries] if tries < len(uniform) else more.uniform()
            each = min(int(numpy.searchsorted(bounds, number * bounds[-1], "right")), len(bounds) - 1)
            tries += 1
            if not unique or each not in found:
                found.append(each)
        return numpy.array(found, numpy.int64), numpy.array([tries], numpy.float32)

    return draw


def _sampled(name, true_classes, settings, chances):
    """(classes drawn, how often the true ones are expected, how often those drawn)."""
    num_true, num_sampled, unique, range_max, seed = settings
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        raise ValueError(f"{name}: true_classes are (samples, {num_true}), not {tuple(true_classes.shape)}")
    if unique and num_sampled > range_max:
        raise ValueError(f"{name}: there are no {num_sampled} different classes among {range_max}")
    key = (name, num_sampled, unique, range_max)
    found, tries = _host.without_gradient(
        key,
        _drawn(chances, num_sampled, unique),
        [_random.uniform_01((_DRAWS,), seed)],
        [(num_sampled,), (1,)],
        [muster.int64, muster.float32],
    )
    table = muster.Tensor(chances, muster.float32)

    def expected(classes):
        chance = ops.gather(table, ops.reshape(classes, (-1,)), 0)
        certain = ops.mul(chance, float(num_sampled))
        among = ops.neg(ops.expm1(ops.mul(ops.log1p(ops.neg(chance)), tries)))
        made = ops.select(ops.equal(tries, float(num_sampled)), certain, among) if range_max > 1 else certain
        return ops.reshape(made, tuple(classes.shape))

    return ops.cast(found, true_classes.dtype), expected(true_classes), expected(found)


def uniform_candidate_sampler(
    true_classes, num_true, num_sampled, unique, range_max, seed=0, remove_accidental_hits=False
):
    """(num_sampled classes, each as likely, how often the true ones are expected, how often those drawn).

    Args:
        true_classes: (samples, num_true), whole numbers below range_max.
        num_true: How many of a sample are true.
        num_sampled: How many are drawn.
        unique: Whether each is drawn once.
        range_max: How many classes there are.
        seed: 0: set_seed's.
        remove_accidental_hits: Changes nothing, as in MindSpore on a CPU.
    """
    settings = num_true, num_sampled, unique, range_max, seed
    chances = [1 / range_max] * range_max
    return _sampled("uniform_candidate_sampler", true_classes, settings, chances)


def log_uniform_candidate_sampler(true_classes, num_true=1, num_sampled=5, unique=True, range_max=5, seed=0):
    """The same with chances log((class + 2) / (class + 1)) / log(range_max + 1): classes ordered by use."""
    settings = num_true, num_sampled, unique, range_max, seed
    chances = [math.log((k + 2) / (k + 1)) / math.log(range_max + 1) for k in range(range_max)]
    return _sampled("log_uniform_candidate_sampler", true_classes, settings, chances)


class _Sampler(Primitive):
    function = None

    def compute(self, true_classes):
        """(classes drawn, how often the true ones are expected, how often those drawn)."""
        return type(self).function(true_classes, *self._settings)


class UniformCandidateSampler(_Sampler):
    """ops.uniform_candidate_sampler."""

    function = staticmethod(uniform_candidate_sampler)

    def __init__(self, num_true, num_sampled, unique, range_max, seed=0, remove_accidental_hits=False):
        super().__init__()
        self._settings = num_true, num_sampled, unique, range_max, seed, remove_accidental_hits


class LogUniformCandidateSampler(_Sampler):
    """ops.log_uniform_candidate_sampler."""

    function = staticmethod(log_uniform_candidate_sampler)

    def __init__(self, num_true=1, num_sampled=5, unique=True, range_max=5, seed=0):
        super().__init__()
        self._settings = num_true, num_sampled, unique, range_max, seed


# ---- Windows at random places ------------------------------------------------------------------------------


def _begins(sample, size, kernel, count):
    """Where the windows along an axis begin: (N, C, count), by a number from 0 to 1 for each channel."""
    sample = ops.expand_dims(sample, -1)
    if count == 1:
        return ops.cast(ops.add(ops.zeros_like(sample), float(size - kernel)), muster.int32)
    step = (size - kernel) / (count - 1)
    places = ops.cast(ops.reshape(ops.arange(count - 1), (1, 1, -1)), sample.dtype)
    begins = ops.sub(ops.floor(ops.mul(ops.add(places, sample), step)), ops.floor(ops.mul(sample, step)))
    last = ops.add(ops.zeros_like(sample), float(size - kernel))
    return ops.cast(ops.concat([begins, last], -1), muster.int32)


def _fractional(x, kernel, counts, samples):
    """(the greatest of each window, its flat place int64) of the last axes of x (N, C, ...)."""
    axes, sizes = len(kernel), x.shape[2:]
    flat = None
    for axis in range(axes):
        begins = _begins(samples[:, :, axis], sizes[axis], kernel[axis], counts[axis])
        places = ops.add(
            ops.expand_dims(begins, -1),
            ops.reshape(ops.cast(ops.arange(kernel[axis]), muster.int32), (1, 1, 1, -1)),
        )
        shape = [*x.shape[:2], *[1] * (2 * axes)]
        shape[2 + axis], shape[2 + axes + axis] = counts[axis], kernel[axis]
        places = ops.mul(ops.reshape(places, shape), math.prod(sizes[axis + 1 :]))
        flat = places if flat is None else ops.add(flat, places)
    flat = ops.reshape(flat, (*x.shape[:2], *counts, math.prod(kernel)))
    pixels = ops.reshape(x, (*x.shape[:2], -1))
    taken = ops.gather_elements(pixels, ops.reshape(flat, (*x.shape[:2], -1)), 2)
    taken = ops.reshape(taken, flat.shape)
    best = ops.expand_dims(ops.argmax(taken, -1), -1)
    made, place = (ops.squeeze(ops.gather_elements(each, best, flat.ndim - 1), -1) for each in (taken, flat))
    return made, ops.cast(place, muster.int64)


def _counts(call, x, axes, output_size, output_ratio):
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{call} takes either output_size or output_ratio")
    if output_size is not None:
        return _windows.several(output_size, axes, "output_size")
    ratios = (output_ratio,) * axes if isinstance(output_ratio, float) else tuple(output_ratio)
    if len(ratios) != axes or not all(0 < each < 1 for each in ratios):
        raise ValueError(
            f"{call}: output_ratio is {axes} numbers between 0 and 1, or one, not {output_ratio!r}"
        )
    return tuple(int(size * ratio) for size, ratio in zip(x.shape[-axes:], ratios, strict=True))


def _pooled(call, input, axes, kernel_size, output_size, output_ratio, return_indices, samples):
    had = input.ndim == axes + 2
    x = input if had else ops.expand_dims(input, 0)
    counts = _counts(call, x, axes, output_size, output_ratio)
    kernel = _windows.several(kernel_size, axes, "kernel_size")
    for size, reach, count in zip(x.shape[2:], kernel, counts, strict=True):
        if reach + count - 1 > size:
            raise ValueError(f"{call}: {count} windows of {reach} do not fit in {size}")
    if samples is None:
        samples = ops.cast(_random.uniform_01((*x.shape[:2], axes), 0), x.dtype)
    elif not had and axes == 3:
        samples = ops.transpose(samples, (1, 0, 2)) if samples.shape[0] != 1 else samples
    made = _fractional(x, kernel, counts, samples)
    made = made if had else tuple(ops.squeeze(each, 0) for each in made)
    return made if return_indices else made[0]


def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """The greatest of windows of (N, C, H, W) whose places are random, about evenly apart (Graham, 2014).

    Args:
        input: Images, (N, C, H, W) or (C, H, W).
        kernel_size: Of the windows.
        output_size: How many windows there are along each axis, or
        output_ratio: the part of the sizes that this is, between 0 and 1.
        return_indices: Whether the flat places of the elements come as a second result, int64.
        _random_samples: (N, C, 2), from 0 to 1: where windows begin along the width and the height.
    """
    if _random_samples is not None:  # theirs are of the width and the height
        _random_samples = ops.flip(_random_samples, (2,))
    settings = kernel_size, output_size, output_ratio, return_indices, _random_samples
    return _pooled("fractional_max_pool2d", input, 2, *settings)


def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """The same of volumes (N, C, D, H, W) or (C, D, H, W); `_random_samples` are (N, C, 3)."""
    settings = kernel_size, output_size, output_ratio, return_indices, _random_samples
    return _pooled("fractional_max_pool3d", input, 3, *settings)


class MaxPool3DWithArgmax(Primitive):
    """(the greatest of each window of (N, C, D, H, W), its flat place in `argmax_type`)."""

    def __init__(
        self,
        ksize,
        strides,
        pads,
        dilation=(1, 1, 1),
        ceil_mode=False,
        data_format="NCDHW",
        argmax_type=muster.int64,
    ):
        super().__init__()
        _names.refuse("mindspore.ops.MaxPool3DWithArgmax", data_format=(data_format, "NCDHW"))
        self._windows = ksize, strides, pads, dilation, ceil_mode
        self.argmax_type = argmax_type

    def compute(self, x):
        """(values, places)."""
        values, places = _windows.max_pool(x, 3, *self._windows, True)
        return values, ops.cast(places, self.argmax_type)


class _Fractional(Primitive):
    axes = 2

    def __init__(self, ksize, output_shape, data_format=None):
        super().__init__()
        self.ksize, self.output_shape = ksize, output_shape

    def compute(self, input_x, random_samples):
        """(values, places int64)."""
        pool = fractional_max_pool2d if self.axes == 2 else fractional_max_pool3d
        return pool(input_x, self.ksize, self.output_shape, None, True, random_samples)


class FractionalMaxPoolWithFixedKsize(_Fractional):
    """ops.fractional_max_pool2d, called with the images and random samples."""


class FractionalMaxPool3DWithFixedKsize(_Fractional):
    """ops.fractional_max_pool3d, called with the volumes and random samples."""

    axes = 3


__all__ = [
    "FractionalMaxPool3DWithFixedKsize",
    "FractionalMaxPoolWithFixedKsize",
    "LogUniformCandidateSampler",
    "MaxPool3DWithArgmax",
    "UniformCandidateSampler",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "log_uniform_candidate_sampler",
    "uniform_candidate_sampler",
]
