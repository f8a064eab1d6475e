"""Normal, uniform, exponential, gamma and beta distributions."""

import math

import muster
from mindspore import ops
from mindspore.nn.probability.distribution._base import Distribution, least, refuse_below

_INFINITE = float("inf")


class Normal(Distribution):
    """The normal distribution.

    Args:
        mean: Its mean.
        sd: Its standard deviation, above 0.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("mean", "sd")
    _shown = ("mean", "standard deviation")

    def __init__(self, mean=None, sd=None, seed=None, dtype=muster.float32, name="Normal"):
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    def _check(self, mean, sd):
        refuse_below("Normal", sd=sd)

    def _log_prob(self, value, mean, sd):
        return -ops.square((value - mean) / sd) / 2 - ops.log(sd) - math.log(2 * math.pi) / 2

    def _cdf(self, value, mean, sd):
        return (1.0 + ops.erf((value - mean) / (sd * math.sqrt(2)))) / 2

    def _mean(self, mean, sd):
        return mean

    _mode = _mean

    def _var(self, mean, sd):
        return ops.square(sd)

    def _entropy(self, mean, sd):
        return ops.log(sd) + (1 + math.log(2 * math.pi)) / 2

    def _kl(self, mine, others):
        (mean, sd), (mean_b, sd_b) = mine, others
        ratio = ops.log(sd) - ops.log(sd_b)
        return ops.square((mean - mean_b) / sd_b) / 2 + ops.expm1(2 * ratio) / 2 - ratio

    def _sample(self, shape, mean, sd):
        return ops.normal(shape + mean.shape, mean, sd, self.seed)


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
        refuse_below("Exponential", rate=rate)

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


class Gamma(Distribution):
    """Waiting times for several events.

    Args:
        concentration: How many, above 0: a list or a tensor.
        rate: Events in a unit of time, above 0: a list or a tensor.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("concentration", "rate")
    _scalars_refused = (int, float)

    def __init__(self, concentration=None, rate=None, seed=None, dtype=muster.float32, name="Gamma"):
        super().__init__(seed, dtype, name, {"concentration": concentration, "rate": rate})

    def _check(self, concentration, rate):
        refuse_below("Gamma", concentration=concentration, rate=rate)

    def _log_prob(self, value, concentration, rate):
        constant = ops.lgamma(concentration) - concentration * ops.log(rate)
        return (concentration - 1.0) * ops.log(value) - rate * value - constant

    def _cdf(self, value, concentration, rate):
        return ops.igamma(concentration, rate * value)

    def _mean(self, concentration, rate):
        return concentration / rate

    def _mode(self, concentration, rate):
        mode = (concentration - 1.0) / rate
        return ops.select(concentration > 1.0, mode, ops.full_like(mode, float("nan")))

    def _var(self, concentration, rate):
        return concentration / ops.square(rate)

    def _entropy(self, concentration, rate):
        logarithms = ops.lgamma(concentration) - ops.log(rate)
        return concentration + logarithms + (1.0 - concentration) * ops.digamma(concentration)

    def _kl(self, mine, others):
        (a, rate), (b, rate_b) = mine, others
        constants = ops.lgamma(b) - ops.lgamma(a) + b * (ops.log(rate) - ops.log(rate_b))
        return (a - b) * ops.digamma(a) + constants + a * (rate_b / rate - 1.0)

    def _sample(self, shape, concentration, rate):
        return ops.gamma(shape, concentration, rate, self.seed)


class Beta(Distribution):
    """Fractions between 0 and 1.

    Args:
        concentration1, concentration0: The weights of 1 and of 0, above 0: lists or tensors.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("concentration1", "concentration0")
    _scalars_refused = (float,)

    def __init__(
        self, concentration1=None, concentration0=None, seed=None, dtype=muster.float32, name="Beta"
    ):
        super().__init__(
            seed, dtype, name, {"concentration1": concentration1, "concentration0": concentration0}
        )

    def _check(self, concentration1, concentration0):
        refuse_below("Beta", concentration1=concentration1, concentration0=concentration0)

    @staticmethod
    def _constant(a, b):
        """The logarithm of the beta function."""
        return ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b)

    def _log_prob(self, value, a, b):
        return (a - 1.0) * ops.log(value) + (b - 1.0) * ops.log1p(-value) - self._constant(a, b)

    def _mean(self, a, b):
        return a / (a + b)

    def _mode(self, a, b):
        mode = (a - 1.0) / (a + b - 2.0)
        return ops.select(ops.logical_and(a > 1.0, b > 1.0), mode, ops.full_like(mode, float("nan")))

    def _var(self, a, b):
        return a * b / (ops.square(a + b) * (a + b + 1.0))

    def _entropy(self, a, b):
        apart = (a - 1.0) * ops.digamma(a) + (b - 1.0) * ops.digamma(b)
        return self._constant(a, b) - apart + (a + b - 2.0) * ops.digamma(a + b)

    def _kl(self, mine, others):
        (a, b), (a_b, b_b) = mine, others
        constants = self._constant(a_b, b_b) - self._constant(a, b)
        apart = ops.digamma(a) * (a_b - a) + ops.digamma(b) * (b_b - b)
        return constants - apart + ops.digamma(a + b) * (a_b + b_b - a - b)

    def _sample(self, shape, a, b):
        ones = ops.ones_like(a)
        of_one, of_zero = (ops.gamma(shape, each, ones, self.seed) for each in (a, b))
        return of_one / (of_one + of_zero)
