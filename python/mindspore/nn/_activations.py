"""Activations that are made of functions: MindSpore's cells of these names."""

import muster
from mindspore.ops import _math


class _OfFunction(muster.Cell):
    function = None

    def construct(self, x):
        """The function, element by element."""
        return type(self).function(x)


def _cell(name: str, function) -> type[muster.Cell]:
    return type(
        name,
        (_OfFunction,),
        {"function": staticmethod(function), "__doc__": function.__doc__, "__module__": __name__},
    )


HSigmoid = _cell("HSigmoid", _math.hardsigmoid)
HSwish = _cell("HSwish", _math.hardswish)
LogSigmoid = _cell("LogSigmoid", _math.logsigmoid)
Mish = _cell("Mish", _math.mish)
SeLU = _cell("SeLU", _math.selu)
Softsign = _cell("Softsign", _math.softsign)


class CELU(muster.Cell):
    """x where it is positive, else alpha (e^(x / alpha) - 1)."""

    def __init__(self, alpha=1.0):
        super().__init__()
        self.alpha = alpha

    def construct(self, x):
        """celu(x)."""
        return _math.celu(x, self.alpha)


class Hardtanh(muster.Cell):
    """x between min_val and max_val."""

    def __init__(self, min_val=-1.0, max_val=1.0):
        super().__init__()
        if min_val >= max_val:
            raise ValueError(f"Hardtanh: min_val {min_val} must be below max_val {max_val}")
        self.min_val = min_val
        self.max_val = max_val

    def construct(self, x):
        """hardtanh(x)."""
        return _math.hardtanh(x, self.min_val, self.max_val)


class PReLU(muster.Cell):
    """x (N, C, ...) where it is positive, else the parameter `w` ((channel,), 0.25 at first) times it."""

    def __init__(self, channel=1, w=0.25):
        super().__init__()
        if channel < 1:
            raise ValueError(f"PReLU: channel is at least 1, not {channel}")
        first = w if isinstance(w, muster.Tensor) else muster.ops.full((channel,), float(w))
        self.w = muster.Parameter(muster.ops.reshape(first, (channel,)), name="a")

    def construct(self, x):
        """prelu(x, w)."""
        return _math.prelu(x, self.w)


# Those that muster.nn.get_activation does not know.
_NAMED = {
    "fast_gelu": "FastGelu",
    "hardtanh": "Hardtanh",
    "hshrink": "HShrink",
    "hsigmoid": "HSigmoid",
    "hswish": "HSwish",
    "logsigmoid": "LogSigmoid",
    "mish": "Mish",
    "prelu": "PReLU",
    "rrelu": "RReLU",
    "softmax2d": "Softmax2d",
    "softmin": "Softmin",
    "softshrink": "SoftShrink",
    "softsign": "Softsign",
    "tanhshrink": "Tanhshrink",
}


class _UnknownNameError(KeyError, ValueError):
    """MindSpore says KeyError, the library below ValueError."""

    __str__ = ValueError.__str__


def get_activation(name, prim_name=None):
    """The cell of an activation by its name; None gives None. KeyError for a name that is not known."""
    if name is None:
        return None
    if name not in _NAMED:
        try:
            return muster.nn.get_activation(name)
        except (TypeError, ValueError) as error:
            raise _UnknownNameError(str(error)) from None
    from mindspore import nn

    return getattr(nn, _NAMED[name])()


def activated(activation):
    """A cell for its name; a cell, and None, as it is."""
    return get_activation(activation) if isinstance(activation, str) else activation


__all__ = [
    "CELU",
    "HSigmoid",
    "HSwish",
    "Hardtanh",
    "LogSigmoid",
    "Mish",
    "PReLU",
    "SeLU",
    "Softsign",
    "get_activation",
]
