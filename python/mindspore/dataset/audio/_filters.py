"""Filters with feedback, most of them of two poles."""

# ruff: noqa: N803 - Q is MindSpore's name

import math

from mindspore._lazy import numpy
from mindspore.dataset import _checks
from mindspore.dataset.audio._base import AudioOperation, float32, quality, sample_rate


def filtered(values, b, a, clamp):
    """What the difference equation of `b` and `a` makes of `values` along the last axis."""
    b, a = (numpy.asarray(each, numpy.float64) / a[0] for each in (b, a))
    time = values.shape[-1]
    driven = b[0] * values
    for lag in range(1, min(len(b), time)):
        driven[..., lag:] += b[lag] * values[..., :-lag]
    by_time = numpy.moveaxis(driven, -1, 0).copy()
    for at in range(time):
        for lag in range(1, min(len(a), at + 1)):
            by_time[at] -= a[lag] * by_time[at - lag]
    made = numpy.moveaxis(by_time, 0, -1)
    return made.clip(-1, 1) if clamp else made


class _Filter(AudioOperation):
    """A filter keeps the dtype, and takes floats alone."""

    kinds = ("f", "[float, double]")

    def _made(self, values):
        return self._array(values.astype(numpy.float64)).astype(values.dtype)


def _coefficients(name, values):
    _checks.of_type(name, values, list, tuple)
    for at, value in enumerate(values):
        float32(f"{name}[{at}]", value)
    return list(values)


class LFilter(_Filter):
    """A filter by its difference equation."""

    def __init__(self, a_coeffs, b_coeffs, clamp=True):
        self._a, self._b = _coefficients("a_coeffs", a_coeffs), _coefficients("b_coeffs", b_coeffs)
        if len(a_coeffs) != len(b_coeffs):
            raise ValueError("The size of a_coeffs should be the same as that of b_coeffs.")
        self._clamp = _checks.of_type("clamp", clamp, bool)

    def _array(self, values):
        return filtered(values, self._b, self._a, self._clamp)


class Filtfilt(LFilter):
    """The filter forth and back, which shifts no phase."""

    def _array(self, values):
        forth = filtered(values, self._b, self._a, clamp=False)
        return filtered(forth[..., ::-1], self._b, self._a, self._clamp)[..., ::-1]


class Biquad(_Filter):
    """A filter of two poles by its coefficients."""

    def __init__(self, b0, b1, b2, a0, a1, a2):
        given = {"b0": b0, "b1": b1, "b2": b2, "a0": a0, "a1": a1, "a2": a2}
        for name, value in given.items():
            float32(name, value)
            if name == "a0" and value == 0:
                raise ValueError(
                    "Input a0 is not within the required interval of [-16777216, 0) and (0, 16777216]."
                )
        self._b, self._a = (b0, b1, b2), (a0, a1, a2)

    def _array(self, values):
        return filtered(values, self._b, self._a, clamp=True)


class _Designed(Biquad):
    """A filter of two poles by what it shall do: `_design(cos, alpha)` gives b and a."""

    def _set(self, rate, frequency, q, name="central_freq", gain=None):
        sample_rate(rate)
        if gain is not None:
            float32("gain", gain)
        float32(name, frequency)
        quality(q)
        angle = 2 * math.pi * frequency / rate
        self._b, self._a = self._design(math.cos(angle), math.sin(angle) / 2 / q)


class AllpassBiquad(_Designed):
    """Turns phases and keeps amplitudes."""

    def __init__(self, sample_rate, central_freq, Q=0.707):
        self._set(sample_rate, central_freq, Q)

    def _design(self, cos, alpha):
        a = (1 + alpha, -2 * cos, 1 - alpha)
        return a[::-1], a


class BandrejectBiquad(_Designed):
    """Takes a band away."""

    def __init__(self, sample_rate, central_freq, Q=0.707):
        self._set(sample_rate, central_freq, Q)

    def _design(self, cos, alpha):
        return (1, -2 * cos, 1), (1 + alpha, -2 * cos, 1 - alpha)


class BandpassBiquad(_Designed):
    """Keeps a band."""

    def __init__(self, sample_rate, central_freq, Q=0.707, const_skirt_gain=False):
        self._q = Q if const_skirt_gain else 1
        self._set(sample_rate, central_freq, Q)
        _checks.of_type("const_skirt_gain", const_skirt_gain, bool)

    def _design(self, cos, alpha):
        return (alpha * self._q, 0, -alpha * self._q), (1 + alpha, -2 * cos, 1 - alpha)


class HighpassBiquad(_Designed):
    """Keeps what is higher."""

    def __init__(self, sample_rate, cutoff_freq, Q=0.707):
        self._set(sample_rate, cutoff_freq, Q, "cutoff_freq")

    def _design(self, cos, alpha):
        return ((1 + cos) / 2, -1 - cos, (1 + cos) / 2), (1 + alpha, -2 * cos, 1 - alpha)


class LowpassBiquad(_Designed):
    """Keeps what is lower."""

    def __init__(self, sample_rate, cutoff_freq, Q=0.707):
        self._set(sample_rate, cutoff_freq, Q, "cutoff_freq")

    def _design(self, cos, alpha):
        return ((1 - cos) / 2, 1 - cos, (1 - cos) / 2), (1 + alpha, -2 * cos, 1 - alpha)


class BandBiquad(_Filter):
    """Keeps a band, with skirts of SoX's `band`."""

    def __init__(self, sample_rate, central_freq, Q=0.707, noise=False):
        rate = _rate(sample_rate)
        float32("central_freq", central_freq)
        quality(Q)
        _checks.of_type("noise", noise, bool)
        a2 = math.exp(-2 * math.pi * central_freq / Q / rate)
        a1 = -4 * a2 / (1 + a2) * math.cos(2 * math.pi * central_freq / rate)
        b0 = math.sqrt(1 - a1 * a1 / (4 * a2)) * (1 - a2)
        if noise:
            b0 = math.sqrt(((1 + a2) ** 2 - a1 * a1) * (1 - a2) / (1 + a2))
        self._b, self._a = (b0, 0, 0), (1, a1, a2)

    def _array(self, values):
        return filtered(values, self._b, self._a, clamp=True)


_rate = sample_rate  # the name is an argument of the operations, too


def _shelf(gain, cos, alpha, sign):
    """b and a that raise what is lower (sign 1) or higher (-1)."""
    root = math.exp(gain / 40 * math.log(10))
    slope = 2 * math.sqrt(root) * alpha
    less, more = (root - 1) * cos * sign, (root + 1) * cos * sign
    b = (
        root * (root + 1 - less + slope),
        2 * root * (root - 1 - more) * sign,
        root * (root + 1 - less - slope),
    )
    a = (root + 1 + less + slope, -2 * (root - 1 + more) * sign, root + 1 + less - slope)
    return b, a


class BassBiquad(_Designed):
    """Raises what is low by `gain` dB."""

    _sign = 1

    def __init__(self, sample_rate, gain, central_freq=100.0, Q=0.707):
        self._gain = gain
        self._set(sample_rate, central_freq, Q, gain=gain)

    def _design(self, cos, alpha):
        return _shelf(self._gain, cos, alpha, self._sign)


class TrebleBiquad(BassBiquad):
    """Raises what is high by `gain` dB."""

    _sign = -1

    def __init__(self, sample_rate, gain, central_freq=3000, Q=0.707):
        super().__init__(sample_rate, gain, central_freq, Q)


class EqualizerBiquad(_Designed):
    """Raises a band by `gain` dB."""

    def __init__(self, sample_rate, center_freq, gain, Q=0.707):
        self._gain = gain
        sample_rate_of = _rate(sample_rate)
        float32("central_freq", center_freq)
        self._set(sample_rate_of, center_freq, Q, gain=gain)

    def _design(self, cos, alpha):
        root = math.exp(self._gain / 40 * math.log(10))
        up, down = alpha * root, alpha / root
        return (1 + up, -2 * cos, 1 - up), (1 + down, -2 * cos, 1 - down)


class DeemphBiquad(Biquad):
    """Undoes the emphasis of compact discs (ISO 908)."""

    def __init__(self, sample_rate):
        _checks.of_type("sample_rate", sample_rate, int)
        if sample_rate not in (44100, 48000):
            raise ValueError(f"Argument sample_rate should be 44100 or 48000, but got {sample_rate}.")
        frequency, slope, gain = (5283, 0.4845, -9.477) if sample_rate == 44100 else (5356, 0.479, -9.62)
        root = math.exp(gain / 40 * math.log(10))
        angle = 2 * math.pi * frequency / sample_rate
        alpha = math.sin(angle) / 2 * math.sqrt((root + 1 / root) * (1 / slope - 1) + 2)
        self._b, self._a = _shelf(gain, math.cos(angle), alpha, -1)


# Zeros and poles of the playback curve of records, by sampling rate.
_RIAA = {
    44100: ((-0.2014898, 0.9233820), (0.7083149, 0.9924091)),
    48000: ((-0.1766069, 0.9321590), (0.7396325, 0.9931330)),
    88200: ((-0.1168735, 0.9648312), (0.8590646, 0.9964002)),
    96000: ((-0.1141486, 0.9676817), (0.8699137, 0.9966946)),
}


class RiaaBiquad(Biquad):
    """The playback curve of records."""

    def __init__(self, sample_rate):
        _checks.of_type("sample_rate", sample_rate, int)
        if sample_rate not in _RIAA:
            raise ValueError(f"sample_rate should be one of {list(_RIAA)}, but got {sample_rate}.")
        b, a = (numpy.poly(roots) for roots in _RIAA[sample_rate])
        # 0 dB at 1 kHz.
        turn = numpy.exp(-2j * math.pi * 1000 / sample_rate * numpy.arange(3))
        self._b, self._a = b * abs(a @ turn) / abs(b @ turn), a
