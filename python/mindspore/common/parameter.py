"""mindspore.common.parameter: Parameter, and tuples of them."""

from mindspore import _names
from muster import Parameter
from muster.nn import initializer


class ParameterTuple(tuple):
    """A tuple of Parameters, which may be cloned as the state of an optimizer."""

    def clone(self, prefix, init="same"):
        """Parameters named "<prefix>.<name>" of the same shapes, with equal values or as `init` says.

        Args:
            prefix: A string.
            init: 'same', or the name of an initializer, an Initializer or a number.
        """
        return ParameterTuple(
            Parameter(
                parameter if init == "same" else initializer(init, parameter.shape, parameter.dtype),
                name=f"{prefix}.{parameter.name}",
                requires_grad=parameter.requires_grad,
            )
            for parameter in self
        )


__all__ = ["Parameter", "ParameterTuple"]
__getattr__ = _names.missing(__name__)
