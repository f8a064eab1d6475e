"""Distributions of whole numbers: Bernoulli's, and classes with a probability each."""

import muster
from mindspore import ops
from mindspore.nn.probability.distribution._base import Distribution, least


class Bernoulli(Distribution):
    """1 with a probability, else 0.

    Args:
        probs: The probability of 1.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("probs",)

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


class Categorical(Distribution):
    """Classes from 0 on.

    Args:
        probs: Their probabilities, along the last axis.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("probs",)

    def __init__(self, probs=None, seed=None, dtype=muster.int32, name="Categorical"):
        super().__init__(seed, dtype, name, {"probs": probs})

    def _check(self, probs):
        if probs is None:
            return
        if probs.ndim == 0:
            raise ValueError("Categorical: probs have an axis of classes")
        if least(probs) < 0 or float(abs(probs.sum(-1) - 1).max().asnumpy()) > 1e-5:
            raise ValueError("Categorical: probs are not negative, and their sum is 1")

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
