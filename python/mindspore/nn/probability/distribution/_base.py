"""What distributions share: parameters that are given when one is made or with each call."""

import muster
from mindspore import nn, ops
from mindspore._lazy import numpy


class Distribution(nn.Cell):
    """A distribution: what a subclass says of its parameters as `_log_prob`, `_mean` and so on.

    Args:
        seed: Of its draws; 0 takes that of set_seed.
        dtype: Of what is drawn.
        name: Of the distribution.
        param: Its parameters, by name; None for one that each call gives.
    """

    _parameters = ()  # their names, in the order of arguments

    def __init__(self, seed, dtype, name, param):
        super().__init__()
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise ValueError(f"{name}: seed is a whole number that is not negative, not {seed!r}")
        self.name = name
        self.seed = seed or 0
        self.dtype = dtype
        self.parameter_type = muster.float32
        self._given = {key: self._tensor(value) for key, value in param.items()}
        self._check(**self._given)

    @staticmethod
    def _tensor(value):
        if value is None:
            return None
        made = value if isinstance(value, muster.Tensor) else muster.Tensor(value, muster.float32)
        return made if made.dtype == muster.float32 else ops.cast(made, muster.float32)

    def _check(self, **parameters):
        """Refuses values that a parameter cannot have."""

    def _of(self, call, *given):
        """The parameters: those that the call has, else those of the distribution."""
        if len(given) > len(self._parameters):
            names = ", ".join(self._parameters)
            raise TypeError(f"{self.name}.{call}(): its parameters are {names}; {len(given)} were given")
        given += (None,) * (len(self._parameters) - len(given))
        found = []
        for key, value in zip(self._parameters, given, strict=True):
            value = self._given[key] if value is None else self._tensor(value)
            if value is None:
                raise ValueError(f"{self.name}.{call}(): {key} is given neither here nor to {self.name}()")
            found.append(value)
        return found

    def _positional(self, call, args, kwargs):
        """Parameters by position or by name, as a tuple."""
        unknown = set(kwargs) - set(self._parameters)
        if unknown:
            raise TypeError(f"{self.name}.{call}() has no argument {min(unknown)!r}")
        return args + tuple(kwargs.get(key) for key in self._parameters[len(args) :])

    def _made(self, call, args, kwargs):
        return self._of(call, *self._positional(call, args, kwargs))

    @property
    def is_scalar_batch(self):
        """Whether all parameters are numbers."""
        return all(value is None or value.ndim == 0 for value in self._given.values())

    @property
    def batch_shape(self):
        """The shape of the parameters together; None where one is given with each call."""
        if any(value is None for value in self._given.values()):
            return None
        return numpy.broadcast_shapes(*(value.shape for value in self._given.values()))

    def get_dist_type(self):
        """The name of the kind."""
        return type(self).__name__

    def get_dist_args(self, *args, **kwargs):
        """The parameters, in order."""
        return tuple(self._made("get_dist_args", args, kwargs))

    def log_prob(self, value, *args, **kwargs):
        """The logarithm of the probability or density of `value`."""
        return self._log_prob(self._tensor(value), *self._made("log_prob", args, kwargs))

    def prob(self, value, *args, **kwargs):
        """The probability or density of `value`."""
        return self._prob(self._tensor(value), *self._made("prob", args, kwargs))

    def _prob(self, value, *parameters):
        return ops.exp(self._log_prob(value, *parameters))

    def cdf(self, value, *args, **kwargs):
        """The probability of values up to `value`."""
        return self._cdf(self._tensor(value), *self._made("cdf", args, kwargs))

    def log_cdf(self, value, *args, **kwargs):
        """The logarithm of cdf()."""
        return ops.log(self.cdf(value, *args, **kwargs))

    def survival_function(self, value, *args, **kwargs):
        """The probability of values above `value`."""
        return 1.0 - self.cdf(value, *args, **kwargs)

    def log_survival(self, value, *args, **kwargs):
        """The logarithm of survival_function()."""
        return ops.log(self.survival_function(value, *args, **kwargs))

    def mean(self, *args, **kwargs):
        """The mean."""
        return self._mean(*self._made("mean", args, kwargs))

    def mode(self, *args, **kwargs):
        """The likeliest value."""
        return self._mode(*self._made("mode", args, kwargs))

    def var(self, *args, **kwargs):
        """The variance."""
        return self._var(*self._made("var", args, kwargs))

    def sd(self, *args, **kwargs):
        """The standard deviation."""
        return ops.sqrt(self._var(*self._made("sd", args, kwargs)))

    def entropy(self, *args, **kwargs):
        """The entropy, in nats."""
        return self._entropy(*self._made("entropy", args, kwargs))

    def _pair(self, call, dist, args):
        """The parameters of the other distribution, and of this one."""
        if dist != self.get_dist_type():
            raise ValueError(f"{self.name}.{call}(): dist is {self.get_dist_type()!r}, not {dist!r}")
        size = len(self._parameters)
        if len(args) < size:
            raise TypeError(f"{self.name}.{call}(): the other one needs {', '.join(self._parameters)}")
        return self._of(call, *args[size:]), [self._tensor(value) for value in args[:size]]

    def kl_loss(self, dist, *args):
        """The divergence of Kullback and Leibler from another one of the same kind.

        Args:
            dist: Its kind, the name of the class.
            args: The parameters of the other, then those of this one where a call gives them.
        """
        mine, others = self._pair("kl_loss", dist, args)
        return self._kl(mine, others)

    def cross_entropy(self, dist, *args):
        """The entropy plus kl_loss()."""
        mine, others = self._pair("cross_entropy", dist, args)
        return self._entropy(*mine) + self._kl(mine, others)

    def sample(self, shape=(), *args, **kwargs):
        """Draws of `shape`, for each element of the parameters."""
        return ops.cast(self._sample(tuple(shape), *self._made("sample", args, kwargs)), self.dtype)

    def construct(self, name, *args, **kwargs):
        """A method by its name: `distribution('log_prob', value)`."""
        return getattr(self, name)(*args, **kwargs)

    def _uniforms(self, shape, *parameters):
        """Numbers from 0 to 1, of `shape` and then that of the parameters together."""
        together = parameters[0]
        for other in parameters[1:]:
            together = together + other
        return ops.uniform(
            shape + together.shape,
            muster.Tensor(0.0, muster.float32),
            muster.Tensor(1.0, muster.float32),
            self.seed,
        )


def least(parameter):
    """The least element, for checks of what the script itself wrote."""
    return float(parameter.min().asnumpy())
