"""mindspore.ops.primitive: the base class of ops as classes, and what marks functions."""

import functools
import inspect

from mindspore import _names
from mindspore.ops._host import constexpr
from mindspore.ops._primitive import Primitive


def prim_attr_register(fn):
    """An __init__ whose arguments become attributes of the op."""
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def init(self, *args, **kwargs):
        Primitive.__init__(self)
        given = signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        for name, value in list(given.arguments.items())[1:]:
            setattr(self, name, value)
        fn(self, *args, **kwargs)

    return init


class PrimitiveWithInfer(Primitive):
    """A Primitive of a script, which computes in `compute`."""


class PrimitiveWithCheck(PrimitiveWithInfer):
    """A Primitive of a script, which computes in `compute`."""


_primexpr = constexpr

__all__ = ["Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "constexpr", "prim_attr_register"]
__getattr__ = _names.missing(__name__)
