"""Operations on spectrograms."""

from mindspore._lazy import numpy
from mindspore.dataset import _checks, _random
from mindspore.dataset.audio._base import (
    AudioOperation,
    ComplexOperation,
    float32,
    interval,
    not_negative,
    positive,
    whole_from,
)
from mindspore.dataset.audio._enums import BorderType, ScaleType


class Angle(ComplexOperation):
    """The angles of complex numbers."""

    def _array(self, values):
        return numpy.arctan2(values[..., 1], values[..., 0])


class ComplexNorm(ComplexOperation):
    """The lengths of complex numbers to a power."""

    def __init__(self, power=1.0):
        self._power = not_negative("power", power, (int, float))

    def _array(self, values):
        return (values**2).sum(-1) ** (self._power / 2)


class Magphase(ComplexOperation):
    """Lengths to a power, and angles."""

    def __init__(self, power=1.0):
        self._power = not_negative("power", power, (int, float))

    def _made(self, values):
        return ComplexNorm(self._power)._checked(values), Angle()._checked(values)


class AmplitudeToDB(AudioOperation):
    """Decibels, at most `top_db` below the greatest of an example."""

    shape = "<..., freq, time>"
    ranks_from = 2

    def __init__(self, stype=ScaleType.POWER, ref_value=1.0, amin=1e-10, top_db=80.0):
        _checks.of_type("stype", stype, ScaleType)
        self._factor = 10 if stype == ScaleType.POWER else 20
        self._reference = max(
            positive("ref_value", ref_value, (int, float)), positive("amin", amin, (int, float))
        )
        self._least, self._range = amin, positive("top_db", top_db, (int, float))

    def _array(self, values):
        made = self._factor * (numpy.log10(numpy.maximum(values, self._least)) - numpy.log10(self._reference))
        greatest = made.max(axis=tuple(range(-min(made.ndim, 3), 0)), keepdims=True)
        return numpy.maximum(made, greatest - self._range)


class DBToAmplitude(AudioOperation):
    """Amplitudes or powers of decibels."""

    def __init__(self, ref, power):
        self._reference, self._power = float32("ref", ref), float32("power", power)

    def _array(self, values):
        return self._reference * (10 ** (0.1 * values)) ** self._power


class ComputeDeltas(AudioOperation):
    """How fast each coefficient changes."""

    shape = "<..., freq, time>"
    ranks_from = 2

    def __init__(self, win_length=5, pad_mode=BorderType.EDGE):
        _checks.of_type("win_length", win_length, int)
        interval("win_length", win_length, 3, 2147483647)
        self._half = (win_length - 1) // 2
        self._mode = _checks.of_type("pad_mode", pad_mode, BorderType).value

    def _array(self, values):
        half, time = self._half, values.shape[-1]
        wide = numpy.pad(values, [(0, 0)] * (values.ndim - 1) + [(half, half)], self._mode)
        parts = (step * wide[..., half + step : half + step + time] for step in range(-half, half + 1))
        return sum(parts) / (half * (half + 1) * (2 * half + 1) / 3)


class MaskAlongAxis(AudioOperation):
    """Sets a stripe of frequencies (axis 1) or times (2) to a value."""

    shape = "<..., freq, time>"
    ranks_from = 2

    def __init__(self, mask_start, mask_width, mask_value, axis):
        for name, value in (("mask_start", mask_start), ("mask_width", mask_width)):
            _checks.of_type(name, value, int)
        _checks.of_type("mask_value", mask_value, int, float)
        _checks.of_type("axis", axis, int)
        self._start = whole_from("mask_start", mask_start, 0)
        self._width = whole_from("mask_width", mask_width, 1)
        self._value = float32("mask_value", mask_value, (int, float))
        self._axis = interval("axis", axis, 1, 2)

    def _array(self, values):
        return _masked(values, self._start, self._width, self._value, self._axis, type(self).__name__)


def _masked(values, start, width, fill, axis, name):
    length = values.shape[axis - 3]
    if start >= length:
        raise _checks.PipelineError(
            f"{name}: invalid parameter, 'mask_start' should be less than the length of the masked "
            f"dimension, but got: 'mask_start' {start} and length {length}"
        )
    if start + width > length:
        raise _checks.PipelineError(
            f"{name}: invalid parameter, the sum of 'mask_start' and 'mask_width' should be no more than the "
            f"length of the masked dimension, but got: 'mask_start' {start}, 'mask_width' {width} and length "
            f"{length}"
        )
    made = values.copy()
    numpy.moveaxis(made, axis - 3, 0)[start : start + width] = fill
    return made


def _masked_by_chance(values, most, fill, axis, name):
    length = values.shape[axis - 3]
    if most > length:
        which = "frequency" if axis == 1 else "time"
        raise _checks.PipelineError(
            f"{name}: mask_param should be less than or equal to the length of {which} dimension, but got "
            f"{most} and {length}."
        )
    width = int(_random.generator().uniform(0, most)) if most else 0
    start = int(_random.generator().uniform(0, length - width))
    return _masked(values, start, width, fill, axis, name)


class MaskAlongAxisIID(AudioOperation):
    """Sets a random stripe to a value, another one in each channel."""

    shape = "<..., freq, time>"
    ranks_from = 2

    def __init__(self, mask_param, mask_value, axis):
        _checks.of_type("mask_param", mask_param, int)
        self._most = whole_from("mask_param", mask_param, 0)
        self._value = float32("mask_value", mask_value, (int, float))
        _checks.of_type("axis", axis, int)
        self._axis = interval("axis", axis, 1, 2)

    def _array(self, values):
        return _each_masked(values, self._most, self._value, self._axis, type(self).__name__)


def _each_masked(values, most, fill, axis, name):
    flat = values.reshape(-1, *values.shape[-2:])
    made = [_masked_by_chance(each, most, fill, axis, name) for each in flat]
    return numpy.stack(made).reshape(values.shape)


class _Stripe(AudioOperation):
    shape = "<..., freq, time>"
    ranks_from = 2

    def _set(self, iid_masks, name, mask_param, mask_start, mask_value):
        self._is_iid = _checks.of_type("iid_masks", iid_masks, bool)
        _checks.of_type(name, mask_param, int)
        self._most = not_negative(name, mask_param)
        _checks.of_type("mask_start", mask_start, int)
        self._start = whole_from("mask_start", mask_start, 0)
        self._value = not_negative("mask_value", mask_value, (int, float))

    def _array(self, values):
        name = type(self).__name__
        if self._is_iid:
            return _each_masked(values, self._most, self._value, self._axis, name)
        return _masked(values, self._start, self._most, self._value, self._axis, name)


class FrequencyMasking(_Stripe):
    """Sets a stripe of frequencies to a value."""

    _axis = 1

    def __init__(self, iid_masks=False, freq_mask_param=0, mask_start=0, mask_value=0.0):
        self._set(iid_masks, "mask_param", freq_mask_param, mask_start, mask_value)


class TimeMasking(_Stripe):
    """Sets a stripe of times to a value."""

    _axis = 2

    def __init__(self, iid_masks=False, time_mask_param=0, mask_start=0, mask_value=0.0):
        self._set(iid_masks, "mask_param", time_mask_param, mask_start, mask_value)


class SlidingWindowCmn(AudioOperation):
    """Takes away the mean of the frames around each one, and with `norm_vars` divides by their spread."""

    shape = "<..., freq, time>"
    ranks_from = 2

    def __init__(self, cmn_window=600, min_cmn_window=100, center=False, norm_vars=False):
        self._window = whole_from("cmn_window", cmn_window, 0)
        self._least = whole_from("min_cmn_window", min_cmn_window, 0)
        self._is_centered = _checks.of_type("center", center, bool)
        self._norm_vars = _checks.of_type("norm_vars", norm_vars, bool)

    def _array(self, values):
        made = numpy.empty_like(values)
        frames = values.shape[-2]
        for at in range(frames):
            start, end = self._bounds(at, frames)
            window = values[..., start:end, :]
            moved = values[..., at, :] - window.mean(-2)
            if self._norm_vars:
                moved = moved / window.std(-2) if end - start > 1 else numpy.zeros_like(moved)
            made[..., at, :] = moved
        return made

    def _bounds(self, at, frames):
        if self._is_centered:
            start, end = at - self._window // 2, at - self._window // 2 + self._window
        else:
            start, end = at - self._window, at + 1
        if start < 0:
            start, end = 0, end - start
        if not self._is_centered:
            end = max(end if end <= at else max(at + 1, self._least), 1)
        if end > frames:
            start, end = max(start - (end - frames), 0), frames
        return start, end
