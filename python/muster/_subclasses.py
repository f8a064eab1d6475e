"""Subclasses in Python of the library's classes: what they define is called, or refused.

An object is whole once its __init__ is done. A subclass need not call super().__init__() where the base
class takes nothing, as Callback and Metric. Elsewhere an object without it would fail at its first use, far
from the line that is missing, so making it is the error. So is what a subclass defines for MindSpore and this
library would never call. A name that is nearly that of a hook gets a warning where the class is made.
"""

import functools
import threading
import types
import warnings
import weakref

from muster import _core

_TAKES_NOTHING = (_core.Callback, _core.Metric)
_LIBRARIES = ("muster", "mindspore")

_CELL_ADVICE = "compute in construct, which each call of the cell comes to"
_TREE_ADVICE = "set cells and parameters as attributes, which are found by everything"
_DATA_ADVICE = (
    "a Model reads the rows of the source itself: give GeneratorDataset a source with __getitem__ and "
    "__len__, or with __iter__, that does it"
)
_SAMPLER_ADVICE = "give the dataset a list of row numbers as its sampler"
_UPDATE_ADVICE = "subclass Optimizer itself, and define construct(self, gradients) with it"
_LOSS_ADVICE = "subclass LossBase itself, and define construct with it"

# By base class: what MindSpore calls in a subclass and this library does not, and what to do instead.
_NEVER_CALLED = {
    _core.Cell: {
        "__call__": "one class has one, which calls super().__call__(): compute the rest in construct",
        "run_construct": _CELL_ADVICE,
        "cast_inputs": "cast in construct, or use to_float",
        "get_parameters": _TREE_ADVICE,
        "parameters_and_names": _TREE_ADVICE,
        "cells": _TREE_ADVICE,
        "cells_and_names": _TREE_ADVICE,
        "name_cells": _TREE_ADVICE,
    },
    _core.Model: dict.fromkeys(
        (
            "_build_train_network",
            "_build_eval_network",
            "_train_process",
            "_train_dataset_sink_process",
            "_eval_process",
            "_eval_dataset_sink_process",
        ),
        "give Model a cell as its network that gives the loss, or write the loop by hand",
    ),
    _core.Dataset: dict.fromkeys(
        (
            "__iter__",
            "__len__",
            "create_dict_iterator",
            "create_tuple_iterator",
            "get_batch_size",
            "get_col_names",
            "get_dataset_size",
            "get_repeat_count",
            "is_sharded",
            "is_shuffled",
            "parse",
            "reset",
        ),
        _DATA_ADVICE,
    ),
    _core.Sampler: dict.fromkeys(
        ("__iter__", "__len__", "add_child", "get_indices", "get_num_samples", "parse", "reset"),
        _SAMPLER_ADVICE,
    ),
    _core.Transform: dict.fromkeys(
        ("__call__", "execute_batch", "execute_py", "parse"), "give map() a function that does it"
    ),
}
# The same of subclasses of what is built in. A direct subclass calls them in its construct.
_NEVER_CALLED_BELOW = {
    _core.Optimizer: dict.fromkeys(
        (
            "broadcast_params",
            "decay_weight",
            "flatten_gradients",
            "get_lr",
            "get_lr_parameter",
            "get_weight_decay",
            "gradients_centralization",
            "scale_grad",
        ),
        _UPDATE_ADVICE,
    ),
    _core.LossBase: {"get_axis": _LOSS_ADVICE, "get_loss": _LOSS_ADVICE},
}

_STAGES = ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")
# By base class: what is called, for names that are nearly one of them.
_HOOKS = {
    _core.Callback: (
        *_STAGES,
        *(f"on_{when}_{stage}" for when in ("train", "eval") for stage in _STAGES),
        "state_dict",
        "load_state_dict",
    ),
    _core.Metric: ("clear", "update", "eval", "state_dict", "load_state_dict"),
    _core.Cell: ("construct", "bprop", "extend_repr"),
}
# What others call it.
_ELSEWHERE = {_core.Cell: {"forward": "construct", "backward": "bprop"}, _core.Metric: {"compute": "eval"}}
_NEARLY = 0.8


def _is_ours(kind) -> bool:
    return kind.__module__.partition(".")[0] in _LIBRARIES


def _definer(kind, name):
    """The class outside of the library that defines the name; None: there is none."""
    return next((parent for parent in kind.__mro__ if name in vars(parent) and not _is_ours(parent)), None)


def _library_base(kind):
    return next(parent for parent in kind.__mro__ if _is_ours(parent))


def _never_called(kind):
    """(name, advice) for each of those that the class defines."""
    tables = [names for base, names in _NEVER_CALLED.items() if issubclass(kind, base)]
    below = _NEVER_CALLED_BELOW.items()
    tables += [names for base, names in below if issubclass(kind, base) and _library_base(kind) is not base]
    for names in tables:
        yield from ((name, advice) for name, advice in names.items() if _definer(kind, name))


def _in_vain(kind, name, advice) -> NotImplementedError:
    return NotImplementedError(
        f"{kind.__qualname__} defines {name}, which is not provided yet and would be ignored: {advice}"
    )


def _refuse_never_called(kind) -> None:
    for name, advice in _never_called(kind):
        raise _in_vain(kind, name, advice)


def _nearest(base, name):
    """The hook that the name was probably meant to be."""
    import difflib  # here, since it takes longer than all of this module

    hooks = _HOOKS[base]
    if base is _core.Callback and name.startswith("on_"):
        stages = [hook for hook in hooks if hook.startswith("on_")]
        return difflib.get_close_matches(name, stages, 1, 0)[0]
    near = difflib.get_close_matches(name, hooks, 1, _NEARLY)
    return near[0] if near else _ELSEWHERE.get(base, {}).get(name)


def _warn_of_misspelt_hooks(kind) -> None:
    base = next((base for base in _HOOKS if issubclass(kind, base)), None)
    if base is None or _is_ours(kind) or (base is _core.Cell and _definer(kind, "construct")):
        return
    for name, value in vars(kind).items():
        if name.startswith("_") or not isinstance(value, types.FunctionType):
            continue
        if any(name in vars(parent) for parent in kind.__mro__[1:]):
            continue
        hook = _nearest(base, name)
        if hook and hook != name:
            message = f"nothing calls {kind.__qualname__}.{name} by itself; did you mean {hook}?"
            warnings.warn(message, stacklevel=4)  # the class statement: behind it runs abc.py


def _finish(instance) -> None:
    kind = type(instance)
    if _core._is_ready(instance):
        return
    base = next(parent for parent in kind.__mro__ if getattr(_core, parent.__name__, None) is parent)
    if base not in _TAKES_NOTHING:
        raise TypeError(
            f"{kind.__qualname__}.__init__ does not call super().__init__(): add "
            f"'super().__init__(...)' with the arguments of {base.__name__} as its first line"
        )
    base.__init__(instance)


def _allow_second_init(base) -> None:
    """super().__init__() again, as where two classes of a script each call it, changes nothing."""
    make = base.__init__

    @functools.wraps(make)
    def init(self, *args, **kwargs):
        if not (isinstance(self, base) and _core._is_ready(self)):
            make(self, *args, **kwargs)

    init.__nb_signature__ = make.__nb_signature__  # what tells of arguments reads it
    base.__init__ = init


def _keep_functions(base) -> None:
    """A callback knows the functions that it was made with: what looks at their variables finds them."""
    make = base.__init__

    @functools.wraps(make)
    def init(self, *args, **kwargs):
        make(self, *args, **kwargs)
        if type(self) is base:  # attributes of a subclass are state that it has to keep
            self._functions = (*args, *kwargs.values())

    init.__nb_signature__ = make.__nb_signature__
    base.__init__ = init


_inside = threading.local()  # .cells: ids of those whose own __call__ runs on this thread


def _take_call(kind) -> None:
    """A cell's own __call__ stands around its construct from now on: a call of the cell comes to construct
    from everywhere, from C++, too. What it hands to super().__call__() comes to what construct was."""
    own = vars(kind).get("__call__")
    if isinstance(own, types.FunctionType) and not hasattr(kind, "_own_call"):
        del kind.__call__
        kind._own_call = staticmethod(own)
    elif not (hasattr(kind, "_own_call") and "construct" in vars(kind)):
        return
    kind.construct = _around(kind._own_call, kind.construct)


def _around(call, construct):
    @functools.wraps(construct)
    def around(self, *args, **kwargs):
        cells = _inside.__dict__.setdefault("cells", set())
        if id(self) in cells:
            return construct(self, *args, **kwargs)
        cells.add(id(self))
        try:
            return call(self, *args, **kwargs)
        finally:
            cells.discard(id(self))

    return around


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


# What a metaclass may define: it acts while the class is made.
_ACTS_EARLY = {"__init__", "__new__", "__prepare__", "__init_subclass__", "__setattr__", "__module__"}
_ACTS_EARLY |= {"__qualname__", "__doc__", "__dict__", "__weakref__"}


# What asks about its classes, which goes on when a class has objects.
_ASKS = {"__instancecheck__", "__subclasscheck__", "__str__", "__repr__"}


_left = weakref.WeakKeyDictionary()  # classes, and the metaclass that each had


def _go_on_asking(meta, ours) -> None:
    """isinstance(), issubclass() and str() ask the metaclass that a class had, once there is such a one."""
    for name in _ASKS:
        if getattr(meta, name) not in (getattr(type, name), getattr(ours, name)):
            _core._set_in_metaclass(name, _asking(name))


def _asking(name):
    plain = getattr(type, name)

    def ask(cls, *others):
        meta = _left.get(cls)
        return plain(cls, *others) if meta is None else getattr(meta, name)(cls, *others)

    return ask


def _leave_metaclass(cls, root) -> None:
    """A metaclass of the script's own makes the class; the class has that of `root` from its first object on,
    since the library takes no others."""
    ours = type(root)
    for meta in type(cls).__mro__[: type(cls).__mro__.index(ours)]:
        for name in vars(meta):
            if name.startswith("__") and name not in _ACTS_EARLY | _ASKS:
                raise TypeError(
                    f"{meta.__qualname__}, the metaclass of {cls.__qualname__}, defines {name}, which would "
                    "be ignored: a metaclass of such a class may act while the class is made (__new__, "
                    "__init__)"
                )

    own = cls.__new__  # a function where a class of the script has one

    def new(cls, *args, **kwargs):
        for kind in cls.__mro__:
            if issubclass(kind, root) and type(kind) is not ours:
                _go_on_asking(type(kind), ours)
                _left[kind] = type(kind)
                _core._leave_metaclass(kind)
        return own(cls, *args, **kwargs) if isinstance(own, types.FunctionType) else root.__new__(cls)

    cls.__new__ = new


def _watch_subclasses_of(root) -> None:
    def watch_init(cls, **arguments):
        super(root, cls).__init_subclass__(**arguments)
        _core._take_bases(cls)
        for meta in {_left[base] for base in cls.__mro__ if base in _left}:
            if not issubclass(type(cls), meta):
                raise TypeError(
                    f"{cls.__qualname__} is made without {meta.__qualname__}, the metaclass of its base, of "
                    f"which there are objects already: say metaclass={meta.__qualname__}"
                )
        if type(cls) is not type(root):
            _leave_metaclass(cls, root)
        if issubclass(cls, _core.Cell):
            _take_call(cls)
        _watch_init(cls)
        _warn_of_misspelt_hooks(cls)

    root.__init_subclass__ = classmethod(watch_init)


for _kind in (_core.Cell, *_TAKES_NOTHING):
    _allow_second_init(_kind)

for _kind in (_core.LearningRateScheduler, _core.LambdaCallback):
    _keep_functions(_kind)

for _kind in list(vars(_core).values()):
    if isinstance(_kind, type) and _kind.__bases__ == (object,):
        _watch_subclasses_of(_kind)


def watch_datasets(root) -> None:
    """Datasets under other names: what a subclass of `root` would define in vain is refused, once one is
    made: libraries define such classes for uses of their own that a script may never come to."""

    def watch(cls, **arguments):
        super(root, cls).__init_subclass__(**arguments)
        for name, advice in _NEVER_CALLED[_core.Dataset].items():
            if _definer(cls, name):
                cls.__new__ = staticmethod(_refusing(cls, name, advice))
                return

    root.__init_subclass__ = classmethod(watch)


def _refusing(kind, name, advice):
    def refuse(cls, *arguments, **keywords):
        raise _in_vain(kind, name, advice)

    return refuse
