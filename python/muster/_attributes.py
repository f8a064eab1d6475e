"""What built-in cells were made with, as attributes: conv.kernel_size, dense.has_bias.

They say what the cell is; writing one changes a Python attribute and not what the cell computes.
"""

from muster import _core

_MADE_WITH = "_made_with"  # the arguments of the library's __init__, which puts them into __dict__
_names: dict[type, tuple[str, ...]] = {}


def argument_names(signature: str) -> tuple[str, ...]:
    """Of the text of a signature: 'def __init__(self, a: int, b: object = ...) -> None'."""
    names, depth, word = [], 0, ""
    for character in signature[signature.index("(") + 1 : signature.rindex(") ->")] + ",":
        if character == "," and depth == 0:
            names.append(word.partition(":")[0].partition("=")[0].strip())
            word = ""
            continue
        depth += (character in "([") - (character in ")]")
        word += character
    return tuple(name for name in names[1:] if name not in ("*", "/"))


def given(cell) -> dict:
    """What a cell of the library was made with, by name."""
    kind = next(base for base in type(cell).__mro__ if base.__module__ == _core.__name__)
    if kind not in _names:
        _names[kind] = argument_names(kind.__init__.__nb_signature__[0][0])
    return dict(zip(_names[kind], cell.__dict__.get(_MADE_WITH, ()), strict=False))


def _pair(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def _child(cell, name):
    return cell.name_cells().get(name)


# By class and attribute: what it is, from the cell and the arguments that it was made with.
_CONVOLUTION = {
    **{
        name: lambda cell, given, name=name: _pair(given[name])
        for name in ("kernel_size", "stride", "dilation")
    },
    "bias": lambda cell, given: None,
    "format": lambda cell, given: given["data_format"],
}
_POOLING = {
    "pad_mode": lambda cell, given: given["pad_mode"].upper(),
    "format": lambda cell, given: given["data_format"],
}
_BATCH_NORM = {"momentum": lambda cell, given: 1.0 - given["momentum"]}
_SPECIAL = {
    "Conv2d": _CONVOLUTION,
    "MaxPool2d": _POOLING,
    "AvgPool2d": _POOLING,
    "BatchNorm1d": _BATCH_NORM,
    "BatchNorm2d": _BATCH_NORM,
    "BatchNorm3d": _BATCH_NORM,
    "Dense": {
        "bias": lambda cell, given: None,
        "activation": lambda cell, given: _child(cell, "activation"),
        "activation_flag": lambda cell, given: _child(cell, "activation") is not None,
    },
    "LossBase": {
        "reduce": lambda cell, given: given.get("reduction", "mean") != "none",
        "average": lambda cell, given: given.get("reduction", "mean") == "mean",
    },
}
# What people who know PyTorch look for, and what says the same here.
_GRADIENTS = "gradients are what muster.value_and_grad(...) gives, and none are kept"
_ELSEWHERE = {
    "train": "set_train()",
    "eval": "set_train(False)",
    "parameters": "get_parameters(), or trainable_params()",
    "named_parameters": "parameters_and_names()",
    "modules": "cells_and_names()",
    "state_dict": "parameters_dict(), and muster.save_checkpoint(net, file)",
    "load_state_dict": "muster.load_param_into_net(net, parameters)",
    "requires_grad_": "requires_grad = False of each of its parameters",
    "step": f"call it with the gradients, optimizer(gradients); {_GRADIENTS}",
    "zero_grad": _GRADIENTS,
    "to": "cells compute on CPUs: leave it out",
    "cuda": "cells compute on CPUs: leave it out",
    "cpu": "cells compute on CPUs: leave it out",
}
_find = _core.Cell.__getattr__


def kinds_of(cell) -> list[str]:
    """The names of the library's classes that a cell is of. Scripts, and mint, have others of these names."""
    return [
        kind.__name__
        for kind in type(cell).__mro__
        if kind.__module__.startswith(("muster.", "mindspore.nn"))
    ]


def _special(cell, name: str):
    """The function for an attribute of this name, of the first class that has one."""
    for kind in kinds_of(cell):
        made = _SPECIAL.get(kind, {}).get(name)
        if made is not None:
            return made
    return None


def _attribute(self, name: str):
    try:
        return _find(self, name)
    except AttributeError as error:
        if name.startswith("_"):
            raise
        arguments, special = given(self), _special(self, name)
        if special is not None:
            return special(self, arguments)
        if name in arguments:
            return arguments[name]
        if name not in _ELSEWHERE:
            raise
        raise AttributeError(f"{error}: {_ELSEWHERE[name]}", name=name, obj=self) from None


_core.Cell.__getattr__ = _attribute
