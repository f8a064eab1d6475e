"""Effects on waveforms."""

import math

from mindspore._lazy import numpy
from mindspore.dataset import _checks, _random
from mindspore.dataset.audio._base import AudioOperation, between, float32, interval, sample_rate, whole_from
from mindspore.dataset.audio._enums import (
    DensityFunction,
    FadeShape,
    GainType,
    Interpolation,
    Modulation,
)

_rate = sample_rate  # the name is an argument of the operations, too


class Contrast(AudioOperation):
    """Makes a sound louder without changing its peaks."""

    def __init__(self, enhancement_amount=75.0):
        self._amount = between("enhancement_amount", enhancement_amount, 0, 100) / 750

    def _array(self, values):
        turned = values * (math.pi / 2)
        return numpy.sin(turned + self._amount * numpy.sin(turned * 4))


class DCShift(AudioOperation):
    """Moves a waveform, with a limit for its peaks."""

    def __init__(self, shift, limiter_gain=None):
        self._shift = between("shift", shift, -2.0, 2.0)
        if limiter_gain is not None:
            _checks.of_type("limiter_gain", limiter_gain, float, int)
        self._limiter_gain = limiter_gain

    def _array(self, values):
        moved = (values + self._shift).clip(-1, 1)
        if self._limiter_gain is None or self._shift == 0:
            return moved
        threshold = 1 - (abs(self._shift) - self._limiter_gain)
        side = math.copysign(1, self._shift)
        beyond = values * side - threshold
        limited = beyond * self._limiter_gain / (1 - threshold) + threshold + abs(self._shift)
        return numpy.where(beyond > 0, side * limited.clip(max=threshold), moved)


class Dither(AudioOperation):
    """Rounds to 16 bits after noise was added."""

    def __init__(self, density_function=DensityFunction.TPDF, noise_shaping=False):
        self._density = _checks.of_type("density_function", density_function, DensityFunction)
        self._is_shaped = _checks.of_type("noise_shaping", noise_shaping, bool)

    def _array(self, values):
        scale = 2.0**15 - 1
        rounded = numpy.rint((values * (2.0**15) + self._noise(values)).clip(-(2.0**15), scale)) / (2.0**15)
        if self._is_shaped:
            error = rounded - values
            rounded[..., 1:] += error[..., :-1]
        return rounded

    def _noise(self, values):
        random = _random.generator()
        if self._density == DensityFunction.RPDF:
            return random.uniform(-0.5, 0.5)
        if self._density == DensityFunction.GPDF:
            return random.normal(0, 1 / math.sqrt(2), values.shape)
        return random.triangular(-1, 0, 1, values.shape[-1])


_RISING = {
    FadeShape.LINEAR: lambda at: at,
    FadeShape.EXPONENTIAL: lambda at: 2 ** (at - 1) * at,
    FadeShape.LOGARITHMIC: lambda at: numpy.log10(0.1 + at) + 1,
    FadeShape.QUARTER_SINE: lambda at: numpy.sin(at * math.pi / 2),
    FadeShape.HALF_SINE: lambda at: numpy.sin(at * math.pi - math.pi / 2) / 2 + 0.5,
}


class Fade(AudioOperation):
    """Raises the beginning of a sound and lowers its end."""

    def __init__(self, fade_in_len=0, fade_out_len=0, fade_shape=FadeShape.LINEAR):
        self._in = whole_from("fade_in_len", fade_in_len, 0)
        self._out = whole_from("fade_out_len", fade_out_len, 0)
        self._curve = _RISING[_checks.of_type("fade_shape", fade_shape, FadeShape)]

    def _array(self, values):
        time = values.shape[-1]
        for name, length in (("fade_in_len", self._in), ("fade_out_len", self._out)):
            if length > time:
                raise _checks.PipelineError(
                    f"Fade: invalid parameter, '{name}' should be no greater than 'length of waveform', but "
                    f"got: {name} {length} while length of waveform {time}."
                )
        factor = numpy.ones(time)
        factor[: self._in] *= self._curve(_steps(self._in))
        factor[time - self._out :] *= self._curve(_steps(self._out))[::-1]
        return values * factor


def _steps(count):
    return numpy.linspace(0, 1, count)


class Gain(AudioOperation):
    """Multiplies by what `gain_db` dB are."""

    def __init__(self, gain_db=1.0):
        self._factor = 10 ** (float32("gain_db", gain_db) / 20)

    def _array(self, values):
        return values * self._factor


class Vol(AudioOperation):
    """Sets the volume, by a factor, dB or power."""

    def __init__(self, gain, gain_type=GainType.AMPLITUDE):
        _checks.of_type("gain", gain, int, float)
        _checks.of_type("gain_type", gain_type, GainType)
        if gain_type == GainType.POWER:
            if not 0 < gain <= 16777216:
                raise ValueError("Input gain is not within the required interval of (0, 16777216].")
            self._factor = math.sqrt(gain)
        elif gain_type == GainType.AMPLITUDE:
            self._factor = interval("gain", gain, 0, 16777216)
        else:
            self._factor = 10 ** (float32("gain", gain) / 20)

    def _array(self, values):
        return (values * self._factor).clip(-1, 1)


class MuLawEncoding(AudioOperation):
    """Numbers of the mu-law for a waveform of -1 to 1."""

    def __init__(self, quantization_channels=256):
        self._mu = whole_from("quantization_channels", quantization_channels, 1) - 1

    def _made(self, values):
        values = values.astype(numpy.float64)
        squeezed = numpy.sign(values) * numpy.log1p(self._mu * abs(values)) / numpy.log1p(self._mu)
        return ((squeezed + 1) / 2 * self._mu + 0.5).astype(numpy.int32)


class MuLawDecoding(AudioOperation):
    """The waveform of numbers of the mu-law."""

    def __init__(self, quantization_channels=256):
        self._mu = whole_from("quantization_channels", quantization_channels, 1) - 1

    def _array(self, values):
        values = values / self._mu * 2 - 1
        return numpy.sign(values) * numpy.expm1(abs(values) * math.log1p(self._mu)) / self._mu


class Overdrive(AudioOperation):
    """Distorts as an amplifier does that is driven too far."""

    def __init__(self, gain=20.0, color=20.0):
        self._factor = 10 ** (between("gain", gain, 0, 100) / 20)
        self._offset = between("color", color, 0, 100) / 200

    def _array(self, values):
        driven = values * self._factor + self._offset
        bent = numpy.where(abs(driven) > 1, numpy.sign(driven) * 2 / 3, driven - driven**3 / 3)
        made = numpy.empty_like(values)
        before, kept = 0.0, numpy.zeros(values.shape[:-1])
        for at in range(values.shape[-1]):
            kept = bent[..., at] - before + 0.995 * kept
            before = bent[..., at]
            made[..., at] = values[..., at] * 0.5 + kept * 0.75
        return made.clip(-1, 1)


def _wave(is_sine, size, low, high, phase, whole=False):
    """One period of a wave of `size` samples."""
    point = (numpy.arange(size) + int(phase / math.pi / 2 * size + 0.5)) % size
    if is_sine:
        wave = (numpy.sin(point / size * 2 * math.pi) + 1) / 2
    else:
        wave, quarter = point * 2 / size, 4 * point // size
        wave = numpy.select([quarter == 0, quarter == 3], [wave + 0.5, wave - 1.5], 1.5 - wave)
    wave = wave * (high - low) + low
    return numpy.trunc(wave + numpy.where(wave < 0, -0.5, 0.5)).astype(int) if whole else wave


class Phaser(AudioOperation):
    """Adds the sound to itself, with a delay that moves."""

    def __init__(
        self,
        sample_rate,
        gain_in=0.4,
        gain_out=0.74,
        delay_ms=3.0,
        decay=0.4,
        mod_speed=0.5,
        sinusoidal=True,
    ):
        _checks.of_type("sample_rate", sample_rate, int)
        interval("sample_rate", sample_rate, -2147483648, 2147483647)
        self._rate = sample_rate
        self._gain_in = between("gain_in", gain_in, 0, 1)
        self._gain_out = between("gain_out", gain_out, 0, 1e9)
        self._delay = between("delay_ms", delay_ms, 0, 5.0)
        self._decay = between("decay", decay, 0, 0.99)
        self._speed = between("mod_speed", mod_speed, 0.1, 2)
        self._is_sine = _checks.of_type("sinusoidal", sinusoidal, bool)

    def _array(self, values):
        length = int(self._delay * 0.001 * self._rate + 0.5)
        size = int(self._rate / self._speed + 0.5)
        moves = _wave(self._is_sine, size, 1.0, length, math.pi / 2, whole=True)
        kept = numpy.zeros((*values.shape[:-1], length))
        made = numpy.empty_like(values)
        for at in range(values.shape[-1]):
            heard = (at + moves[at % size]) % length
            mixed = values[..., at] * self._gain_in + kept[..., heard]
            kept[..., (at + 1) % length] = mixed * self._decay
            made[..., at] = mixed * self._gain_out
        return made.clip(-1, 1)


class Flanger(AudioOperation):
    """Adds the sound to itself, with a short delay that moves; each channel at another phase."""

    shape = "<..., channel, time>"
    ranks_from = 2

    def __init__(
        self,
        sample_rate,
        delay=0.0,
        depth=2.0,
        regen=0.0,
        width=71.0,
        speed=0.5,
        phase=25.0,
        modulation=Modulation.SINUSOIDAL,
        interpolation=Interpolation.LINEAR,
    ):
        self._rate = _rate(sample_rate)
        self._delay = between("delay", delay, 0, 30) / 1000
        self._depth = between("depth", depth, 0, 10) / 1000
        self._regen = between("regen", regen, -95, 95) / 100
        self._width = between("width", width, 0, 100) / 100
        self._speed = between("speed", speed, 0.1, 10)
        self._phase = between("phase", phase, 0, 100) / 100
        self._is_sine = _checks.of_type("modulation", modulation, Modulation) == Modulation.SINUSOIDAL
        _checks.of_type("interpolation", interpolation, Interpolation)
        self._is_linear = interpolation == Interpolation.LINEAR

    def _array(self, values):
        given, values = values.shape, values.reshape(-1, *values.shape[-2:])
        batch, channels, time = values.shape
        gain_in, wet = 1 / (1 + self._width), self._width / (1 + self._width)
        gain_in, wet = gain_in, wet * (1 - abs(self._regen))
        longest = int((self._delay + self._depth) * self._rate + 0.5) + 2
        size = int(self._rate / self._speed)
        low, high = math.floor(self._delay * self._rate + 0.5), longest - 2.0
        wave = _wave(self._is_sine, size, low, high, 3 * math.pi / 2)
        kept = numpy.zeros((batch, channels, longest))
        last, made = numpy.zeros((batch, channels)), numpy.empty_like(values)
        each, position = numpy.arange(channels), 0
        shifts = (each * size * self._phase + 0.5).astype(int)
        for at in range(time):
            position = (position + longest - 1) % longest
            delay = wave[(at + shifts) % size]
            whole, part = delay.astype(int), delay - delay.astype(int)
            kept[:, :, position] = values[:, :, at] + last * self._regen
            first, second, third = (kept[:, each, (position + whole + n) % longest] for n in range(3))
            if self._is_linear:
                heard = first + (second - first) * part
            else:
                third, second = third - first, second - first
                curve = third * 0.5 - second
                heard = first + (curve * part + second * 2 - third * 0.5) * part
            last = heard
            made[:, :, at] = values[:, :, at] * gain_in + heard * wet
        return made.clip(-1, 1).reshape(given)
