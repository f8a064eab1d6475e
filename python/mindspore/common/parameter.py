"""mindspore.common.parameter: Parameter, and tuples of them."""

from mindspore import _names, _tensors
from muster import Parameter


class ParameterTuple(tuple):
    """Parameters: those of the cell that they are set on. They may be cloned as the state of an optimizer."""

    _is_of_cell = True  # what a cell looks for

    def __new__(cls, iterable=()):
        made = super().__new__(cls, iterable)
        names = set()
        for parameter in made:
            if not isinstance(parameter, Parameter):
                raise TypeError(f"ParameterTuple holds Parameters, not {type(parameter).__name__}")
            if not parameter.name:
                parameter.name = f"Parameter${len(names) + 1}"
            if parameter.name in names:
                raise ValueError(f"ParameterTuple: two parameters have the name '{parameter.name}'")
            names.add(parameter.name)
        return made

    def __reduce__(self):
        return ParameterTuple, (tuple(self),)

    def clone(self, prefix="", init="same"):
        """Parameters named "<prefix>.<name>" of the same shapes, with equal values or as `init` says.

        Args:
            prefix: A string.
            init: 'same', or the name of an initializer, an Initializer or a number.
        """
        if not isinstance(prefix, str):
            raise TypeError(f"ParameterTuple.clone: the prefix is a string, not {type(prefix).__name__}")
        return ParameterTuple(_cloned(parameter, prefix, init) for parameter in self)


def _cloned(parameter, prefix, init):
    name = f"{prefix}.{parameter.name}" if prefix else parameter.name
    if isinstance(init, str) and init == "same":
        _tensors.check_whole(parameter)
        return Parameter(parameter, name=name, requires_grad=parameter.requires_grad)
    made = parameter.clone(init)
    made.name = name
    return made


__all__ = ["Parameter", "ParameterTuple"]
__getattr__ = _names.missing(__name__)
