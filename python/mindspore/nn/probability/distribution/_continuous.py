"""Normal, uniform and exponential distributions."""

import math

import muster
from mindspore import ops
from mindspore.nn.probability.distribution._base import Distribution, least

_INFINITE = float("inf")


class Normal(Distribution):
    """The normal distribution.

    Args:
        mean: Its mean.
        sd: Its standard deviation, above 0.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("mean", "sd")

    def __init__(self, mean=None, sd=None, seed=None, dtype=muster.float32, name="Normal"):
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    def _check(self, mean, sd):
        if sd is not None and least(sd) <= 0:
            raise ValueError(f"Normal: sd is above 0, not {least(sd)}")

    def _log_prob(self, value, mean, sd):
        return -ops.square((value - mean) / sd) / 2 - ops.log(sd) - math.log(2 * math.pi) / 2

    def _cdf(self, value, mean, sd):
        return (1.0 + ops.erf((value - mean) / (sd * math.sqrt(2)))) / 2

    def _mean(self, mean, sd):
        return mean + ops.zeros_like(sd)

    _mode = _mean

    def _var(self, mean, sd):
        return ops.square(sd + ops.zeros_like(mean))

    def _entropy(self, mean, sd):
        return ops.log(sd + ops.zeros_like(mean)) + (1 + math.log(2 * math.pi)) / 2

    def _kl(self, mine, others):
        (mean, sd), (mean_b, sd_b) = mine, others
        ratio = ops.log(sd) - ops.log(sd_b)
        return ops.square((mean - mean_b) / sd_b) / 2 + ops.expm1(2 * ratio) / 2 - ratio

    def _sample(self, shape, mean, sd):
        return ops.normal(shape + (mean + sd).shape, mean, sd, self.seed)


class Uniform(Distribution):
    """All numbers from `low` to `high` alike.

    Args:
        low, high: Its ends.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("low", "high")

    def __init__(self, low=None, high=None, seed=None, dtype=muster.float32, name="Uniform"):
        super().__init__(seed, dtype, name, {"low": low, "high": high})

    def _check(self, low, high):
        if low is not None and high is not None and least(high - low) <= 0:
            raise ValueError("Uniform: high is above low")

    def _prob(self, value, low, high):
        inside = ops.logical_and(value >= low, value <= high)
        return ops.cast(inside, muster.float32) / (high - low)

    def _log_prob(self, value, low, high):
        return ops.log(self._prob(value, low, high))

    def _cdf(self, value, low, high):
        return ops.minimum(ops.maximum((value - low) / (high - low), 0.0), 1.0)

    def _mean(self, low, high):
        return (low + high) / 2

    def _mode(self, low, high):
        raise NotImplementedError("Uniform.mode(): all values are alike")

    def _var(self, low, high):
        return ops.square(high - low) / 12

    def _entropy(self, low, high):
        return ops.log(high - low)

    def _kl(self, mine, others):
        (low, high), (low_b, high_b) = mine, others
        within = ops.logical_and(low_b <= low, high <= high_b)
        finite = ops.log(high_b - low_b) - ops.log(high - low)
        return ops.select(within, finite, ops.full_like(finite, _INFINITE))

    def _sample(self, shape, low, high):
        return self._uniforms(shape, low, high) * (high - low) + low


class Exponential(Distribution):
    """Waiting times.

    Args:
        rate: Events in a unit of time, above 0.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("rate",)

    def __init__(self, rate=None, seed=None, dtype=muster.float32, name="Exponential"):
        super().__init__(seed, dtype, name, {"rate": rate})

    def _check(self, rate):
        if rate is not None and least(rate) <= 0:
            raise ValueError(f"Exponential: rate is above 0, not {least(rate)}")

    def _log_prob(self, value, rate):
        inside = ops.log(rate) - rate * value
        return ops.select(value + rate * 0 >= 0, inside, ops.full_like(inside, -_INFINITE))

    def _cdf(self, value, rate):
        return -ops.expm1(-rate * ops.maximum(value, 0.0))

    def _mean(self, rate):
        return 1.0 / rate

    def _mode(self, rate):
        return ops.zeros_like(rate)

    def _var(self, rate):
        return 1.0 / ops.square(rate)

    def _entropy(self, rate):
        return 1.0 - ops.log(rate)

    def _kl(self, mine, others):
        (rate,), (rate_b,) = mine, others
        return ops.log(rate) - ops.log(rate_b) + rate_b / rate - 1.0

    def _sample(self, shape, rate):
        return -ops.log(1.0 - self._uniforms(shape, rate)) / rate
