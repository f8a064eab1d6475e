"""Distributions of whole numbers: Bernoulli's, geometric, Poisson's, and classes with a probability each."""

import muster
from mindspore import ops
from mindspore.common import dtype as mstype
from mindspore.nn.probability.distribution._base import Distribution, least, refuse_below


class Bernoulli(Distribution):
    """1 with a probability, else 0.

    Args:
        probs: The probability of 1.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("probs",)
    _dtypes = mstype.number_type

    def __init__(self, probs=None, seed=None, dtype=muster.int32, name="Bernoulli"):
        super().__init__(seed, dtype, name, {"probs": probs})

    def _check(self, probs):
        if probs is not None and (least(probs) < 0 or -least(-probs) > 1):
            raise ValueError("Bernoulli: probs are from 0 to 1")

    def _log_prob(self, value, probs):
        return value * ops.log(probs) + (1.0 - value) * ops.log(1.0 - probs)

    def _cdf(self, value, probs):
        below = ops.cast(value >= 0, muster.float32) * (1.0 - probs)
        return ops.select(value + probs * 0 >= 1, ops.ones_like(value + probs), below)

    def _mean(self, probs):
        return probs

    def _mode(self, probs):
        return ops.cast(probs > 0.5, self.dtype)

    def _var(self, probs):
        return probs * (1.0 - probs)

    def _entropy(self, probs):
        return -probs * ops.log(probs) - (1.0 - probs) * ops.log(1.0 - probs)

    def _kl(self, mine, others):
        (probs,), (other,) = mine, others
        return probs * ops.log(probs / other) + (1.0 - probs) * ops.log((1.0 - probs) / (1.0 - other))

    def _sample(self, shape, probs):
        return self._uniforms(shape, probs) < probs


class Geometric(Distribution):
    """Failures before the first success.

    Args:
        probs: The probability of success, between 0 and 1.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("probs",)
    _dtypes = mstype.number_type

    def __init__(self, probs=None, seed=None, dtype=muster.int32, name="Geometric"):
        super().__init__(seed, dtype, name, {"probs": probs})

    def _check(self, probs):
        if probs is not None and (least(probs) <= 0 or -least(-probs) >= 1):
            raise ValueError("Geometric: probs are between 0 and 1, without the ends")

    def _value(self, value):
        return ops.floor(self._tensor(value))

    def _prob(self, value, probs):
        inside = ops.exp(ops.log(1.0 - probs) * value + ops.log(probs))
        return ops.select(value + probs * 0 < 0, ops.zeros_like(inside), inside)

    def _cdf(self, value, probs):
        inside = 1.0 - ops.pow(1.0 - probs, value + 1.0)
        return ops.select(value + probs * 0 < 0, ops.zeros_like(inside), inside)

    def _mean(self, probs):
        return (1.0 - probs) / probs

    def _mode(self, probs):
        return ops.cast(ops.zeros_like(probs), self.dtype)

    def _var(self, probs):
        return (1.0 - probs) / ops.square(probs)

    def _entropy(self, probs):
        return -((1.0 - probs) * ops.log(1.0 - probs) + probs * ops.log(probs)) / probs

    def _kl(self, mine, others):
        (probs,), (other,) = mine, others
        failures = (1.0 - probs) / probs * ops.log((1.0 - probs) / (1.0 - other))
        return ops.log(probs / other) + failures

    def _sample(self, shape, probs):
        drawn = 1.0 - self._uniforms(shape, probs)  # above 0
        return ops.floor(ops.log(drawn) / ops.log(1.0 - probs))


class Poisson(Distribution):
    """Events in a unit of time.

    Args:
        rate: Their mean, above 0: a list or a tensor.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("rate",)
    _dtypes = mstype.number_type
    _scalars_refused = (int, float)

    def __init__(self, rate=None, seed=None, dtype=muster.float32, name="Poisson"):
        super().__init__(seed, dtype, name, {"rate": rate})

    def _check(self, rate):
        refuse_below("Poisson", rate=rate)

    def _log_prob(self, value, rate):
        counted = ops.maximum(value, 0.0)
        inside = ops.log(rate) * counted - ops.lgamma(counted + 1.0)
        below = ops.full_like(inside, float("-inf"))
        return ops.select(value + rate * 0 >= 0, inside, below) - rate

    def _cdf(self, value, rate):
        inside = 1.0 - ops.igamma(1.0 + ops.maximum(value, 0.0), rate)
        return ops.select(value + rate * 0 < 0, ops.zeros_like(inside), inside)

    def _mean(self, rate):
        return rate

    _var = _mean

    def _mode(self, rate):
        return ops.floor(rate)

    def _sample(self, shape, rate):
        return ops.random_poisson(shape, rate, self.seed)


class Categorical(Distribution):
    """Classes from 0 on.

    Args:
        probs: Their probabilities, along the last axis.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("probs",)
    _dtypes = mstype.number_type

    def __init__(self, probs=None, seed=None, dtype=muster.int32, name="Categorical"):
        super().__init__(seed, dtype, name, {"probs": probs})

    def _check(self, probs):
        if probs is None:
            return
        if probs.ndim == 0:
            raise ValueError("Categorical: probs have an axis of classes")
        if least(probs) < 0 or float(abs(probs.sum(-1) - 1).max().asnumpy()) > 1e-5:
            raise ValueError("Categorical: probs are not negative, and their sum is 1")

    def extend_repr(self):
        """The probabilities."""
        return f"probs = {self.probs}"

    @staticmethod
    def _classes(probs):
        return ops.arange(probs.shape[-1]).astype(muster.float32)

    def _chosen(self, value, table):
        """The elements of `table` for classes."""
        hot = ops.cast(value.expand_dims(-1) == self._classes(table), muster.float32)
        return (hot * table).sum(-1)

    def _log_prob(self, value, probs):
        return ops.log(self._prob(value, probs))

    def _prob(self, value, probs):
        return self._chosen(value, probs)

    def _cdf(self, value, probs):
        upto = ops.cast(self._classes(probs) <= value.expand_dims(-1), muster.float32)
        return (upto * probs).sum(-1)

    def _mean(self, probs):
        return (self._classes(probs) * probs).sum(-1, keepdims=True)

    def _mode(self, probs):
        return ops.cast(probs.argmax(-1), self.dtype)

    def _var(self, probs):
        squares = (ops.square(self._classes(probs)) * probs).sum(-1, keepdims=True)
        return squares - ops.square(self._mean(probs))

    @staticmethod
    def _times_log(probs, of):
        """The sum of probs * log(of); what is never drawn adds nothing."""
        return ops.select(probs > 0, probs * ops.log(of), ops.zeros_like(probs)).sum(-1)

    def _entropy(self, probs):
        return -self._times_log(probs, probs)

    def _kl(self, mine, others):
        (probs,), (other,) = mine, others
        return self._times_log(probs, probs) - self._times_log(probs, other)

    def _sample(self, shape, probs):
        drawn = ops.uniform(
            (*shape, *probs.shape[:-1], 1),
            muster.Tensor(0.0, muster.float32),
            muster.Tensor(1.0, muster.float32),
            self.seed,
        )
        edges = probs.cumsum(-1)
        return ops.cast(drawn >= edges[..., :-1], muster.float32).sum(-1)
