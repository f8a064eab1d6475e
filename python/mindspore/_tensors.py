"""What MindSpore's tensors and parameters have beside muster's; functions by name are in _members."""

import itertools
import os
import weakref

import muster
from muster import _core

Tensor = muster.Tensor


class TensorMeta(type(Tensor)):
    """What metaclasses of scripts' own classes of tensors derive from."""


_numbers = itertools.count()
_hooked = {}  # by the id of a tensor: (what tells its end, the functions its gradient goes through)


def _pass_gradients(tensor, functions):
    """The tensor's gradient goes through the functions that there are by then, the first one first."""
    from mindspore import _hooks

    def through(gradient):
        return _passed(gradient, tuple(functions.values()))

    _core._set_value(tensor, _hooks.with_gradient(tensor, through))


def _passed(gradient, functions):
    for function in functions:
        answer = function(gradient)
        gradient = gradient if answer is None else answer
    return gradient


def hooks_of(value) -> list:
    """The functions that the gradient of a tensor goes through, by now, the first one first."""
    return list(_hooked[id(value)][1].values()) if id(value) in _hooked else []


def gradient_hooks(value):
    """What the gradient of an argument goes through: the functions that its tensors have by now; None where
    no tensor at all has one."""
    if not _hooked:
        return None
    if type(value) in (tuple, list):
        parts = [gradient_hooks(each) for each in value]
        return lambda gradients: type(gradients)(map(_call, parts, gradients))
    if isinstance(value, dict):
        named = {name: gradient_hooks(each) for name, each in value.items()}
        return lambda gradients: {name: named[name](each) for name, each in gradients.items()}
    functions = hooks_of(value)
    return lambda gradient: _passed(gradient, functions)


def _call(function, value):
    return function(value)


def _functions_of(tensor):
    key = id(tensor)
    if key not in _hooked:
        functions = {}
        _pass_gradients(tensor, functions)
        _hooked[key] = (weakref.ref(tensor, lambda _: _hooked.pop(key, None)), functions)
    return _hooked[key][1]


def register_hook(self, hook):
    """A function that is called with the gradient of the tensor; what it gives, unless None, takes its place.

    Several are called in the order of their registration. The handle's remove() ends it.

    Raises:
        TypeError: The hook is no function.
        NotImplementedError: The tensor is a parameter, whose gradient no function would see.
    """
    from mindspore import _hooks

    if not callable(hook):
        raise TypeError(f"register_hook() takes a function, not {type(hook).__name__}")
    if isinstance(self, _core.Parameter):
        raise NotImplementedError(
            f"Parameter.register_hook() of '{self.name}' is not provided: change the gradients that "
            "value_and_grad gives before the optimizer takes them"
        )
    functions = _functions_of(self)
    number = next(_numbers)
    functions[number] = hook
    return _hooks.HookHandle(functions, number)


_deepcopy = Tensor.__deepcopy__


def deepcopy(self, memo):
    """A copy, also of a tensor that declares a shape for set_inputs() and has no elements to copy."""
    if all(size >= 0 for size in self.shape):
        return _deepcopy(self, memo)
    return Tensor(dtype=self.dtype, shape=None if self.shape == (-2,) else self.shape)


def _array_priority(self) -> float:
    """numpy.sqrt(2) * x is a tensor where gradients may be noted, in graphs among others: an array would cut
    them off. Elsewhere it is numpy's array, as in MindSpore."""
    return 1e3 if _core._notes_gradients() else -1e6  # numpy's for what has none


_init, _reduce = Tensor.__init__, Tensor.__reduce__


def _make(cls, *arguments):
    """A tensor of a class that a script has derived: its __init__ may take something else."""
    made = cls.__new__(cls)
    _init(made, *arguments)
    return made


def reduce(self):
    """For copy.copy and pickle: with the class and what a script has set on the tensor, which deepcopy leaves
    behind."""
    make, arguments = _reduce(self)
    if type(self) is not make and not isinstance(self, _core.InitialValue):
        make, arguments = _make, (type(self), *arguments)
    attributes = vars(self)
    return (make, arguments, dict(attributes)) if attributes else (make, arguments)


_settings = {}  # by the address of a parameter: (its watch, what was set), since its objects come and go


def _settings_of(parameter):
    watch, settings = _settings.get(parameter._address, (None, None))
    return settings if watch is not None and watch.is_alive else {}


def _noted(name, first):
    """A setting that changes nothing on a CPU, and is kept as it was set."""

    def get(self):
        return _settings_of(self).get(name, first)

    def put(self, value):
        for address in [each for each, (watch, _) in _settings.items() if not watch.is_alive]:
            del _settings[address]
        _settings[self._address] = (self._watch(), {**_settings_of(self), name: value})

    return property(get, put)


_NOTED = {
    "parallel_optimizer": True,
    "parallel_optimizer_comm_recompute": False,
    "comm_fusion": 1,
    "unique": False,
    "sliced": False,
    "cache_enable": False,
    "cache_shape": [],
    "init_in_server": False,
    "key": -1,
    "requires_aggr": True,
    "is_param_ps": False,
    "_is_table": False,
}
_set_param_ps = _core.Parameter.set_param_ps


def set_param_ps(self, init_in_server=False) -> None:
    """Marks the parameter: it lives on parameter servers. A process of a job that has called no init()
    joins it here."""
    from mindspore import communication

    communication.join_servers()
    _set_param_ps(self, init_in_server)
    self.is_param_ps = True


def is_served(parameter) -> bool:
    """Whether parameter servers hold it: not those of a process alone."""
    return parameter.is_param_ps and "MS_ROLE" in os.environ


def is_served_table(parameter) -> bool:
    """Whether its rows are on parameter servers, and a row of zeros in its place here."""
    return parameter._is_table and is_served(parameter)


def check_whole(parameter) -> None:
    """An error where a copy of the elements here would be a row of zeros."""
    if is_served_table(parameter):
        raise NotImplementedError(
            f"clone() of table '{parameter.name}': its rows are on parameter servers; its cell looks rows "
            "up, and save_checkpoint() writes them all"
        )


_clone = _core.Parameter.clone


def clone(self, init="same"):
    """Another parameter of this name, shape and dtype: with equal elements, or filled as `init` says. Of a
    table on parameter servers it is what the table's gradient is."""
    if isinstance(init, str) and init == "same":
        check_whole(self)
    return _clone(self, init)


_PARAMETER_MEMBERS = {
    "set_param_ps": set_param_ps,
    "clone": clone,
    **{name: _noted(name, first) for name, first in _NOTED.items()},
    "is_init": property(lambda self: False, lambda self, value: None),
    "pipeline_stages": property(lambda self: []),
    "param_info": property(lambda self: self),
    "inited_param": property(lambda self: None),
    "is_default_input_init": property(lambda self: False),
    "copy": lambda self: self.clone(),
}


def _parameter_text(self) -> str:
    return (
        f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, "
        f"requires_grad={self.requires_grad})"
    )


_view = Tensor.asnumpy


def asnumpy(self):
    """The elements as an array of their own, which a script may write to: boxes are scaled in place."""
    array = _view(self)
    return array if array.flags.writeable else array.copy()


def _data_ptr(self) -> int:
    from mindspore._members import _facts

    return _facts.data_ptr(self)


# The members that MindSpore's have in C++, which stay when a library sets its own for all tensors.
_PLAIN = {
    "_shape": Tensor.shape,
    "_dtype": Tensor.dtype,
    "_size": Tensor.size,
    "_nbytes": Tensor.nbytes,
    "_itemsize": property(lambda self: self._nbytes // max(self._size, 1)),
    "_item": Tensor.item,
    "_tolist": Tensor.tolist,
    "_data_ptr": _data_ptr,
}


def install() -> None:
    """Tensors of both packages are one class, so both have these members once mindspore is imported."""
    Tensor.asnumpy = Tensor.numpy = asnumpy
    Tensor.param_info = None  # what libraries with parameters of their own set on a tensor
    for name, member in _PLAIN.items():
        setattr(Tensor, name, member)
    Tensor.register_hook = register_hook
    Tensor.__deepcopy__ = deepcopy
    Tensor.__reduce__ = reduce
    Tensor.__array_priority__ = property(_array_priority)
    Tensor.__module__ = "mindspore.common.tensor"  # what type(tensor) shows
    for name, member in _PARAMETER_MEMBERS.items():
        setattr(_core.Parameter, name, member)
    _core.Parameter.__str__ = _parameter_text
    _core.Parameter.__repr__ = _parameter_text


install()
