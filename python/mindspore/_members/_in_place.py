"""Members of Tensor that give the object another value."""

import muster
from mindspore import ops as named
from mindspore._members._facts import _named
from mindspore._members._numbers import add, sub
from mindspore._members._places import _added_along, _put, index_put, scatter, scatter_add
from mindspore._members._shapes import fill_diagonal
from mindspore.numpy import _shared, array_creations
from mindspore.numpy._shared import cast, is_float
from muster import ops


def _in_place(name, compute, words):
    def method(self, *args, **kwargs):
        return _put(self, compute(self, *args, **kwargs))

    method.__doc__ = words
    method.__wrapped__ = compute
    return _named(method, name)


add_ = _in_place("add_", add, "add, in place.")
sub_ = _in_place("sub_", sub, "sub, in place.")
exp_ = _in_place("exp_", lambda self: ops.exp(self), "e to the power of each element, in place.")
log_ = _in_place("log_", lambda self: ops.log(self), "The natural logarithm, in place.")
floor_ = _in_place("floor_", lambda self: ops.floor(self), "Each element rounded down, in place.")
tanh_ = _in_place("tanh_", lambda self: ops.tanh(self), "The hyperbolic tangent, in place.")
erfinv_ = _in_place("erfinv_", lambda self: named.erfinv(self), "The inverse of erf, in place.")
mul_ = _in_place("mul_", lambda self, other: self * other, "The product, in place.")
remainder_ = _in_place("remainder_", lambda self, other: self % other, "The remainder, in place.")
floor_divide_ = _in_place(
    "floor_divide_", lambda self, other: self // other, "The quotient rounded down, in place."
)
index_add_ = _in_place("index_add_", _added_along, "index_add, in place.")
index_put_ = _in_place("index_put_", index_put, "index_put, in place.")
scatter_ = _in_place("scatter_", scatter, "scatter, in place.")
scatter_add_ = _in_place("scatter_add_", scatter_add, "scatter_add, in place.")
fill_diagonal_ = _in_place("fill_diagonal_", fill_diagonal, "fill_diagonal, in place.")


def div_(self, other, rounding_mode=None):
    """div, in place."""
    return _put(self, named.div(self, other, rounding_mode=rounding_mode))


def addmm_(self, mat1, mat2, *, beta=1, alpha=1):
    """addmm, in place."""
    return _put(self, named.addmm(self, mat1, mat2, beta=beta, alpha=alpha))


def clamp_(self, min=None, max=None):
    """Each element between two bounds, in place."""
    return _put(self, named.clamp(self, min, max))


def masked_fill_(self, mask, value):
    """masked_fill, in place."""
    return _put(self, named.masked_fill(self, mask, value))


def copy_(self, src, non_blocking=False):
    """The elements of another tensor, which broadcast, in place."""
    return _put(self, ops.broadcast_to(cast(_shared.tensor(src), self.dtype), self.shape))


def fill_(self, value):
    """One value everywhere, in place."""
    return _put(self, array_creations.full(self.shape, value, self.dtype))


def zero_(self):
    """0 everywhere, in place."""
    return _put(self, ops.zeros_like(self))


def put_(self, index, source, accumulate=False):
    """The elements of source at indices among all, in place."""
    flat = index_put(
        ops.reshape(self, (-1,)), [ops.reshape(index, (-1,))], ops.reshape(source, (-1,)), accumulate
    )
    return _put(self, ops.reshape(flat, self.shape))


def assign_value(self, value):
    """The value of another tensor, in place."""
    return _put(self, _shared.tensor(value))


# ---- Random numbers ----------------------------------------------------------------------------------------


def _drawing(generator):
    from mindspore.common._generators import drawing  # with the first draw: imports stay fast

    return drawing(generator)


def _draw(self, low, high):
    return named.uniform(self.shape, muster.Tensor(low, muster.float32), muster.Tensor(high, muster.float32))


def uniform(self, from_=0.0, to=1.0, generator=None):
    """A tensor of this shape with numbers from `from_` to `to`, each as likely."""
    with _drawing(generator):
        return cast(_draw(self, float(from_), float(to)), self.dtype)


def uniform_(self, from_=0, to=1, *, generator=None):
    """uniform, in place."""
    return _put(self, uniform(self, from_, to, generator))


def normal_(self, mean=0, std=1, *, generator=None):
    """Numbers of a normal distribution, in place."""
    with _drawing(generator):
        drawn = named.standard_normal(self.shape)
    return _put(self, ops.add(ops.mul(drawn, float(std)), float(mean)))


def log_normal(self, mean=1.0, std=2.0):
    """A tensor of this shape whose logarithms have a normal distribution."""
    drawn = ops.add(ops.mul(named.standard_normal(self.shape), float(std)), float(mean))
    return cast(ops.exp(drawn), self.dtype)


def cauchy(self, median=0.0, sigma=1.0):
    """A tensor of this shape and dtype with numbers of a Cauchy distribution."""
    from mindspore.ops import _random

    return cast(_random.cauchy(self.shape, median, sigma), self.dtype)


def exponential_(self, lambd=1, *, generator=None):
    """Numbers of an exponential distribution, in place."""
    with _drawing(generator):
        drawn = _draw(self, 0.0, 1.0)
    return _put(self, ops.div(ops.neg(ops.log(ops.sub(1.0, drawn))), float(lambd)))


def bernoulli_(self, p=0.5, *, generator=None):
    """1 with the probability p, else 0, in place."""
    with _drawing(generator):
        drawn = _draw(self, 0.0, 1.0)
    return _put(self, ops.less(drawn, p))


def random_(self, from_=0, to=None, *, generator=None):
    """Whole numbers from `from_` to below `to`, in place."""
    if to is None:
        to = 2**24 if is_float(self.dtype) else 2**31 - 1
    with _drawing(generator):
        drawn = _draw(self, float(from_), float(to))
    return _put(self, ops.floor(drawn))


def multinomial(self, num_samples, replacement=True, seed=None):
    """Indices that are drawn with these probabilities, along the last axis."""
    return named.multinomial(self, num_samples, replacement, seed)


def random_categorical(self, num_sample, seed=0, dtype=muster.int64):
    """Indices that are drawn with these logarithms of probabilities, along the last axis."""
    return named.random_categorical(self, num_sample, seed, dtype)
