"""Functions that are called before or after a cell's construct, or with gradients that pass."""

import itertools
import weakref

import muster
from muster import _core

_KINDS = ("forward_pre", "forward", "backward_pre", "backward")
_numbers = itertools.count()


class HookHandle:
    """What registering a function gives: remove() takes it away again."""

    def __init__(self, holder: dict, number: int, changed=lambda: None):
        self._holder = holder
        self._number = number
        self._changed = changed

    def remove(self) -> None:
        """The function is called no more."""
        self._holder.pop(self._number, None)
        self._changed()


def register(cell, kind: str, function, with_kwargs=False) -> HookHandle:
    """The function is called with each call of the cell from now on; with `with_kwargs` it gets the arguments
    by name too, behind the others."""
    if not callable(function):
        raise TypeError(f"register_{kind}_hook() takes a function, not {type(function).__name__}")
    _leave_trace()
    if "_hooks" not in cell.__dict__:
        cell._hooks = {each: {} for each in _KINDS}
    hooks = cell.__dict__["_hooks"]
    if kind.startswith("backward") and "bprop" not in cell.__dict__ and hasattr(type(cell), "bprop"):
        cell.bprop = _hooked_bprop(weakref.ref(cell))
    number = next(_numbers)
    hooks[kind][number] = _BY_KIND[kind](function, with_kwargs) if kind in _BY_KIND else function

    def changed():
        if not any(hooks.values()) and "_hooks" in cell.__dict__:
            del cell._hooks

    return HookHandle(hooks[kind], number, changed)


def _before(function, with_kwargs):
    """Called with the cell and its arguments, and those by name; gives both as the function leaves them."""

    def hook(cell, args, kwargs):
        answer = function(cell, args, kwargs) if with_kwargs else function(cell, args)
        if answer is None:
            return args, kwargs
        if not with_kwargs:
            return _as_tuple(answer), kwargs
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise RuntimeError(
                "a forward pre hook with with_kwargs=True gives None or (args, kwargs), not "
                f"{type(answer).__name__}: {answer!r}"
            )
        return answer

    return hook


def _behind(function, with_kwargs):
    """Called with the cell, its arguments, those by name and the result."""

    def hook(cell, args, kwargs, result):
        answer = function(cell, args, kwargs, result) if with_kwargs else function(cell, args, result)
        return result if answer is None else answer

    return hook


_BY_KIND = {"forward_pre": _before, "forward": _behind}


def _leave_trace() -> None:
    """Code that registers a function where a graph is made runs again, op by op, before it is registered: a
    cell with functions runs so anyway, and would have two of them."""
    if _core._is_tracing():
        str(muster.ops.full((), 0.0))


def _hooked_bprop(place):
    """The bprop of a cell's class, whose gradients go through the functions: it hides those of construct."""

    def bprop(*given):
        cell, flow = place(), given[-1]
        hooks, flows = cell.__dict__.get("_hooks", {each: {} for each in _KINDS}), {}
        passed = _before_backward(cell, hooks, _as_tuple(flow), flows)
        answer = type(cell).bprop(cell, *given[:-1], passed if isinstance(flow, tuple) else passed[0])
        return _backward(cell, hooks, tuple(answer) if isinstance(answer, list) else _as_tuple(answer), flows)

    return bprop


class _Tap(muster.Cell):
    """x as it is, whose gradient goes through a function."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def construct(self, *inputs):
        return inputs if len(inputs) > 1 else inputs[0]

    def bprop(self, *given):
        flows = given[-1] if isinstance(given[-1], tuple) else (given[-1],)
        answer = self._function(flows)
        return flows if answer is None else answer


def with_gradient(tensor, function):
    """The tensor, whose gradient is what function(gradient) gives, unless that is None."""

    def through(flows):
        answer = function(flows[0])
        return None if answer is None else (answer,)

    return _Tap(through)(tensor)


def _tapped(values, function):
    """Tensors with the function around their gradients together."""
    made = _Tap(function)(*values)
    return made if isinstance(made, tuple) else (made,)


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _run(cell, construct, args, kwargs):
    hooks = cell.__dict__["_hooks"]
    for hook in tuple(hooks["forward_pre"].values()):
        args, kwargs = hook(cell, args, kwargs)
    flows = {}
    if "bprop" in cell.__dict__:
        hooks = {**hooks, "backward_pre": {}, "backward": {}}
    has_backward = hooks["backward"] and all(isinstance(arg, muster.Tensor) for arg in args)
    if has_backward:
        args = _tapped(args, lambda grads: _backward(cell, hooks, grads, flows))
    result = construct(args, kwargs)
    for hook in tuple(hooks["forward"].values()):
        result = hook(cell, args, kwargs, result)
    if not has_backward and not hooks["backward_pre"]:
        return result
    tapped = _tapped(_as_tuple(result), lambda grads: _before_backward(cell, hooks, grads, flows))
    return tapped if isinstance(result, tuple) else tapped[0]


def _before_backward(cell, hooks, grads, flows):
    for hook in tuple(hooks["backward_pre"].values()):
        answer = hook(cell, grads)
        grads = grads if answer is None else _as_tuple(answer)
    flows["out"] = grads
    return grads


def _backward(cell, hooks, grads, flows):
    for hook in tuple(hooks["backward"].values()):
        answer = hook(cell, grads, flows.get("out", ()))
        grads = grads if answer is None else _as_tuple(answer)
    return grads


_core._set_hook_caller(_run)
