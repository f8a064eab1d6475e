"""Bijectors: powers and exp, lines, softplus, Gumbel's distribution, and their inverses."""

import math

from mindspore import ops
from mindspore.nn.probability.bijector._base import Bijector

_THRESHOLD = math.log(2.0**-23) + 1.0  # below it float32's softplus(x) is exp(x), above -it x


class PowerTransform(Bijector):
    """(1 + x * power) ** (1 / power) of x >= -1 / power; exp of x where power is 0.

    Args:
        power: Not below 0.
        name: Of the bijector.
    """

    def __init__(self, power=0.0, name="PowerTransform"):
        super().__init__(name=name, param={"param_dict": {"power": power}})
        self.power = self._add_parameter(power, "power")
        if float(self.power.min().asnumpy()) < 0:
            raise ValueError(f"{name}: power is not below 0, not {power}")

    def _parts(self, value):
        """The value and the power together, the power with 1 for 0, and where it is 0."""
        power = self.cast_param_by_value(value, self.power)
        value, power = value + ops.zeros_like(power), power + ops.zeros_like(value)
        return value, power, ops.select(power == 0, ops.ones_like(power), power), power == 0

    def _forward(self, x):
        x, _, safe, is_exp = self._parts(x)
        return ops.select(is_exp, ops.exp(x), ops.exp(ops.log1p(x * safe) / safe))

    def _inverse(self, y):
        y, _, safe, is_exp = self._parts(y)
        return ops.select(is_exp, ops.log(y), ops.expm1(ops.log(y) * safe) / safe)

    def _forward_log_jacobian(self, x):
        x, power, safe, is_exp = self._parts(x)
        return ops.select(is_exp, x, (1.0 / safe - 1.0) * ops.log1p(x * power))

    def _inverse_log_jacobian(self, y):
        return (self.cast_param_by_value(y, self.power) - 1.0) * ops.log(y)


class Exp(PowerTransform):
    """exp.

    Args:
        name: Of the bijector.
    """

    def __init__(self, name="Exp"):
        super().__init__(name=name)

    def extend_repr(self):
        """Its name."""
        return "exp"


class ScalarAffine(Bijector):
    """scale * x + shift.

    Args:
        scale, shift: Floats.
        name: Of the bijector.
    """

    def __init__(self, scale=1.0, shift=0.0, name="ScalarAffine"):
        super().__init__(True, True, name, None, {"param_dict": {"scale": scale, "shift": shift}})
        self.scale = self._add_parameter(scale, "scale")
        self.shift = self._add_parameter(shift, "shift")

    def _forward(self, x):
        return self.cast_param_by_value(x, self.scale) * x + self.cast_param_by_value(x, self.shift)

    def _inverse(self, y):
        return (y - self.cast_param_by_value(y, self.shift)) / self.cast_param_by_value(y, self.scale)

    def _forward_log_jacobian(self, x):
        return ops.log(ops.abs(self.cast_param_by_value(x, self.scale)))

    def _inverse_log_jacobian(self, y):
        return -self._forward_log_jacobian(y)


class Softplus(Bijector):
    """log(1 + exp(sharpness * x)) / sharpness.

    Args:
        sharpness: A float that is not 0.
        name: Of the bijector.
    """

    def __init__(self, sharpness=1.0, name="Softplus"):
        super().__init__(name=name, param={"param_dict": {"sharpness": sharpness}})
        self.sharpness = self._add_parameter(sharpness, "sharpness")
        self.log_sigmoid = _log_sigmoid_cell()

    @staticmethod
    def _softplus(x):
        large = x > -_THRESHOLD
        inside = ops.log1p(ops.exp(ops.select(large, ops.ones_like(x), x)))
        return ops.select(large, x, inside)

    @staticmethod
    def _inverse_softplus(y):
        small, large = y < math.exp(_THRESHOLD), y > -_THRESHOLD
        inner = ops.select(ops.logical_or(small, large), ops.ones_like(y), y)
        inside = inner + ops.log(ops.abs(ops.expm1(-inner)))
        return ops.select(small, ops.log(y), ops.select(large, y, inside))

    def _scaled(self, value):
        sharpness = self.cast_param_by_value(value, self.sharpness)
        return sharpness * value, sharpness

    def _forward(self, x):
        scaled, sharpness = self._scaled(x)
        return self._softplus(scaled) / sharpness

    def _inverse(self, y):
        scaled, sharpness = self._scaled(y)
        return self._inverse_softplus(scaled) / sharpness

    def _forward_log_jacobian(self, x):
        return self.log_sigmoid(self._scaled(x)[0])

    def _inverse_log_jacobian(self, y):
        scaled, _ = self._scaled(y)
        return scaled - self._inverse_softplus(scaled)


def _log_sigmoid_cell():
    from mindspore import nn

    return nn.LogSigmoid()


class GumbelCDF(Bijector):
    """exp(-exp(-(x - loc) / scale)).

    Args:
        loc: A float.
        scale: Above 0.
        name: Of the bijector.
    """

    def __init__(self, loc=0.0, scale=1.0, name="GumbelCDF"):
        super().__init__(name=name, param={"param_dict": {"loc": loc, "scale": scale}})
        self.loc = self._add_parameter(loc, "loc")
        self.scale = self._add_parameter(scale, "scale")
        if float(self.scale.min().asnumpy()) <= 0:
            raise ValueError(f"{name}: scale is above 0, not {scale}")

    def _parts(self, value):
        return (self.cast_param_by_value(value, parameter) for parameter in (self.loc, self.scale))

    def _forward(self, x):
        loc, scale = self._parts(x)
        return ops.exp(-ops.exp((loc - x) / scale))

    def _inverse(self, y):
        loc, scale = self._parts(y)
        return loc - scale * ops.log(-ops.log(y))

    def _forward_log_jacobian(self, x):
        loc, scale = self._parts(x)
        z = (x - loc) / scale
        return -z - ops.exp(-z) - ops.log(scale)

    def _inverse_log_jacobian(self, y):
        _, scale = self._parts(y)
        return ops.log(scale / (-y * ops.log(y)))


class Invert(Bijector):
    """A bijector backwards.

    Args:
        bijector: The one.
        name: Of this one; "Invert" and its name by default.
    """

    def __init__(self, bijector, name=""):
        if not isinstance(bijector, Bijector):
            raise TypeError(f"Invert: bijector is a Bijector, not {bijector!r}")
        super().__init__(
            bijector.is_constant_jacobian,
            bijector.is_injective,
            name or "Invert" + bijector.name,
            bijector.dtype,
            {},
        )
        self._bijector = bijector
        self.batch_shape = bijector.batch_shape
        self.is_scalar_batch = bijector.is_scalar_batch

    bijector = property(lambda self: self._bijector, doc="The one that goes the other way.")

    def forward(self, value):
        """inverse() of the bijector."""
        return self._bijector.inverse(value)

    def inverse(self, value):
        """forward() of the bijector."""
        return self._bijector.forward(value)

    def forward_log_jacobian(self, value):
        """inverse_log_jacobian() of the bijector."""
        return self._bijector.inverse_log_jacobian(value)

    def inverse_log_jacobian(self, value):
        """forward_log_jacobian() of the bijector."""
        return self._bijector.forward_log_jacobian(value)

    def extend_repr(self):
        """Nothing: the bijector is shown as a cell."""
        return ""
