"""What distributions share: parameters that are given when one is made or with each call."""

import muster
from mindspore import nn, ops
from mindspore._lazy import numpy
from mindspore.common import dtype as mstype

_METHODS = (
    *("log_prob", "prob", "cdf", "log_cdf", "survival_function", "log_survival", "kl_loss", "cross_entropy"),
    *("mean", "mode", "sd", "var", "entropy", "sample", "get_dist_args", "get_dist_type"),
)


class Distribution(nn.Cell):
    """A distribution: what a subclass says of its parameters as `_log_prob`, `_mean` and so on.

    Args:
        seed: Of its draws; 0 or None takes that of set_seed.
        dtype: Of what is drawn.
        name: Of the distribution.
        param: Its parameters, by name; None for one that each call gives.

    Raises:
        TypeError: A parameter is no number, list or tensor, two tensors have two dtypes, or dtype is none
            that the distribution draws.
        ValueError: The seed is below 0, or a parameter has a value that it cannot have.
    """

    _parameters = ()  # their names, in the order of arguments
    _shown = ()  # what print() calls them, where that differs
    _dtypes = mstype.float_type
    _scalars_refused = ()  # types of numbers that no parameter may be

    def __init__(self, seed, dtype, name, param):
        super().__init__()
        kind = type(self).__name__
        if not isinstance(name, str):
            raise TypeError(f"{kind}: name is a string, not {name!r}")
        if dtype not in self._dtypes:
            raise TypeError(f"{kind}: dtype is one of {', '.join(map(str, self._dtypes))}, not {dtype}")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise TypeError(f"{name}: seed is a whole number, not {seed!r}")
        if seed is not None and seed < 0:
            raise ValueError(f"{name}: seed is a whole number that is not negative, not {seed!r}")
        self.name = name
        self.seed = seed or 0
        self.dtype = dtype
        self.parameter_type = self._common_dtype(param)
        self._take(param)

    def _take(self, param):
        """Keeps the parameters, once parameter_type is known."""
        self.is_scalar_batch = all(
            value is None or isinstance(value, int | float) for value in param.values()
        )
        made = {key: self._parameter(key, value) for key, value in param.items()}
        for key, value in made.items():
            setattr(self, self._place(key), value)
        if made:
            self._check(**made)

    @staticmethod
    def _place(key):
        """The attribute of a parameter: a Parameter becomes one of the cell."""
        return f"_{key}_value" if key in ("df", "mean", "sd") else f"_{key}"

    @property
    def _given(self):
        return {key: getattr(self, self._place(key)) for key in self._parameters}

    def __getattr__(self, name):
        if name in type(self)._parameters:
            return getattr(self, self._place(name))
        return super().__getattr__(name)

    def _common_dtype(self, param):
        """The dtype to compute in: that of the tensors among the parameters, else that of draws."""
        common = None
        for key, value in param.items():
            if isinstance(value, muster.Tensor | numpy.ndarray):
                found = muster.dtype(value.dtype)
                if common not in (None, found):
                    raise TypeError(f"{self.name}: {key} is {found}, and another parameter is {common}")
                common = found
        if common is None:
            return self.dtype if self.dtype in mstype.float_type else muster.float32
        return common if common in mstype.float_type and common != muster.float64 else muster.float32

    def _parameter(self, key, value):
        if value is None or isinstance(value, muster.Parameter):
            return value
        if isinstance(value, self._scalars_refused):
            raise TypeError(f"{self.name}: {key} is a list or a tensor, not the number {value!r}")
        if isinstance(value, bool) or not isinstance(
            value, muster.Tensor | numpy.ndarray | list | int | float
        ):
            raise TypeError(f"{self.name}: {key} is a number, a list or a tensor, not {value!r}")
        return self._cast(muster.Tensor(value), self.parameter_type)

    @staticmethod
    def _cast(value, dtype):
        return value if value.dtype == dtype else ops.cast(value, dtype)

    def _tensor(self, value, key="value"):
        """What a call gives: a tensor."""
        if not isinstance(value, muster.Tensor):
            raise TypeError(f"{self.name}: {key} is a Tensor, not {value!r}")
        return self._cast(value, self.parameter_type)

    def _value(self, value):
        """What a call asks about, in the dtype of what is drawn."""
        made = self._tensor(value)
        return self._cast(made, self.dtype) if self.dtype in mstype.float_type else made

    def _check(self, **parameters):
        """Refuses values that a parameter cannot have."""

    def extend_repr(self):
        """The parameters, or their shape."""
        if not self.is_scalar_batch:
            return f"batch_shape = {self.batch_shape}"
        shown = self._shown or self._parameters
        return ", ".join(f"{name} = {value}" for name, value in zip(shown, self._given.values(), strict=True))

    def _of(self, call, *given):
        """The parameters: those that the call has, else those of the distribution."""
        if len(given) > len(self._parameters):
            names = ", ".join(self._parameters)
            raise TypeError(f"{self.name}.{call}(): its parameters are {names}; {len(given)} were given")
        given += (None,) * (len(self._parameters) - len(given))
        found = []
        for key, value in zip(self._parameters, given, strict=True):
            value = self._given[key] if value is None else self._tensor(value, key)
            if value is None:
                raise TypeError(f"{self.name}.{call}(): {key} is given neither here nor to {self.name}()")
            found.append(self._cast(value, self.parameter_type))
        return self._broadcast(found)

    @staticmethod
    def _broadcast(parameters):
        shapes = [value.shape for value in parameters]
        if all(shape == shapes[0] for shape in shapes):
            return parameters
        together = numpy.broadcast_shapes(*shapes)
        return [
            value if value.shape == together else ops.broadcast_to(value, together) for value in parameters
        ]

    def _known(self, name, call):
        """A method that this kind has."""
        method = getattr(self, name, None)
        if method is None:
            raise NotImplementedError(f"{call} is not implemented for {self.name} distribution")
        return method

    def _positional(self, call, args, kwargs):
        """Parameters by position or by name, as a tuple."""
        unknown = set(kwargs) - set(self._parameters)
        if unknown:
            raise TypeError(f"{self.name}.{call}() has no argument {min(unknown)!r}")
        return args + tuple(kwargs.get(key) for key in self._parameters[len(args) :])

    def _made(self, call, args, kwargs):
        return self._of(call, *self._positional(call, args, kwargs))

    @property
    def batch_shape(self):
        """The shape of the parameters together; None where one is given with each call."""
        if any(value is None for value in self._given.values()):
            return None
        return numpy.broadcast_shapes(*(value.shape for value in self._given.values()))

    @property
    def broadcast_shape(self):
        """As batch_shape."""
        return self.batch_shape

    @property
    def default_parameters(self):
        """The parameters, None where each call gives one."""
        return list(self._given.values())

    @property
    def parameter_names(self):
        """Their names."""
        return list(self._parameters)

    def get_dist_type(self):
        """The name of the kind."""
        return type(self).__name__

    def get_dist_args(self, *args, **kwargs):
        """The parameters, in order."""
        return tuple(self._made("get_dist_args", args, kwargs))

    def log_prob(self, value, *args, **kwargs):
        """The logarithm of the probability or density of `value`."""
        return self._log_prob(self._value(value), *self._made("log_prob", args, kwargs))

    def _log_prob(self, value, *parameters):
        return ops.log(self._prob(value, *parameters))

    def prob(self, value, *args, **kwargs):
        """The probability or density of `value`."""
        return self._prob(self._value(value), *self._made("prob", args, kwargs))

    def _prob(self, value, *parameters):
        return ops.exp(self._log_prob(value, *parameters))

    def cdf(self, value, *args, **kwargs):
        """The probability of values up to `value`."""
        of = self._known("_cdf", "cdf")
        return of(self._value(value), *self._made("cdf", args, kwargs))

    def log_cdf(self, value, *args, **kwargs):
        """The logarithm of cdf()."""
        if hasattr(self, "_log_cdf"):
            return self._log_cdf(self._value(value), *self._made("log_cdf", args, kwargs))
        return ops.log(self.cdf(value, *args, **kwargs))

    def survival_function(self, value, *args, **kwargs):
        """The probability of values above `value`."""
        if hasattr(self, "_survival_function"):
            given = self._made("survival_function", args, kwargs)
            return self._survival_function(self._value(value), *given)
        return 1.0 - self.cdf(value, *args, **kwargs)

    def log_survival(self, value, *args, **kwargs):
        """The logarithm of survival_function()."""
        if hasattr(self, "_log_survival"):
            return self._log_survival(self._value(value), *self._made("log_survival", args, kwargs))
        return ops.log(self.survival_function(value, *args, **kwargs))

    def mean(self, *args, **kwargs):
        """The mean."""
        return self._known("_mean", "mean")(*self._made("mean", args, kwargs))

    def mode(self, *args, **kwargs):
        """The likeliest value."""
        return self._known("_mode", "mode")(*self._made("mode", args, kwargs))

    def var(self, *args, **kwargs):
        """The variance."""
        given = self._made("var", args, kwargs)
        return self._var(*given) if hasattr(self, "_var") else ops.square(self._known("_sd", "var")(*given))

    def sd(self, *args, **kwargs):
        """The standard deviation."""
        given = self._made("sd", args, kwargs)
        return self._sd(*given) if hasattr(self, "_sd") else ops.sqrt(self._known("_var", "sd")(*given))

    def entropy(self, *args, **kwargs):
        """The entropy, in nats."""
        return self._known("_entropy", "entropy")(*self._made("entropy", args, kwargs))

    def _pair(self, call, dist, args):
        """The parameters of the other distribution, and of this one."""
        if dist != self.get_dist_type():
            raise ValueError(f"{self.name}.{call}(): dist is {self.get_dist_type()!r}, not {dist!r}")
        size = len(self._parameters)
        if len(args) < size:
            raise TypeError(f"{self.name}.{call}(): the other one needs {', '.join(self._parameters)}")
        others = [self._tensor(value, f"{key}_b") for key, value in zip(self._parameters, args, strict=False)]
        return self._of(call, *args[size:]), others

    def kl_loss(self, dist, *args):
        """The divergence of Kullback and Leibler from another one of the same kind.

        Args:
            dist: Its kind, the name of the class.
            args: The parameters of the other, then those of this one where a call gives them.
        """
        of = self._known("_kl", "kl_loss")
        return of(*self._pair("kl_loss", dist, args))

    def cross_entropy(self, dist, *args):
        """The entropy plus kl_loss()."""
        entropy, divergence = (self._known(name, "cross_entropy") for name in ("_entropy", "_kl"))
        mine, others = self._pair("cross_entropy", dist, args)
        return entropy(*mine) + divergence(mine, others)

    def sample(self, shape=(), *args, **kwargs):
        """Draws of `shape`, for each element of the parameters."""
        if not isinstance(shape, tuple):
            raise TypeError(f"{self.name}.sample(): shape is a tuple, not {shape!r}")
        draw = self._known("_sample", "sample")
        return ops.cast(draw(shape, *self._made("sample", args, kwargs)), self.dtype)

    def construct(self, name, *args, **kwargs):
        """A method by its name: `distribution('log_prob', value)`."""
        if name not in _METHODS:
            raise NotImplementedError(f"{name} is not implemented for {self.name} distribution")
        return getattr(self, name)(*args, **kwargs)

    def _uniforms(self, shape, *parameters):
        """Numbers from 0 to 1, of `shape` and then that of the parameters together."""
        together = numpy.broadcast_shapes(*(value.shape for value in parameters))
        return ops.uniform(
            shape + together,
            muster.Tensor(0.0, muster.float32),
            muster.Tensor(1.0, muster.float32),
            self.seed,
        )


def refuse_below(kind, **parameters):
    """ValueError unless all elements of the parameters that are known are above 0."""
    for key, value in parameters.items():
        if value is not None and least(value) <= 0:
            raise ValueError(f"{kind}: {key} is above 0, not {least(value)}")


def least(parameter):
    """The least element, for checks of what the script itself wrote."""
    return float(parameter.min().asnumpy())
