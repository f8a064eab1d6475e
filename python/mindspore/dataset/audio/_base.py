"""What operations on sounds share: an array (..., time) comes in, and one of floats goes out."""

from mindspore._lazy import numpy
from mindspore.dataset import _checks

_FLOAT_MAX = 16777216


class AudioOperation:
    """An operation on one array; others after it in a row are changed alike."""

    shape = "<..., time>"
    ranks_from = 1
    kinds = ("iufb", "[int, float, double]")

    def __call__(self, *inputs):
        made = [self._checked(each) for each in inputs]
        return made[0] if len(made) == 1 else tuple(made)

    def _checked(self, values):
        if not isinstance(values, numpy.ndarray):
            raise TypeError(f"Input should be NumPy audio, got {type(values)}.")
        name = type(self).__name__
        kinds, said = self.kinds
        if values.dtype.kind not in kinds:
            raise _checks.PipelineError(
                f"{name}: the data type of input tensor does not match the requirement of operator. "
                f"Expecting tensor in type of {said}. But got type "
                f"{'string' if values.dtype.kind in 'USO' else values.dtype}."
            )
        if values.ndim < self.ranks_from or not self._fits(values.shape):
            raise _checks.PipelineError(
                f"{name}: the shape of input tensor does not match the requirement of operator. "
                f"Expecting tensor in shape of {self.shape}. But got tensor with dimension {values.ndim}."
            )
        return self._made(values)

    def _fits(self, shape):
        return True

    def _made(self, values):
        """The result, computed in float64; it is float32 unless the input is float64."""
        dtype = numpy.float64 if values.dtype == numpy.float64 else numpy.float32
        return self._array(values.astype(numpy.float64)).astype(dtype)

    def __repr__(self):
        return type(self).__name__


class ComplexOperation(AudioOperation):
    """An operation on complex numbers: the last dimension holds both parts."""

    shape = "<..., complex=2>"
    ranks_from = 2

    def _fits(self, shape):
        return shape[-1] == 2


def float32(name, value, types=(float, int)):
    """`value`, a number that float32 holds exactly enough."""
    _checks.of_type(name, value, *types)
    return interval(name, value, -_FLOAT_MAX, _FLOAT_MAX)


def positive(name, value, types=(float, int)):
    """`value`, a number above 0."""
    _checks.of_type(name, value, *types)
    if not 0 < value <= _FLOAT_MAX:
        raise ValueError(f"Input {name} is not within the required interval of (0, {_FLOAT_MAX}].")
    return value


def not_negative(name, value, types=(float, int)):
    """`value`, a number from 0 on."""
    _checks.of_type(name, value, *types)
    return interval(name, value, 0, _FLOAT_MAX)


def interval(name, value, low, high):
    """`value`, if it is from `low` to `high`."""
    if not low <= value <= high:
        raise ValueError(f"Input {name} is not within the required interval of [{low}, {high}].")
    return value


def between(name, value, low, high):
    """A number from `low` to `high`."""
    _checks.of_type(name, value, float, int)
    return interval(name, value, low, high)


def whole_from(name, value, low, optional=False):
    """A whole number from `low` on."""
    if optional and value is None:
        return None
    _checks.of_type(name, value, int)
    return interval(name, value, low, _checks.INT32_MAX)


def sample_rate(value):
    """A sampling rate, which may be negative and not 0."""
    _checks.of_type("sample_rate", value, int)
    if value == 0 or not -_checks.INT32_MAX - 1 <= value <= _checks.INT32_MAX:
        raise ValueError(
            "Input sample_rate is not within the required interval of [-2147483648, 0) and (0, 2147483647]."
        )
    return value


def quality(value):
    """The quality of a filter: above 0, at most 1."""
    _checks.of_type("Q", value, float, int)
    if not 0 < value <= 1:
        raise ValueError("Input Q is not within the required interval of (0, 1].")
    return value
