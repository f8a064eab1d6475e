"""mindspore.mint: random numbers, of set_seed's seed or of a Generator (mindspore.common._generators)."""

import muster
from mindspore import ops as named
from mindspore.common._generators import drawing
from mindspore.mint._functions import argsort
from mindspore.numpy import _shared
from mindspore.numpy._shared import cast
from muster import ops


def _uniform(shape):
    return named.uniform(tuple(shape), muster.Tensor(0.0), muster.Tensor(1.0))


def _shape(size):
    return _shared.shape_of(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)


def rand(*size, generator=None, dtype=None):
    """Numbers from 0 to 1, each as likely."""
    with drawing(generator):
        return cast(_uniform(_shape(size)), dtype)


def rand_like(input, *, dtype=None):
    """Numbers from 0 to 1 in the shape of a tensor."""
    with drawing():
        return cast(_uniform(input.shape), dtype or input.dtype)


def randn(*size, generator=None, dtype=None):
    """Numbers of the normal distribution with mean 0 and variance 1."""
    with drawing(generator):
        return cast(named.standard_normal(_shape(size)), dtype)


def randn_like(input, *, dtype=None):
    """Numbers of the normal distribution in the shape of a tensor."""
    with drawing():
        return cast(named.standard_normal(tuple(input.shape)), dtype or input.dtype)


def _whole(shape, low, high):
    if low >= high:
        raise ValueError(f"randint: low {low} is not below high {high}")
    return ops.add(ops.floor(ops.mul(_uniform(shape), float(high - low))), float(low))


def randint(*args, generator=None, dtype=None, low=0, high=None, size=None):
    """randint(low=0, high, size): whole numbers from low to below high, int64."""
    if args and not isinstance(args[-1], int):
        *args, size = args
    low, high = (args[0], args[1]) if len(args) == 2 else (low, args[0] if args else high)
    with drawing(generator):
        return ops.cast(_whole(_shared.shape_of(size), low, high), dtype or muster.int64)


def randint_like(input, *args, dtype=None, low=0, high=None):
    """randint_like(input, low=0, high): whole numbers from low to below high in the shape of a tensor."""
    low, high = (args[0], args[1]) if len(args) == 2 else (low, args[0] if args else high)
    with drawing():
        return ops.cast(_whole(input.shape, low, high), dtype or input.dtype)


def randperm(n, *, generator=None, dtype=muster.int64):
    """The numbers from 0 to below n in any order."""
    with drawing(generator):
        return ops.cast(argsort(_uniform((n,))), dtype)


def bernoulli(input, *, generator=None):
    """1 with the probability that each element says, else 0."""
    with drawing(generator):
        return ops.cast(ops.less(_uniform(input.shape), input), input.dtype)


def normal(mean=0.0, std=1.0, size=None, generator=None):
    """Numbers of normal distributions with means and deviations, numbers or tensors."""
    shapes = [each.shape for each in (mean, std) if isinstance(each, muster.Tensor)]
    shape = _shared.broadcast_shape(*shapes) if size is None else _shared.shape_of(size)
    with drawing(generator):
        return ops.add(ops.mul(named.standard_normal(shape), std), mean)


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices that are drawn with these probabilities along the last axis, int64."""
    with drawing(generator):
        return ops.cast(named.multinomial(input, num_samples, replacement), muster.int64)


__all__ = _shared.public(globals(), __name__)
