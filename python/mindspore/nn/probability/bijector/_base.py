"""What bijectors share."""

import muster
from mindspore import nn, ops
from mindspore._lazy import numpy
from mindspore.common import dtype as mstype


class Bijector(nn.Cell):
    """A function with an inverse: a subclass says `_forward`, `_inverse` and the logarithms of derivatives.

    Args:
        is_constant_jacobian: Whether the derivative is a constant.
        is_injective: Whether no two values become one.
        name: Of the bijector.
        dtype: Of what it takes; None for any float.
        param: Its parameters: `param["param_dict"]` by their names.

    Raises:
        TypeError: A parameter is no float, or two have two dtypes.
    """

    def __init__(self, is_constant_jacobian=False, is_injective=True, name=None, dtype=None, param=None):
        super().__init__()
        if not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: name is a string, not {name!r}")
        for key, value in (("is_constant_jacobian", is_constant_jacobian), ("is_injective", is_injective)):
            if not isinstance(value, bool):
                raise TypeError(f"{name}: {key} is True or False, not {value!r}")
        if dtype is not None and dtype not in mstype.float_type:
            raise TypeError(f"{name}: dtype is that of floats, not {dtype}")
        self.name = name
        self.dtype = dtype
        self.parameters = dict(param or {})
        self.is_constant_jacobian = is_constant_jacobian
        self.is_injective = is_injective
        given = self.parameters.get("param_dict")
        self.is_scalar_batch = given is not None and all(
            value is None or isinstance(value, int | float) for value in given.values()
        )
        self.batch_shape = None
        if given is not None and None not in [type(value) for value in given.values()]:
            shapes = [numpy.shape(value) for value in given.values() if value is not None]
            self.batch_shape = tuple(numpy.broadcast_shapes(*shapes)) if shapes else None
        self._names_of_parameters = {}

    def _add_parameter(self, value, name):
        """A parameter as a tensor of floats, all of one dtype."""
        if isinstance(value, bool) or value is None:
            raise TypeError(f"{self.name}: {name} is a number, a list or a tensor, not {value!r}")
        made = value if isinstance(value, muster.Tensor) else muster.Tensor(value)
        wanted = self.dtype or next(iter(self._names_of_parameters.values()), made.dtype)
        if made.dtype not in mstype.float_type or made.dtype != wanted:
            raise TypeError(f"{self.name}: {name} is of floats of one dtype, not {made.dtype}")
        self._names_of_parameters[name] = made.dtype
        return made

    def cast_param_by_value(self, value, para):
        """A parameter in the dtype of a value."""
        return para if para.dtype == value.dtype else ops.cast(para, value.dtype)

    def _floating(self, value):
        if not isinstance(value, muster.Tensor):
            raise TypeError(f"{self.name}: the value is a Tensor, not {value!r}")
        wanted = mstype.float_type if self.dtype is None else (self.dtype,)
        if value.dtype not in wanted:
            raise TypeError(f"{self.name}: the value is of {self.dtype or 'floats'}, not {value.dtype}")
        return value

    def forward(self, value, *args, **kwargs):
        """What the function makes of a value."""
        return self._forward(self._floating(value), *args, **kwargs)

    def inverse(self, value, *args, **kwargs):
        """What it makes the value of."""
        return self._inverse(self._floating(value), *args, **kwargs)

    def forward_log_jacobian(self, value, *args, **kwargs):
        """The logarithm of the derivative of forward()."""
        return self._forward_log_jacobian(self._floating(value), *args, **kwargs)

    def inverse_log_jacobian(self, value, *args, **kwargs):
        """The logarithm of the derivative of inverse()."""
        return self._inverse_log_jacobian(self._floating(value), *args, **kwargs)

    def extend_repr(self):
        """The parameters, or their shape."""
        if not self.is_scalar_batch:
            return f"batch_shape = {self.batch_shape}"
        return ", ".join(f"{name} = {getattr(self, name)}" for name in self._names_of_parameters)

    def __call__(self, *args, **kwargs):
        """Of a distribution: the one of what the function makes of its draws. Else a method by its name."""
        from mindspore.nn.probability.distribution import Distribution, TransformedDistribution

        if args and isinstance(args[0], Distribution):
            return TransformedDistribution(self, args[0])
        return super().__call__(*args, **kwargs)

    def construct(self, name, *args, **kwargs):
        """A method by its name: `bijector('forward', value)`."""
        if name not in ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian"):
            raise ValueError(f"{self.name}: there is no method {name!r} to call by its name")
        return getattr(self, name)(*args, **kwargs)
