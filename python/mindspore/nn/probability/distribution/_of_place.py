"""Distributions with a place and a scale: Cauchy's, logistic, half normal, Laplace's, Student's."""

import math

import muster
from mindspore import ops
from mindspore.nn.probability.distribution._base import Distribution, refuse_below


class Cauchy(Distribution):
    """Cauchy's distribution: it has no mean and no variance.

    Args:
        loc: Its median.
        scale: Half the distance of its quartiles, above 0.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("loc", "scale")
    _shown = ("location", "scale")

    def __init__(self, loc=None, scale=None, seed=None, dtype=muster.float32, name="Cauchy"):
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    def _check(self, loc, scale):
        refuse_below("Cauchy", scale=scale)

    def _log_prob(self, value, loc, scale):
        return -ops.log1p(ops.square((value - loc) / scale)) - ops.log(math.pi * scale)

    def _cdf(self, value, loc, scale):
        return ops.atan((value - loc) / scale) / math.pi + 0.5

    def _log_cdf(self, value, loc, scale):
        return ops.log1p(2.0 * ops.atan((value - loc) / scale) / math.pi) - math.log(2.0)

    def _mode(self, loc, scale):
        return loc

    def _mean(self, loc, scale):
        raise ValueError("mean is undefined for Cauchy distribution")

    def _var(self, loc, scale):
        raise ValueError("variance is undefined for Cauchy distribution")

    def _sd(self, loc, scale):
        raise ValueError("standard deviation is undefined for Cauchy distribution")

    def _entropy(self, loc, scale):
        return ops.log(scale) + math.log(4 * math.pi)

    def _kl(self, mine, others):
        (loc, scale), (loc_b, scale_b) = mine, others
        both = ops.square(scale + scale_b) + ops.square(loc - loc_b)
        return ops.log(both) - math.log(4.0) - ops.log(scale) - ops.log(scale_b)

    def _sample(self, shape, loc, scale):
        return loc + scale * ops.tan(math.pi * (self._uniforms(shape, loc, scale) - 0.5))


class Logistic(Distribution):
    """The logistic distribution, whose probabilities up to a value are a sigmoid.

    Args:
        loc: Its mean.
        scale: Of the sigmoid, above 0.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("loc", "scale")
    _shown = ("location", "scale")

    def __init__(self, loc=None, scale=None, seed=None, dtype=muster.float32, name="Logistic"):
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})

    def _check(self, loc, scale):
        refuse_below("Logistic", scale=scale)

    def _log_prob(self, value, loc, scale):
        z = (value - loc) / scale
        return -z - 2.0 * ops.softplus(-z) - ops.log(scale)

    def _cdf(self, value, loc, scale):
        return ops.sigmoid((value - loc) / scale)

    def _log_cdf(self, value, loc, scale):
        return -ops.softplus((loc - value) / scale)

    def _survival_function(self, value, loc, scale):
        return ops.sigmoid((loc - value) / scale)

    def _log_survival(self, value, loc, scale):
        return -ops.softplus((value - loc) / scale)

    def _mean(self, loc, scale):
        return loc

    _mode = _mean

    def _sd(self, loc, scale):
        return scale * (math.pi / math.sqrt(3))

    def _entropy(self, loc, scale):
        return ops.log(scale) + 2.0

    def _sample(self, shape, loc, scale):
        drawn = 1.0 - self._uniforms(shape, loc, scale)  # above 0
        drawn = ops.minimum(drawn, 1.0 - 2.0**-24)
        return (ops.log(drawn) - ops.log1p(-drawn)) * scale + loc


class HalfNormal(Distribution):
    """The upper half of a normal distribution: its density alone.

    Args:
        mean: Of the whole one.
        sd: Of the whole one, above 0.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("mean", "sd")

    def __init__(self, mean=None, sd=None, seed=None, dtype=muster.float32, name="HalfNormal"):
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    extend_repr = muster.Cell.extend_repr

    def _check(self, mean, sd):
        refuse_below("HalfNormal", sd=sd)

    def _prob(self, value, mean, sd):
        density = math.sqrt(2.0 / math.pi) / sd * ops.exp(-0.5 * ops.square((value - mean) / sd))
        return density * ops.cast(value >= 0, density.dtype)


class Laplace(Distribution):
    """Laplace's distribution: its density alone.

    Args:
        mean: Its mean.
        sd: Its scale, above 0, which MindSpore calls so: the deviation is sqrt(2) of it.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("mean", "sd")

    def __init__(self, mean=None, sd=None, seed=None, dtype=muster.float32, name="Laplace"):
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})

    extend_repr = muster.Cell.extend_repr

    def _check(self, mean, sd):
        refuse_below("Laplace", sd=sd)

    def _log_prob(self, value, mean, sd):
        return -ops.abs((value - mean) / sd) - ops.log(2.0 * sd)


class StudentT(Distribution):
    """Student's distribution: its density alone.

    Args:
        df: Degrees of freedom, above 0.
        mean: Its middle.
        sd: Its scale, above 0.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("df", "mean", "sd")

    def __init__(self, df=None, mean=None, sd=None, seed=None, dtype=muster.float32, name="StudentT"):
        super().__init__(seed, dtype, name, {"df": df, "mean": mean, "sd": sd})

    extend_repr = muster.Cell.extend_repr

    def _check(self, df, mean, sd):
        refuse_below("StudentT", df=df, sd=sd)

    def _log_prob(self, value, df, mean, sd):
        tails = -0.5 * (df + 1.0) * ops.log1p(ops.square((value - mean) / sd) / df)
        gammas = ops.lgamma(0.5 * df) - ops.lgamma(0.5 * (df + 1.0))
        return tails - (ops.log(sd) + 0.5 * ops.log(df) + 0.5 * math.log(math.pi) + gammas)
