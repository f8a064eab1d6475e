"""Fourier transforms of sounds, mel scales, and what is made of them."""

import math

from mindspore._lazy import numpy
from mindspore.dataset import _checks, _random
from mindspore.dataset.audio._base import (
    AudioOperation,
    ComplexOperation,
    float32,
    not_negative,
    positive,
    whole_from,
)
from mindspore.dataset.audio._enums import BorderType, MelType, NormMode, NormType, WindowType
from mindspore.dataset.audio._spectra import AmplitudeToDB

_WINDOWS = {
    WindowType.BARTLETT: numpy.bartlett,
    WindowType.BLACKMAN: numpy.blackman,
    WindowType.HAMMING: numpy.hamming,
    WindowType.HANN: numpy.hanning,
    WindowType.KAISER: lambda size: numpy.kaiser(size, 12.0),
}


def _window(kind, length, n_fft):
    """A periodic window, filled up to `n_fft` with zeros on both sides."""
    window = _WINDOWS[kind](length + 1)[:-1] if length > 1 else numpy.ones(length)
    left = (n_fft - length) // 2
    return numpy.pad(window, (left, n_fft - length - left))


def _frames_of(values, n_fft, hop):
    at = numpy.arange(n_fft) + hop * numpy.arange(1 + (values.shape[-1] - n_fft) // hop)[:, None]
    return values[..., at]


class _Transform:
    """A short-time Fourier transform and its inverse."""

    def __init__(
        self, n_fft, win_length, hop_length, window, is_centered=True, border="reflect", one_sided=True
    ):
        self.n_fft = n_fft
        self.hop = hop_length
        self.window = _window(window, win_length, n_fft)
        self.is_centered, self.border, self.is_one_sided = is_centered, border, one_sided

    def forth(self, values):
        """(..., time) to (..., freq, frame), complex."""
        if self.is_centered:
            edge = [(0, 0)] * (values.ndim - 1) + [(self.n_fft // 2,) * 2]
            values = numpy.pad(values, edge, self.border)
        if values.shape[-1] < self.n_fft:
            raise _checks.PipelineError(
                f"Spectrogram: n_fft should be more than 0 and less than {values.shape[-1]}, but got n_fft: "
                f"{self.n_fft}."
            )
        frames = _frames_of(values, self.n_fft, self.hop) * self.window
        transform = numpy.fft.rfft if self.is_one_sided else numpy.fft.fft
        return transform(frames, axis=-1).swapaxes(-1, -2)

    def back(self, spectrum, length=None):
        """(..., freq, frame) to (..., time)."""
        spectrum = spectrum.swapaxes(-1, -2)
        if self.is_one_sided:
            frames = numpy.fft.irfft(spectrum, self.n_fft, axis=-1)
        else:
            frames = numpy.fft.ifft(spectrum, axis=-1).real
        count = frames.shape[-2]
        made = numpy.zeros((*frames.shape[:-2], self.n_fft + self.hop * (count - 1)))
        weight = numpy.zeros(made.shape[-1])
        for at in range(count):
            part = slice(at * self.hop, at * self.hop + self.n_fft)
            made[..., part] += frames[..., at, :] * self.window
            weight[part] += self.window**2
        start = self.n_fft // 2 if self.is_centered else 0
        end = made.shape[-1] - start if length is None else start + length
        made, weight = made[..., start:end], weight[start:end]
        made = made / numpy.where(weight > 1e-11, weight, 1)
        missing = 0 if length is None else length - made.shape[-1]
        return numpy.pad(made, [(0, 0)] * (made.ndim - 1) + [(0, max(missing, 0))])


def _complex(values):
    return values[..., 0] + 1j * values[..., 1]


def _parts(values):
    return numpy.stack([values.real, values.imag], -1)


def _lengths(n_fft, win_length, hop_length):
    """win_length and hop_length, checked, and what they are where None was given."""
    whole_from("n_fft", n_fft, 1)
    whole_from("win_length", win_length, 1, optional=True)
    if win_length is not None and win_length > n_fft:
        raise ValueError(
            "Input win_length should be no more than n_fft, but got "
            f"win_length: {win_length} and n_fft: {n_fft}."
        )
    whole_from("hop_length", hop_length, 1, optional=True)
    win_length = n_fft if win_length is None else win_length
    return win_length, max(win_length // 2, 1) if hop_length is None else hop_length


class Spectrogram(AudioOperation):
    """The spectrum of each time to a power; power 0 gives complex numbers."""

    def __init__(
        self,
        n_fft=400,
        win_length=None,
        hop_length=None,
        pad=0,
        window=WindowType.HANN,
        power=2.0,
        normalized=False,
        center=True,
        pad_mode=BorderType.REFLECT,
        onesided=True,
    ):
        win_length, hop_length = _lengths(n_fft, win_length, hop_length)
        self._pad = whole_from("pad", pad, 0)
        _checks.of_type("window", window, WindowType)
        self._power = not_negative("power", power, (int, float))
        self._is_normalized = _checks.of_type("normalized", normalized, bool)
        _checks.of_type("center", center, bool)
        _checks.of_type("onesided", onesided, bool)
        _checks.of_type("pad_mode", pad_mode, BorderType)
        self._transform = _Transform(n_fft, win_length, hop_length, window, center, pad_mode.value, onesided)

    def _array(self, values):
        if self._pad:
            values = numpy.pad(values, [(0, 0)] * (values.ndim - 1) + [(self._pad,) * 2])
        made = self._transform.forth(values)
        if self._is_normalized:
            made = made / math.sqrt((self._transform.window**2).sum())
        return _parts(made) if self._power == 0 else abs(made) ** self._power


class InverseSpectrogram(ComplexOperation):
    """The waveform of a complex spectrogram."""

    shape = "<..., freq, time, complex=2>"
    ranks_from = 3

    def __init__(
        self,
        length=None,
        n_fft=400,
        win_length=None,
        hop_length=None,
        pad=0,
        window=WindowType.HANN,
        normalized=False,
        center=True,
        pad_mode=BorderType.REFLECT,
        onesided=True,
    ):
        self._length = whole_from("length", length, 0, optional=True)
        whole_from("n_fft", n_fft, 1)
        _checks.of_type("window", window, WindowType)
        self._is_normalized = _checks.of_type("normalized", normalized, bool)
        _checks.of_type("center", center, bool)
        _checks.of_type("pad_mode", pad_mode, BorderType)
        _checks.of_type("onesided", onesided, bool)
        self._pad = whole_from("pad", pad, 0)
        win_length, hop_length = _lengths(n_fft, win_length, hop_length)
        self._transform = _Transform(n_fft, win_length, hop_length, window, center, pad_mode.value, onesided)

    def _array(self, values):
        spectrum = _complex(values)
        if self._is_normalized:
            spectrum = spectrum * math.sqrt((self._transform.window**2).sum())
        length = self._length or None
        made = self._transform.back(spectrum, length if length is None else length + 2 * self._pad)
        return made[..., self._pad : made.shape[-1] - self._pad] if self._pad else made


def _mel(frequency, kind):
    if kind == MelType.HTK:
        return 2595 * numpy.log10(1 + numpy.asarray(frequency) / 700)
    step = math.log(6.4) / 27
    linear = numpy.asarray(frequency, float) * 3 / 200
    return numpy.where(linear < 15, linear, 15 + numpy.log(numpy.maximum(linear, 1e-9) / 15) / step)


def _hertz(mel, kind):
    if kind == MelType.HTK:
        return 700 * (10 ** (mel / 2595) - 1)
    return numpy.where(mel < 15, mel * 200 / 3, 1000 * numpy.exp(math.log(6.4) / 27 * (mel - 15)))


def _triangles(n_freqs, rate, points):
    """Triangular bands (freq, band) between every three of the points."""
    slopes = points - numpy.linspace(0, rate // 2, n_freqs)[:, None]
    steps = numpy.diff(points)
    return numpy.minimum(-slopes[:, :-2] / steps[:-1], slopes[:, 2:] / steps[1:]).clip(min=0)


def _mel_bands(n_freqs, f_min, f_max, n_mels, rate, norm, kind):
    points = _hertz(numpy.linspace(_mel(f_min, kind), _mel(f_max, kind), n_mels + 2), kind)
    bands = _triangles(n_freqs, rate, points)
    return bands * (2 / (points[2:] - points[:-2])) if norm == NormType.SLANEY else bands


def _check_bands(n_freqs, f_min, f_max, name, count, rate):
    whole_from("n_freqs", n_freqs, 0)
    not_negative("f_min", f_min, (int, float))
    positive("f_max", f_max, (int, float))
    if f_min > f_max:
        raise ValueError(
            f"Input f_min should be no more than f_max, but got f_min: {f_min} and f_max: {f_max}."
        )
    whole_from(name, count, 1)
    whole_from("sample_rate", rate, 1)


def melscale_fbanks(n_freqs, f_min, f_max, n_mels, sample_rate, norm=NormType.NONE, mel_type=MelType.HTK):
    """Weights (n_freqs, n_mels) of mel bands."""
    _check_bands(n_freqs, f_min, f_max, "n_mels", n_mels, sample_rate)
    _checks.of_type("norm", norm, NormType)
    _checks.of_type("mel_type", mel_type, MelType)
    return _mel_bands(n_freqs, f_min, f_max, n_mels, sample_rate, norm, mel_type).astype(numpy.float32)


def linear_fbanks(n_freqs, f_min, f_max, n_filter, sample_rate):
    """Weights (n_freqs, n_filter) of bands of one width."""
    _check_bands(n_freqs, f_min, f_max, "n_filter", n_filter, sample_rate)
    return _linear_bands(n_freqs, f_min, f_max, n_filter, sample_rate).astype(numpy.float32)


def _linear_bands(n_freqs, f_min, f_max, n_filter, rate):
    return _triangles(n_freqs, rate, numpy.linspace(f_min, f_max, n_filter + 2))


def create_dct(n_mfcc, n_mels, norm=NormMode.NONE):
    """The matrix (n_mels, n_mfcc) of a cosine transform."""
    for name, value, kind in (("n_mfcc", n_mfcc, int), ("n_mels", n_mels, int), ("norm", norm, NormMode)):
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TypeError(f"{name} with value {value} is not of type {kind}, but got {type(value)}.")
    for name, value in (("n_mfcc", n_mfcc), ("n_mels", n_mels)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than 0, but got {value}.")
    return _cosines(n_mfcc, n_mels, norm).astype(numpy.float32)


def _cosines(n_mfcc, n_mels, norm):
    matrix = numpy.cos(math.pi / n_mels * (numpy.arange(n_mels)[:, None] + 0.5) * numpy.arange(n_mfcc))
    if norm == NormMode.NONE:
        return matrix * 2
    matrix[:, 0] *= 1 / math.sqrt(2)
    return matrix * math.sqrt(2 / n_mels)


class MelScale(AudioOperation):
    """A spectrogram in mel bands."""

    shape = "<..., freq, time>"
    ranks_from = 2

    def __init__(
        self,
        n_mels=128,
        sample_rate=16000,
        f_min=0.0,
        f_max=None,
        n_stft=201,
        norm=NormType.NONE,
        mel_type=MelType.HTK,
    ):
        whole_from("n_mels", n_mels, 1)
        whole_from("sample_rate", sample_rate, 1)
        self._check_range(f_min, f_max, sample_rate)
        whole_from("n_stft", n_stft, 1)
        _checks.of_type("norm", norm, NormType)
        _checks.of_type("mel_type", mel_type, MelType)
        f_max = sample_rate // 2 if f_max is None else f_max
        self._bands = _mel_bands(n_stft, f_min, f_max, n_mels, sample_rate, norm, mel_type)

    @staticmethod
    def _check_range(f_min, f_max, sample_rate):
        float32("f_min", f_min, (int, float))
        if f_max is None:
            if f_min >= sample_rate // 2:
                raise ValueError(
                    "MelScale: sample_rate // 2 should be greater than f_min when f_max is set to None."
                )
        elif f_min >= positive("f_max", f_max, (int, float)):
            raise ValueError("MelScale: f_max should be greater than f_min.")

    def _array(self, values):
        if values.shape[-2] != len(self._bands):
            raise _checks.PipelineError(
                f"MelScale: invalid parameter, 'n_stft' should be equal to 'freq', but got: n_stft "
                f"{len(self._bands)} while freq {values.shape[-2]}."
            )
        return (values.swapaxes(-1, -2) @ self._bands).swapaxes(-1, -2)


class MelSpectrogram(AudioOperation):
    """The spectrogram of a sound in mel bands."""

    def __init__(
        self,
        sample_rate=16000,
        n_fft=400,
        win_length=None,
        hop_length=None,
        f_min=0.0,
        f_max=None,
        pad=0,
        n_mels=128,
        window=WindowType.HANN,
        power=2.0,
        normalized=False,
        center=True,
        pad_mode=BorderType.REFLECT,
        onesided=True,
        norm=NormType.NONE,
        mel_scale=MelType.HTK,
    ):
        whole_from("n_mels", n_mels, 1)
        whole_from("sample_rate", sample_rate, 1)
        MelScale._check_range(f_min, f_max, sample_rate)
        positive("power", power, (int, float))
        self._spectrogram = Spectrogram(
            n_fft, win_length, hop_length, pad, window, power, normalized, center, pad_mode, onesided
        )
        _checks.of_type("mel_scale", mel_scale, MelType)
        count = n_fft // 2 + 1 if onesided else n_fft
        self._scale = MelScale(n_mels, sample_rate, f_min, f_max, count, norm, mel_scale)

    def _array(self, values):
        return self._scale._array(self._spectrogram._array(values))


class MFCC(AudioOperation):
    """Mel-frequency cepstrum coefficients."""

    def __init__(
        self, sample_rate=16000, n_mfcc=40, dct_type=2, norm=NormMode.ORTHO, log_mels=False, melkwargs=None
    ):
        whole_from("sample_rate", sample_rate, 0)
        whole_from("n_mfcc", n_mfcc, 0)
        _checks.of_type("norm", norm, NormMode)
        self._is_log = _checks.of_type("log_mels", log_mels, bool)
        _only_second(dct_type)
        given = melkwargs or {}
        n_mels = given.get("n_mels", 128)
        _no_more_than("n_mfcc", n_mfcc, "n_mels", n_mels)
        self._spectrogram = MelSpectrogram(sample_rate, **given)
        self._cosines = _cosines(n_mfcc, n_mels, norm)

    def _array(self, values):
        return _cepstrum(self._spectrogram._array(values), self._is_log, self._cosines)


def _only_second(dct_type):
    _checks.of_type("dct_type", dct_type, int)
    if dct_type != 2:
        raise ValueError(f"Input dct_type must be 2, but got : {dct_type}.")


def _no_more_than(name, value, other, bound):
    if value > bound:
        raise ValueError(
            f"{name} should be less than or equal to {other}, but got {name}: {value} and {other}: {bound}."
        )


def _cepstrum(spectrum, is_log, cosines):
    spectrum = numpy.log(spectrum + 1e-6) if is_log else AmplitudeToDB()._array(spectrum)
    return (spectrum.swapaxes(-1, -2) @ cosines).swapaxes(-1, -2)


class LFCC(AudioOperation):
    """Cepstrum coefficients of bands of one width."""

    def __init__(
        self,
        sample_rate=16000,
        n_filter=128,
        n_lfcc=40,
        f_min=0.0,
        f_max=None,
        dct_type=2,
        norm=NormMode.ORTHO,
        log_lf=False,
        speckwargs=None,
    ):
        whole_from("sample_rate", sample_rate, 0)
        whole_from("n_filter", n_filter, 1)
        whole_from("n_lfcc", n_lfcc, 1)
        _checks.of_type("norm", norm, NormMode)
        self._is_log = _checks.of_type("log_lf", log_lf, bool)
        not_negative("f_min", f_min, (int, float))
        f_max = sample_rate // 2 if f_max is None else not_negative("f_max", f_max, (int, float))
        if f_min > f_max:
            raise ValueError(
                f"f_max should be greater than or equal to f_min, but got f_min: {f_min} and f_max: {f_max}."
            )
        _only_second(dct_type)
        given = speckwargs or {}
        n_fft = given.get("n_fft", 400)
        _no_more_than("n_lfcc", n_lfcc, "n_fft", n_fft)
        self._spectrogram = Spectrogram(**given)
        self._bands = _linear_bands(n_fft // 2 + 1, f_min, f_max, n_filter, sample_rate)
        self._cosines = _cosines(n_lfcc, n_filter, norm)

    def _array(self, values):
        spectrum = (self._spectrogram._array(values).swapaxes(-1, -2) @ self._bands).swapaxes(-1, -2)
        return _cepstrum(spectrum, self._is_log, self._cosines)


class SpectralCentroid(AudioOperation):
    """The mean frequency of each time."""

    def __init__(
        self, sample_rate, n_fft=400, win_length=None, hop_length=None, pad=0, window=WindowType.HANN
    ):
        self._rate = whole_from("sample_rate", sample_rate, 0)
        self._spectrogram = Spectrogram(n_fft, win_length, hop_length, pad, window, 1.0)

    def _array(self, values):
        spectrum = self._spectrogram._array(values)
        frequencies = numpy.linspace(0, self._rate // 2, spectrum.shape[-2])[:, None]
        return (frequencies * spectrum).sum(-2, keepdims=True) / spectrum.sum(-2, keepdims=True)


def _stretched(spectrum, rate, advance):
    """The spectrum `rate` times as fast, its phases carried on."""
    at = numpy.arange(0, spectrum.shape[-1], rate)
    part, index = at % 1, at.astype(int)
    wide = numpy.pad(spectrum, [(0, 0)] * (spectrum.ndim - 1) + [(0, 2)])
    first, second = wide[..., index], wide[..., index + 1]
    turn = numpy.angle(second) - numpy.angle(first) - advance
    turn = turn - 2 * math.pi * numpy.rint(turn / (2 * math.pi)) + advance
    phase = numpy.cumsum(numpy.concatenate([numpy.angle(spectrum[..., :1]), turn[..., :-1]], -1), -1)
    return (part * abs(second) + (1 - part) * abs(first)) * numpy.exp(1j * phase)


class PhaseVocoder(ComplexOperation):
    """Makes a complex spectrogram faster or slower, at the same pitch."""

    shape = "<..., freq, time, complex=2>"
    ranks_from = 3

    def __init__(self, rate, phase_advance):
        self._rate = positive("rate", rate, (int, float))
        self._advance = _checks.of_type("phase_advance", phase_advance, numpy.ndarray)

    def _array(self, values):
        if self._rate == 1:
            return values
        return _parts(_stretched(_complex(values), self._rate, self._advance))


class TimeStretch(ComplexOperation):
    """Makes a complex spectrogram faster or slower, at the same pitch."""

    shape = "<..., freq, time, complex=2>"
    ranks_from = 3

    def __init__(self, hop_length=None, n_freq=201, fixed_rate=None):
        whole_from("hop_length", hop_length, 1, optional=True)
        whole_from("n_freq", n_freq, 1)
        if fixed_rate is not None:
            positive("fixed_rate", fixed_rate, (int, float))
        self._rate = 1 if fixed_rate is None else fixed_rate
        hop_length = n_freq - 1 if hop_length is None else hop_length
        self._advance = numpy.linspace(0, math.pi * hop_length, n_freq)[:, None]

    def _array(self, values):
        if self._rate == 1:
            return values
        return _parts(_stretched(_complex(values), self._rate, self._advance))


class GriffinLim(AudioOperation):
    """A waveform for a spectrogram without phases, found step by step."""

    shape = "<..., freq, time>"
    ranks_from = 2

    def __init__(
        self,
        n_fft=400,
        n_iter=32,
        win_length=None,
        hop_length=None,
        window_type=WindowType.HANN,
        power=2.0,
        momentum=0.99,
        length=None,
        rand_init=True,
    ):
        win_length, hop_length = _lengths(n_fft, win_length, hop_length)
        self._steps = whole_from("n_iter", n_iter, 1)
        _checks.of_type("window_type", window_type, WindowType)
        self._power = positive("power", power, (int, float))
        self._momentum = not_negative("momentum", momentum, (int, float))
        self._length = whole_from("length", length, 0, optional=True)
        self._is_random = _checks.of_type("rand_init", rand_init, bool)
        self._transform = _Transform(n_fft, win_length, hop_length, window_type)

    def _array(self, values):
        lengths = values ** (1 / self._power)
        momentum = self._momentum / (1 + 2 * self._momentum)  # MindSpore divides by 1 + momentum twice
        angles = numpy.ones(lengths.shape, complex)
        if self._is_random:
            random = _random.generator()
            angles = random.random(lengths.shape) + 1j * random.random(lengths.shape)
        before = 0
        for _ in range(self._steps):
            again = self._transform.forth(self._transform.back(lengths * angles, self._length or None))
            angles = again - momentum * before
            angles = angles / (abs(angles) + 1e-16)
            before = again
        return self._transform.back(lengths * angles, self._length or None)
