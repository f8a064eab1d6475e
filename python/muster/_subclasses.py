"""Subclasses in Python of the library's classes: an object is whole once its __init__ is done.

A subclass need not call super().__init__() where the base class takes nothing, as Callback and Metric.
Elsewhere an object without it would fail at its first use, far from the line that is missing, so making it is
the error. So is what a subclass defines for other libraries and this one would ignore.
"""

import functools
import types

from muster import _core

_TAKES_NOTHING = (_core.Callback, _core.Metric)
# By base class: what MindSpore calls in a subclass, and what to do without it.
_NEVER_CALLED = {
    _core.Cell: {
        "bprop": "gradients are always those of construct; a gradient of your own is written there, with "
        "ops.stop_gradient, as y + ops.stop_gradient(value - y)",
    },
    _core.Initializer: {
        "_initialize": "give the parameter a tensor that holds the elements: Parameter(muster.Tensor(...))",
    },
}


def _never_called(kind):
    """(name, advice) for each of those that the class defines."""
    for base, names in _NEVER_CALLED.items():
        if issubclass(kind, base):
            yield from ((name, advice) for name, advice in names.items() if hasattr(kind, name))


def _refuse_never_called(kind) -> None:
    for name, advice in _never_called(kind):
        raise NotImplementedError(
            f"{kind.__qualname__} defines {name}, which is not provided yet and would be ignored: {advice}"
        )


def _finish(instance) -> None:
    kind = type(instance)
    if _core._is_ready(instance):
        return
    base = next(parent for parent in kind.__mro__ if parent.__module__ == _core.__name__)
    if base not in _TAKES_NOTHING:
        raise TypeError(
            f"{kind.__qualname__}.__init__ does not call super().__init__(): add "
            f"'super().__init__(...)' with the arguments of {base.__name__} as its first line"
        )
    base.__init__(instance)


def _watch_init(kind) -> None:
    init = kind.__init__
    is_of_library = not isinstance(init, types.FunctionType)
    if is_of_library and not any(_never_called(kind)):
        return

    @functools.wraps(init)
    def whole(self, *args, **kwargs):
        if type(self) is not kind:
            return init(self, *args, **kwargs)
        _refuse_never_called(kind)
        init(self, *args, **kwargs)
        _finish(self)

    kind.__init__ = whole


def _watch_subclasses_of(root) -> None:
    def watch_init(cls, **arguments):
        super(root, cls).__init_subclass__(**arguments)
        _watch_init(cls)

    root.__init_subclass__ = classmethod(watch_init)


for _kind in list(vars(_core).values()):
    if isinstance(_kind, type) and _kind.__bases__ == (object,):
        _watch_subclasses_of(_kind)
