"""mindspore.ops.kernel: functions written with the words of MindSpore's language for loops, run by Python."""

import contextlib
import functools
import itertools
import math
import types


def _erf(x):
    import numpy

    return numpy.vectorize(math.erf, otypes=[numpy.asarray(x).dtype])(x)[()]


def _allocate(shape, dtype="float32", scope="global"):
    import numpy

    return numpy.zeros(shape, dtype)


def _grid(extents):
    return itertools.product(*map(range, extents))


@contextlib.contextmanager
def _scope(*args, **kwargs):
    yield


# By the word: the function of numpy.
_SAME = (
    *("abs", "ceil", "cos", "exp", "expm1", "float16", "float32", "float64", "floor", "int16", "int32"),
    *("int64", "int8", "isfinite", "isinf", "isnan", "log", "power", "round", "sign", "sin", "sqrt", "tanh"),
    "trunc",
)
_OF_NUMPY = {**{name: name for name in _SAME}, "atan": "arctan", "atan2": "arctan2"}


@functools.cache
def _words():
    """What a function may use without importing it."""
    import numpy

    return {
        **{word: getattr(numpy, name) for word, name in _OF_NUMPY.items()},
        **dict.fromkeys(("range", "serial", "vectorize", "parallel", "reduce"), range),
        **dict.fromkeys(("allocate", "output_tensor"), _allocate),
        **dict.fromkeys(("attr", "block_realize"), _scope),
        "grid": _grid,
        "erf": _erf,
        "rsqrt": lambda x: 1 / numpy.sqrt(x),
        "ceil_div": lambda a, b: (a + b - 1) // b,
    }


def _of_words(function):
    @functools.wraps(function)
    def call(*args):
        names = {**_words(), **function.__globals__}
        own = types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        return own(*args)

    return call


def kernel(fn=None, reg_info=None, compile_attrs=None):
    """A function with the words allocate, output_tensor, grid, serial and so on, as one of arrays.

    Args:
        fn: The function; without it a decorator is given.
        reg_info: What is said of a custom op: kept as an attribute.
        compile_attrs: A dict for the compiler of loops, which is not asked: Python runs them.
    """
    if not isinstance(compile_attrs or {}, dict):
        raise TypeError(f"kernel(): compile_attrs is a dict, not {type(compile_attrs).__name__}")
    for key in compile_attrs or {}:
        if not isinstance(key, str):
            raise TypeError(f"kernel(): the keys of compile_attrs are strings, not {key!r}")
    if reg_info is not None and not isinstance(reg_info, (str, dict, tuple)):
        raise TypeError(f"kernel(): reg_info is a string, dict or tuple, not {type(reg_info).__name__}")

    def made(function):
        call = _of_words(function)
        call.reg_info = reg_info
        return call

    return made if fn is None else made(fn)


ms_kernel = kernel

__all__ = ["kernel", "ms_kernel"]
