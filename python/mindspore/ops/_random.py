"""mindspore.ops: random numbers, of the seed that mindspore.set_seed gives, the step and the call."""

import math

import muster
from mindspore.ops import _array, _numbers
from mindspore.ops._numbers import tensor
from muster import _core, ops

sources: list = []  # the generators of calls that are being made, the innermost last


def _drawn(op, shape, dtype, seed):
    """Numbers of "random_uniform" or "random_normal", from the generator of the call where it has one."""
    return sources[-1].drawn(op, shape, dtype) if sources else _core._random_numbers(op, shape, dtype, seed)


def _sizes(size):
    if isinstance(size, muster.Tensor):
        size = size.asnumpy().reshape(-1).tolist()
    return (size,) if isinstance(size, int) else tuple(size)


def _varargs(size):
    return _sizes(size[0]) if len(size) == 1 else tuple(size)


def uniform_01(shape, seed=None, dtype=muster.float32):
    """Numbers in [0, 1)."""
    made = _drawn("random_uniform", _sizes(shape), muster.float32, seed or 0)
    return made if dtype in (None, muster.float32) else ops.cast(made, dtype)


def standard_normal(shape, seed=None):
    """Numbers of the normal distribution with mean 0 and deviation 1."""
    return _drawn("random_normal", _sizes(shape), muster.float32, seed or 0)


def uniform(shape, minval, maxval, seed=None, dtype=muster.float32):
    """Numbers between minval and maxval, whole ones without maxval in int32; shapes broadcast."""
    low, high = tensor(minval), tensor(maxval)
    shape = _broadcast(_sizes(shape), low.shape, high.shape)
    if dtype == muster.int32:
        return _between(shape, low, high, seed, dtype)
    return ops.add(ops.mul(uniform_01(shape, seed), ops.sub(high, low)), low)


def _broadcast(*shapes):
    import numpy

    return numpy.broadcast_shapes(*[tuple(each) for each in shapes])


def _between(shape, low, high, seed, dtype):
    """Whole numbers of [low, high): 53 random bits, so that no number is likelier by more than 2^-21."""
    part = _drawn("random_uniform", _sizes(shape), muster.float64, seed or 0)
    low, high = ops.cast(low, muster.float64), ops.cast(high, muster.float64)
    return ops.cast(ops.floor(ops.add(ops.mul(part, ops.sub(high, low)), low)), dtype)


def normal(shape, mean, stddev, seed=None):
    """Numbers of the normal distribution; the shape is broadcast with those of mean and deviation."""
    mean, stddev = tensor(mean), tensor(stddev)
    shape = _broadcast(_sizes(shape), mean.shape, stddev.shape)
    return ops.add(ops.mul(standard_normal(shape, seed), ops.cast(stddev, muster.float32)), mean)


def rand(*size, dtype=None, seed=None):
    """Numbers in [0, 1)."""
    return uniform_01(_varargs(size), seed, dtype)


def randn(*size, dtype=None, seed=None):
    """Numbers of the normal distribution with mean 0 and deviation 1."""
    made = standard_normal(_varargs(size), seed)
    return made if dtype is None else ops.cast(made, dtype)


def randint(low, high, size, seed=None, *, dtype=None):
    """Whole numbers of [low, high), int64."""
    return _between(_sizes(size), tensor(low), tensor(high), seed, dtype or muster.int64)


def rand_like(input, seed=None, *, dtype=None):
    """rand in the shape and dtype of input."""
    return uniform_01(input.shape, seed, dtype or input.dtype)


def randn_like(input, seed=None, *, dtype=None):
    """randn in the shape of input, float32 unless `dtype` says otherwise."""
    return ops.cast(standard_normal(input.shape, seed), dtype or muster.float32)


def randint_like(input, low, high, seed=None, *, dtype=None):
    """randint in the shape and dtype of input."""
    return randint(low, high, input.shape, seed, dtype=dtype or input.dtype)


def randperm(n, seed=0, offset=0, dtype=muster.int64):
    """0, 1, ..., n - 1 in random order."""
    order = ops.sort(_drawn("random_uniform", (n,), muster.float64, seed or 0), 0)[1]
    return ops.cast(order, dtype)


def shuffle(x, seed=None):
    """The parts of the first axis in random order."""
    return ops.gather(x, randperm(x.shape[0], seed, dtype=muster.int32), 0) if x.ndim else x


def bernoulli(input, p=0.5, seed=None):
    """1 with probability p, else 0, in the shape and dtype of input."""
    limit = ops.cast(tensor(p), muster.float32)
    drawn = ops.less(uniform_01(input.shape, None if seed == -1 else seed), limit)
    return ops.cast(drawn, input.dtype)


def bernoulli_ext(input, *, generator=None):
    """1 with the probability that input says, else 0."""
    from mindspore.common._generators import drawing

    with drawing(generator):
        return ops.cast(ops.less(uniform_01(input.shape), input), input.dtype)


def truncated_normal(shape, dtype=muster.float32, seed=0):
    """Normal numbers between -2 and 2."""
    low = 0.022750131948179195  # of the normal distribution below -2
    part = _drawn("random_uniform", _sizes(shape), muster.float64, seed or 0)
    part = ops.add(ops.mul(part, 1 - 2 * low), low)
    made = ops.mul(ops.erfinv(ops.sub(ops.mul(part, 2.0), 1.0)), math.sqrt(2))
    return ops.cast(made, dtype)


def _of_parameter(op, parameter, seed):
    return _core._random_numbers_of(op, ops.stop_gradient(parameter), seed or 0)


def gamma(shape, alpha, beta, seed=None):
    """Numbers of the gamma distribution with shape alpha and rate beta."""
    alpha, beta = ops.cast(tensor(alpha), muster.float32), ops.cast(tensor(beta), muster.float32)
    whole = (*_sizes(shape), *_broadcast(alpha.shape, beta.shape))
    return ops.div(_of_parameter("random_gamma", ops.broadcast_to(alpha, whole), seed), beta)


def random_gamma(shape, alpha, seed=None):
    """Numbers of the gamma distribution with shape alpha: (shape, shape of alpha)."""
    alpha = _numbers.floating(alpha)
    made = _of_parameter("random_gamma", ops.broadcast_to(alpha, (*_sizes(shape), *alpha.shape)), seed)
    return made


def poisson(shape, mean, seed=None):
    """Numbers of the Poisson distribution: (shape, shape of mean)."""
    return random_poisson(shape, mean, seed, muster.float32)


def random_poisson(shape, rate, seed=None, dtype=muster.float32):
    """Numbers of the Poisson distribution: (shape, shape of rate)."""
    rate = _numbers.floating(rate)
    made = _of_parameter("random_poisson", ops.broadcast_to(rate, (*_sizes(shape), *rate.shape)), seed)
    return ops.cast(made, dtype)


def laplace(shape, mean, lambda_param, seed=None):
    """Numbers of the Laplace distribution."""
    mean, scale = tensor(mean), tensor(lambda_param)
    shape = _broadcast(_sizes(shape), mean.shape, scale.shape)
    return ops.add(ops.mul(standard_laplace(shape, seed), scale), mean)


def standard_laplace(shape, seed=None):
    """Numbers of the Laplace distribution with mean 0 and scale 1."""
    part = _drawn("random_uniform", _sizes(shape), muster.float64, seed or 0)
    away = ops.sub(part, 0.5)
    size = ops.neg(ops.log(ops.maximum(ops.sub(1.0, ops.mul(ops.abs(away), 2.0)), 1e-300)))
    return ops.cast(ops.mul(ops.sign(away), size), muster.float32)


def cauchy(size, median=0.0, sigma=1.0):
    """Numbers of the Cauchy distribution."""
    part = _drawn("random_uniform", _sizes(size), muster.float64, 0)
    angle = ops.mul(ops.sub(part, 0.5), math.pi)
    made = ops.add(ops.mul(ops.div(ops.sin(angle), ops.cos(angle)), sigma), median)
    return ops.cast(made, muster.float32)


def log_normal(x, mean=1.0, std=2.0):
    """e^n for normal numbers n, in the shape of x."""
    made = ops.exp(ops.add(ops.mul(standard_normal(x.shape), std), mean))
    return ops.cast(made, x.dtype)


def _chosen_once(weights, count, seed):
    """`count` different places of each row, likelier where the weight is greater (Gumbel's way)."""
    part = _drawn("random_uniform", tuple(weights.shape), muster.float64, seed or 0)
    noise = ops.neg(ops.log(ops.maximum(ops.neg(ops.log(ops.maximum(part, 1e-300))), 1e-300)))
    scores = ops.add(ops.log(ops.cast(weights, muster.float64)), noise)
    return ops.topk(scores, count)[1]


def multinomial(input, num_samples, replacement=True, seed=None):
    """num_samples places of each row, as likely as the weights there."""
    if not replacement:
        return _chosen_once(input, num_samples, seed)
    totals = ops.cumsum(ops.cast(input, muster.float64), input.ndim - 1)
    rows = ops.reshape(totals, (-1, input.shape[-1]))
    part = _drawn("random_uniform", (rows.shape[0], num_samples), muster.float64, seed or 0)
    found = ops.searchsorted(rows, ops.mul(part, _array.part_of(rows, (slice(None), slice(-1, None)))), True)
    found = ops.minimum(found, input.shape[-1] - 1)
    return ops.cast(ops.reshape(found, (*input.shape[:-1], num_samples)), muster.int32)


def multinomial_with_replacement(x, seed, offset, numsamples, replacement=False):
    """numsamples places of each row, as likely as the weights there, int64."""
    return ops.cast(multinomial(x, numsamples, True, seed), muster.int64)


def random_categorical(logits, num_sample, seed=0, dtype=muster.int64):
    """num_sample places of each row, as likely as the softmax of the logits."""
    return ops.cast(multinomial(ops.softmax(logits, -1), num_sample, True, seed), dtype)


def choice_with_mask(input_x, count=256, seed=None):
    """(places (count, axes) of true elements chosen at random, whether each was found)."""
    flat = ops.cast(ops.reshape(input_x, (-1,)), muster.float32)
    part = ops.add(uniform_01(flat.shape, seed), flat)  # true ones above all others
    found, order = ops.sort(part, 0, True)
    size = flat.shape[0]
    kept = min(count, size)
    at = ops.slice(order, [0], [kept])
    mask = ops.greater_equal(ops.slice(found, [0], [kept]), 1.0)
    at = ops.select(mask, at, ops.zeros_like(at))
    places = []
    for each in reversed(input_x.shape):
        places.append(ops.mod(at, each))
        at = ops.floor_div(at, each)
    places = ops.cast(ops.stack(places[::-1], 1), muster.int32)
    if kept < count:
        places = ops.concat([places, ops.zeros((count - kept, input_x.ndim), muster.int32)], 0)
        mask = ops.concat([mask, ops.cast(ops.zeros((count - kept,)), muster.bool_)], 0)
    return places, mask


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1):
    """The softmax of (logits + Gumbel noise) / tau; `hard`: 1 for the greatest."""
    part = ops.maximum(uniform_01(logits.shape), 1e-20)
    noise = ops.neg(ops.log(ops.maximum(ops.neg(ops.log(part)), 1e-20)))
    soft = ops.softmax(ops.div(ops.add(logits, noise), tau), dim)
    if not hard:
        return soft
    top = ops.reduce_max(soft, dim, True)
    one = ops.cast(ops.equal(soft, top), soft.dtype)
    return ops.add(ops.stop_gradient(ops.sub(one, soft)), soft)


def dropout_nd(x, p, training, axes):
    """Whole parts of x dropped: those along `axes` together."""
    if not training or p == 0:
        return x
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p lies in [0, 1], not {p}")
    shape = [1 if at in axes else size for at, size in enumerate(x.shape)]
    kept = ops.cast(ops.greater_equal(uniform_01(shape), p), x.dtype)
    return ops.mul(x, ops.mul(kept, 1 / (1 - p) if p < 1 else 0.0))


def dropout1d(input, p=0.5, training=True):
    """Whole channels of (N, C, L) or (C, L) dropped."""
    return dropout_nd(input, p, training, (input.ndim - 1,))


def dropout2d(input, p=0.5, training=True):
    """Whole channels of (N, C, H, W) dropped."""
    return dropout_nd(input, p, training, (2, 3))


def dropout3d(input, p=0.5, training=True):
    """Whole channels of (N, C, D, H, W) dropped."""
    return dropout_nd(input, p, training, (2, 3, 4))


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3):
    """input where it is positive, else times a random slope between lower and upper."""
    slopes = ops.add(ops.mul(uniform_01(input.shape), upper - lower), lower)
    return ops.select(ops.greater_equal(input, 0), input, ops.mul(input, ops.cast(slopes, input.dtype)))


_OTHERS = ("tensor", "uniform_01", "dropout_nd", "truncated_normal", "cauchy", "log_normal")
__all__ = [
    name
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_") and name not in _OTHERS
]
