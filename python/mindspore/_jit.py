"""jit and what stands around it: code is traced, so most of its options change nothing."""

import functools
import types
import weakref

import muster
from mindspore import _compiled
from muster import _core

# Of MindSpore's jit, of this version and older ones.
_OPTIONS = frozenset(
    [
        "capture_mode",
        "ge_options",
        "jit_level",
        "dynamic",
        "fullgraph",
        "backend",
        "infer_boost",
        "mode",
        "input_signature",
        "hash_args",
        "jit_config",
        "compile_once",
        "optimize",
        "fallback",
        "debug_level",
        "debug_options",
        "loop_inner_boundary",
    ]
)
# The values of some, those of older versions too.
_VALUES = {
    "capture_mode": ("ast", "bytecode", "trace"),
    "jit_level": ("O0", "O1", "O2"),
    "backend": ("ms_backend", "GE"),
    "mode": ("PSJit", "PIJit"),
}
_PLAIN = (int, float, str, bool, type(None))


class JitConfig:
    """Settings of MindSpore's compiler; here they change nothing."""

    def __init__(self, jit_level="", exc_mode="auto", jit_syntax_level="", debug_level="RELEASE", **kwargs):
        if jit_level not in ("", "O0", "O1", "O2", "O3"):
            raise ValueError(f"JitConfig: jit_level is 'O0', 'O1' or 'O2', not {jit_level!r}")
        self.jit_config_dict = {
            "jit_level": jit_level,
            "exc_mode": exc_mode,
            "jit_syntax_level": jit_syntax_level,
            "debug_level": debug_level,
            **kwargs,
        }


def jit(function=None, *positional, **options):
    """`function` traced once for each signature of its arguments and run as a compiled plan.

    Used plainly, with options, or as a decorator of functions and methods. A cell is given back: it is
    compiled when it is called.
    """
    others = sorted(set(options) - _OPTIONS)
    if others:
        raise TypeError(f"jit() has no option {others[0]!r}; it has {', '.join(sorted(_OPTIONS))}")
    _check_options(options)
    if function is None:
        return functools.partial(jit, **options)
    if isinstance(function, muster.Cell):
        return function
    if not callable(function):
        raise TypeError(f"jit() takes a function or a cell, not {type(function).__name__}")
    return _staged(function)


def _check_options(options) -> None:
    """An error for a value that MindSpore has not: a misspelt mode would be another one in silence."""
    from mindspore import _checkparam

    for name, valid in _VALUES.items():
        if options.get(name, "") != "":
            _checkparam.check_string(options[name], valid, name, "jit")
    _checkparam.check_int_range(options.get("dynamic", 0), 0, 1, _checkparam.INC_BOTH, "dynamic", "jit")
    _checkparam.check_bool(options.get("fullgraph", False), "fullgraph", "jit")


def _staged(given):
    function = _with_globals(given)
    compiled = _core.jit(_with_plain_results(function))
    methods = weakref.WeakKeyDictionary()  # by the object that the method belongs to

    @functools.wraps(function)
    def staged(*args, **kwargs):
        if _core._is_tracing():
            return function(*args, **kwargs)
        if not args or not _is_owner(given, args[0]):
            return compiled(*args, **kwargs)
        owner = args[0]
        if owner not in methods:
            methods[owner] = _method_of(function, weakref.ref(owner))
        return methods[owner](_look_of(owner), *args[1:], **kwargs)

    return staged


def _with_globals(function):
    """The function, which may read global names before it assigns them."""
    called, names = function, []

    @functools.wraps(function)
    def call(*args, **kwargs):
        nonlocal called
        try:
            return called(*args, **kwargs)
        except UnboundLocalError as error:
            from mindspore import _global_names

            name = _global_names.missed(function, error)
            again = name and name not in names and _global_names.beginning_with(function, [*names, name])
            if not again:
                raise
            names.append(name)
            called = again
        return call(*args, **kwargs)

    return call


def _with_plain_results(function):
    @functools.wraps(function)
    def plain(*args, **kwargs):
        with _compiled.marked():
            return _plain(function(*args, **kwargs))

    return plain


# What a graph of MindSpore makes a tuple of, or a list.
_ITERABLES = (enumerate, filter, map, range, zip, types.GeneratorType, type({}.keys()), type({}.values()))
_ITERABLES += (type({}.items()),)


def _plain(result):
    """The result as a graph of MindSpore gives it: without numpy's objects, and sequences for iterators."""
    if type(result) in (tuple, list):
        return type(result)(_plain(each) for each in result)
    if type(result) is dict:
        return {key: _plain(each) for key, each in result.items()}
    if isinstance(result, _ITERABLES):
        kind = list if _gives_list(result) else tuple
        return kind(_plain(each) for each in result)
    is_scalar = (
        type(result).__module__ == "numpy" and hasattr(result, "item") and not hasattr(result, "__len__")
    )
    return result.item() if is_scalar else result


def _gives_list(iterable) -> bool:
    """Those of filter, generators and items of dicts are lists, and those of map over lists."""
    if isinstance(iterable, filter | types.GeneratorType | type({}.items())):
        return True
    if not isinstance(iterable, map):
        return False
    _, (_, *sources) = iterable.__reduce__()
    return all(type(source) is type(iter([])) for source in sources)


def _is_owner(function, first) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_varnames[:1] == ("self",) and not isinstance(first, muster.Tensor)


def _method_of(function, owner):
    def method(_, *args, **kwargs):
        if isinstance(owner(), muster.Cell):
            _core._watch(owner())
        with _compiled.marked():
            return _plain(function(owner(), *args, **kwargs))

    method.__name__ = function.__name__
    return _core.jit(method)


def _look_of(owner):
    """What of the owner a trace may depend on, as a part of the signature. Cells are watched instead."""
    if isinstance(owner, muster.Cell):
        return None
    return tuple(
        (name, value if isinstance(value, _PLAIN) else id(value)) for name, value in vars(owner).items()
    )


def jit_class(cls):
    """The class as it is: objects of every class may be used in traced code."""
    if not isinstance(cls, type):
        raise TypeError(f"jit_class() decorates classes, not {type(cls).__name__}")
    if issubclass(cls, muster.Cell):
        raise TypeError("jit_class() decorates classes that are no cells: a cell is compiled as it is")
    return cls


def mutable(input_data, dynamic_len=False):
    """The value as it is: tensors are always inputs of a graph, and numbers, like the lengths of sequences, a
    part of its signature.

    Raises:
        TypeError: `input_data` holds something else than numbers, tensors, tuples, lists and dicts, or it
            is neither a tuple nor a list and `dynamic_len` is True.
    """
    if not _may_change(input_data):
        raise TypeError(
            "mutable: input_data is a bool, int, float, Tensor, tuple, list, dict, or nested of them, not "
            f"{type(input_data).__name__}: {input_data}"
        )
    if not isinstance(dynamic_len, bool):
        raise TypeError(f"mutable: dynamic_len is True or False, not {dynamic_len!r}")
    if dynamic_len and not isinstance(input_data, (tuple, list)):
        raise TypeError(f"mutable: dynamic_len=True is for a tuple or list, not {type(input_data).__name__}")
    return input_data


def _may_change(value) -> bool:
    if isinstance(value, dict):
        return all(map(_may_change, value.values()))
    if isinstance(value, (tuple, list)):
        return all(map(_may_change, value))
    return isinstance(value, (int, float, muster.Tensor))


def lazy_inline(fn=None, attrs=None, policy=None):
    """A decorator of __init__ that changes nothing."""
    return fn if fn is not None else lambda function: function


def constexpr(fn=None, get_instance=True, name=None, reuse_result=True, check=True):
    """A decorator of functions of constants: Python code runs as it is when a graph is made."""
    if fn is None:
        return functools.partial(constexpr, get_instance=get_instance, name=name)
    if not callable(fn):
        raise TypeError(f"constexpr() decorates functions, not {type(fn).__name__}")
    return fn


def _primexpr(fn=None, get_instance=True, name=None, reuse_result=True):
    """The same as constexpr()."""
    return constexpr(fn, get_instance, name)
