"""state_dict() and load_state_dict() of cells: parameters, buffers, and what hooks and extra state add."""

import itertools
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import muster

_EXTRA = "_extra_state"
_numbers = itertools.count()


# No typing.NamedTuple: loading typing takes as long as all modules of mindspore.ops.
class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """Names that were not given, and names that the cell has not."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not any(self):
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


def _hooks(cell, kind) -> dict:
    return cell.__dict__.setdefault("_state_hooks", {}).setdefault(kind, {})


def _called(cell, kind, *given):
    """Calls the functions of one kind: they change what they are given and give nothing."""
    for hook in list(cell.__dict__.get("_state_hooks", {}).get(kind, {}).values()):
        if hook(*given) is not None:
            raise RuntimeError(
                f"a function of register_{kind}_hook() changes what it is given and returns None"
            )


def registering(kind: str):
    """The method register_<kind>_hook."""

    def register(self, hook):
        from mindspore._hooks import HookHandle

        if not callable(hook):
            raise TypeError(f"register_{kind}_hook() takes a function, not {type(hook).__name__}")
        hooks, number = _hooks(self, kind), next(_numbers)
        hooks[number] = hook
        return HookHandle(hooks, number)

    register.__doc__ = (
        f"Calls hook with each {kind.replace('_', ' ')} of the cell; the answer's remove() ends it."
    )
    register.__name__ = f"register_{kind}_hook"
    return register


def get_extra_state(self):
    """What a subclass adds to state_dict(); it defines set_extra_state(state), too."""
    raise RuntimeError(f"{type(self).__name__} defines no get_extra_state()")


def set_extra_state(self, state):
    """Takes what get_extra_state() of a subclass gave."""
    raise RuntimeError(f"{type(self).__name__} defines no set_extra_state()")


def _defines(cell, name) -> bool:
    return getattr(type(cell), name) is not getattr(muster.Cell, name)


def buffer_names(cell) -> dict:
    """The attributes that register_buffer() made, without those deleted since, and whether they are kept."""
    return {name: kept for name, kept in cell.__dict__.get("_buffers", {}).items() if hasattr(cell, name)}


def _own(cell) -> dict:
    """The parameters and the buffers that are kept, of this cell alone."""
    own = dict(cell.parameters_and_names(expand=False))
    kept = [name for name, persistent in buffer_names(cell).items() if persistent]
    found = {name: getattr(cell, name) for name in kept}
    return own | {name: value for name, value in found.items() if value is not None}


def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
    """Parameters and buffers by their places in the cell; subclasses may add an extra state."""
    destination, prefix, keep_vars = (
        (*args, destination, prefix, keep_vars)[:3]
        if args
        else (
            destination,
            prefix,
            keep_vars,
        )
    )
    if not isinstance(destination, dict | None) or not isinstance(prefix, str):
        raise TypeError("state_dict() takes a destination that is a dict and a prefix that is a string")
    made = OrderedDict() if destination is None else destination
    _called(self, "state_dict_pre", self, prefix, keep_vars)
    made.update((prefix + name, value) for name, value in _own(self).items())
    if _defines(self, "get_extra_state"):
        made[prefix + _EXTRA] = self.get_extra_state()
    for name, cell in self.name_cells().items():
        cell.state_dict(destination=made, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    _called(self, "state_dict_post", self, made, prefix, {})
    return made


class _Load:
    """One call of load_state_dict()."""

    def __init__(self, given):
        self.given = given
        self.found = IncompatibleKeys([], [])
        self.errors = []

    def into(self, cell, prefix="") -> None:
        _called(cell, "load_state_dict_pre", cell, self.given, prefix, {}, True, *self.found, self.errors)
        own, children = _own(cell), cell.name_cells()
        for name, tensor in own.items():
            self._set(tensor, prefix + name)
        self._extra(cell, prefix + _EXTRA)
        for key in self.given:
            if key.startswith(prefix) and key != prefix + _EXTRA:
                first, _, below = key[len(prefix) :].partition(".")
                if first not in (children if below else own):
                    self.found.unexpected_keys.append(key)
        for name, child in children.items():
            self.into(child, f"{prefix}{name}.")
        _called(cell, "load_state_dict_post", cell, self.found)

    def _set(self, tensor, key) -> None:
        value = self.given.get(key)
        if key not in self.given:
            self.found.missing_keys.append(key)
        elif not isinstance(value, muster.Tensor):
            self.errors.append(f"{key} is a Tensor, not {type(value).__name__}")
        elif tuple(value.shape) != tuple(tensor.shape):
            self.errors.append(f"size mismatch for {key}: {tuple(value.shape)} for {tuple(tensor.shape)}")
        elif isinstance(tensor, muster.Parameter):
            tensor.set_data(value.astype(tensor.dtype))
        else:
            tensor.assign_value(value.astype(tensor.dtype))

    def _extra(self, cell, key) -> None:
        if _defines(cell, "set_extra_state"):
            if key in self.given:
                cell.set_extra_state(self.given[key])
            else:
                self.found.missing_keys.append(key)
        elif key in self.given:
            self.found.unexpected_keys.append(key)


def load_state_dict(self, state_dict, strict=True):
    """Sets parameters and buffers by their names. With `strict`, names that are missing or not known are a
    RuntimeError; another shape always is."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"load_state_dict() takes a dict, not {type(state_dict).__name__}")
    load = _Load(OrderedDict(state_dict))
    load.into(self)
    missing, unexpected = load.found
    if strict and (missing or unexpected):
        load.errors.append(f"missing {missing}, unexpected {unexpected}")
    if load.errors:
        raise RuntimeError(f"load_state_dict() of {type(self).__name__}: {'; '.join(load.errors)}")
    return load.found


MEMBERS = {
    "state_dict": state_dict,
    "load_state_dict": load_state_dict,
    "get_extra_state": get_extra_state,
    "set_extra_state": set_extra_state,
    "T_destination": dict,
    **{
        f"register_{kind}_hook": registering(kind)
        for kind in ("state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post")
    },
}
