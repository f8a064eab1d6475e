"""Distributions of what a function makes of draws of another one."""

import math

import muster
from mindspore import ops
from mindspore.nn.probability.bijector import Bijector, Exp, GumbelCDF, Invert
from mindspore.nn.probability.distribution._base import Distribution
from mindspore.nn.probability.distribution._continuous import Normal, Uniform

_EULER = 0.5772156649015329


class TransformedDistribution(Distribution):
    """The distribution of bijector.forward() of draws.

    Args:
        bijector: A Bijector.
        distribution: What is drawn from; its parameters go with each call where it was made without.
        seed, name: As of Distribution.

    Raises:
        TypeError: They are none, or the distribution draws whole numbers.
    """

    def __init__(self, bijector, distribution, seed=None, name="transformed_distribution"):
        if not isinstance(bijector, Bijector):
            raise TypeError(f"TransformedDistribution: bijector is a Bijector, not {bijector!r}")
        if not isinstance(distribution, Distribution):
            raise TypeError(f"TransformedDistribution: distribution is a Distribution, not {distribution!r}")
        super().__init__(seed, distribution.dtype, name, {})
        self._bijector = bijector
        self._distribution = distribution
        self.is_scalar_batch = distribution.is_scalar_batch and bijector.is_scalar_batch
        self.parameter_type = distribution.parameter_type

    bijector = property(lambda self: self._bijector, doc="What makes values of draws.")
    distribution = property(lambda self: self._distribution, doc="What is drawn from.")
    is_linear_transformation = property(
        lambda self: self._bijector.is_constant_jacobian, doc="Whether the mean is that of draws."
    )

    @property
    def batch_shape(self):
        """That of the distribution drawn from."""
        return self._distribution.batch_shape

    @property
    def default_parameters(self):
        """Those of the distribution drawn from."""
        return self._distribution.default_parameters

    @property
    def parameter_names(self):
        """Their names."""
        return self._distribution.parameter_names

    extend_repr = muster.Cell.extend_repr

    def get_dist_type(self):
        """No kind has this one: raises NotImplementedError."""
        raise NotImplementedError(f"get_dist_type is not implemented for {self.name} distribution")

    def get_dist_args(self, *args, **kwargs):
        """Likewise."""
        raise NotImplementedError(f"get_dist_args is not implemented for {self.name} distribution")

    def _made(self, call, args, kwargs):
        """The parameters are the other one's."""
        return self._distribution._made(call, args, kwargs)

    def _value(self, value):
        return self._tensor(value)

    def _log_prob(self, value, *parameters):
        inner = self._distribution._log_prob(self._bijector.inverse(value), *parameters)
        whole = inner + self._bijector.inverse_log_jacobian(value)
        return ops.select(
            inner + ops.zeros_like(whole) == float("-inf"), inner + ops.zeros_like(whole), whole
        )

    def _prob(self, value, *parameters):
        return ops.exp(self._log_prob(value, *parameters))

    def _cdf(self, value, *parameters):
        return self._distribution._cdf(self._bijector.inverse(value), *parameters)

    def _mean(self, *parameters):
        if not self.is_linear_transformation:
            raise ValueError("mean function must be implemented for non-linear transformation")
        return self._bijector.forward(self._distribution._mean(*parameters))

    def _sample(self, shape, *parameters):
        return self._bijector.forward(self._distribution._sample(shape, *parameters))


class _Named(TransformedDistribution):
    """One with parameters of its own."""

    def __init__(self, bijector, distribution, seed, name, **param):
        super().__init__(bijector, distribution, seed, name)
        self._take(param)

    batch_shape = Distribution.batch_shape
    default_parameters = Distribution.default_parameters
    parameter_names = Distribution.parameter_names
    extend_repr = Distribution.extend_repr
    get_dist_type = Distribution.get_dist_type
    get_dist_args = Distribution.get_dist_args
    _made = Distribution._made
    _value = Distribution._value


class LogNormal(_Named):
    """What exp() makes of a normal distribution.

    Args:
        loc, scale: Mean and deviation of the logarithms; scale is above 0.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("loc", "scale")

    def __init__(self, loc=None, scale=None, seed=0, dtype=muster.float32, name="LogNormal"):
        super().__init__(Exp(), Normal(loc, scale, dtype=dtype), seed, name, loc=loc, scale=scale)

    def _log_prob(self, value, loc, scale):
        logarithm = ops.log(value)
        return self._distribution._log_prob(logarithm, loc, scale) - logarithm

    def _cdf(self, value, loc, scale):
        inside = super()._cdf(value, loc, scale)
        return ops.select(value + scale * 0 > 0, inside, ops.zeros_like(inside))

    def _mean(self, loc, scale):
        return ops.exp(loc + 0.5 * ops.square(scale))

    def _mode(self, loc, scale):
        return ops.exp(loc - ops.square(scale))

    def _var(self, loc, scale):
        var = ops.square(scale)
        return ops.expm1(var) * ops.exp(2.0 * loc + var)

    def _entropy(self, loc, scale):
        return loc + 0.5 + ops.log(scale) + 0.5 * math.log(2 * math.pi)

    def _kl(self, mine, others):
        return self._distribution._kl(mine, others)


class Gumbel(_Named):
    """The distribution of greatest values.

    Args:
        loc: Its mode.
        scale: Its width, above 0.
        seed, dtype, name: As of Distribution.
    """

    _parameters = ("loc", "scale")

    def __init__(self, loc, scale, seed=0, dtype=muster.float32, name="Gumbel"):
        cdf = GumbelCDF(loc, scale)
        super().__init__(Invert(cdf), Uniform(0.0, 1.0, dtype=dtype), seed, name, loc=loc, scale=scale)
        self._gumbel_bijector = cdf

    def _made(self, call, args, kwargs):
        if args or kwargs:
            raise TypeError(f"{self.name}.{call}() takes no parameters: they were given to {self.name}()")
        return super()._made(call, args, kwargs)

    def _log_prob(self, value, loc, scale):
        z = (value - loc) / scale
        return -(z + ops.exp(-z)) - ops.log(scale)

    def _cdf(self, value, loc, scale):
        return self._gumbel_bijector.forward(value)

    def _mean(self, loc, scale):
        return loc + scale * _EULER

    def _mode(self, loc, scale):
        return loc

    def _sd(self, loc, scale):
        return scale * (math.pi / math.sqrt(6.0))

    def _entropy(self, loc, scale):
        return 1.0 + ops.log(scale) + _EULER

    def _kl(self, mine, others):
        (loc, scale), (loc_b, scale_b) = mine, others
        tails = ops.expm1((loc_b - loc) / scale_b + ops.lgamma(scale / scale_b + 1.0))
        return ops.log(scale_b / scale) + _EULER * (scale / scale_b - 1.0) + (loc - loc_b) / scale_b + tails

    def _sample(self, shape, loc, scale):
        drawn = 1.0 - self._uniforms(shape, loc, scale)  # above 0
        drawn = ops.minimum(drawn, 1.0 - 2.0**-24)
        return self._bijector.forward(drawn)
