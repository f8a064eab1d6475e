"""Sampling rates and pitch of sounds. The steps are torchaudio's, of which MindSpore's results are."""

import math

from mindspore._lazy import numpy
from mindspore.dataset import _checks, _random
from mindspore.dataset.audio._base import AudioOperation, not_negative, positive, whole_from
from mindspore.dataset.audio._enums import MelType, NormType, ResampleMethod, WindowType
from mindspore.dataset.audio._transforms import MelScale, _lengths, _stretched, _Transform

_KAISER_BETA = 14.769656459379492  # torchaudio's, where none is given


def _not_zero(name, value):
    _checks.of_type(name, value, int)
    if value == 0 or not -_checks.INT32_MAX - 1 <= value <= _checks.INT32_MAX:
        raise ValueError(
            f"Input {name} is not within the required interval of [-2147483648, 0) and (0, 2147483647]."
        )
    return value


def _low_pass(at, width, beta):
    """A low pass of `width` zeros on each side, at places; `beta` is of Kaiser's window, None: a cosine's."""
    at = at.clip(-width, width)
    if beta is None:
        window = numpy.cos(at * math.pi / width / 2) ** 2
    else:
        window = numpy.i0(beta * numpy.sqrt(1 - (at / width) ** 2)) / numpy.i0(beta)
    return numpy.sinc(at) * window


def resampled(values, old, new, width=6, rolloff=0.99, beta=None):
    """(..., time) at another sampling rate."""
    if old == new:
        return values
    common = math.gcd(int(old), int(new))
    old, new = int(old) // common, int(new) // common
    cut = min(old, new) * rolloff
    reach = math.ceil(width * old / cut)
    made = numpy.arange(math.ceil(new * values.shape[-1] / old))
    taken = (made * old // new)[:, None] + numpy.arange(-reach, reach + 2)
    weights = _low_pass((taken / old - made[:, None] / new) * cut, width, beta) * cut / old
    wide = numpy.pad(values, [(0, 0)] * (values.ndim - 1) + [(reach, reach + old + 2)])
    return (wide[..., taken + reach] * weights).sum(-1)


class Resample(AudioOperation):
    """Another sampling rate."""

    def __init__(
        self,
        orig_freq=16000,
        new_freq=16000,
        resample_method=ResampleMethod.SINC_INTERPOLATION,
        lowpass_filter_width=6,
        rolloff=0.99,
        beta=None,
    ):
        self._rates = positive("orig_freq", orig_freq), positive("new_freq", new_freq)
        _checks.of_type("resample_method", resample_method, ResampleMethod)
        self._width = whole_from("lowpass_filter_width", lowpass_filter_width, 1)
        _checks.of_type("rolloff", rolloff, int, float)
        if not 0 < rolloff <= 1:
            raise ValueError("Input rolloff is not within the required interval of (0, 1.0].")
        if beta is not None:
            _checks.of_type("beta", beta, int, float)
        self._rolloff = rolloff
        beta = _KAISER_BETA if beta is None else beta
        self._beta = beta if resample_method == ResampleMethod.KAISER_WINDOW else None

    def _array(self, values):
        return resampled(values, *self._rates, self._width, self._rolloff, self._beta)


class PitchShift(AudioOperation):
    """A sound `n_steps` higher, as long as before. Phases are float64, also of float32 sounds."""

    def __init__(
        self,
        sample_rate,
        n_steps,
        bins_per_octave=12,
        n_fft=512,
        win_length=None,
        hop_length=None,
        window=WindowType.HANN,
    ):
        self._sample_rate = whole_from("sample_rate", sample_rate, 0)
        _checks.whole("n_steps", n_steps, -_checks.INT32_MAX - 1)
        self._rate = 2 ** (-n_steps / _not_zero("bins_per_octave", bins_per_octave))
        win_length, _ = _lengths(n_fft, win_length, hop_length)
        hop_length = n_fft // 4 if hop_length is None else hop_length
        _checks.of_type("window", window, WindowType)
        self._transform = _Transform(n_fft, win_length, hop_length, window)

    def _array(self, values):
        length = values.shape[-1]
        spectrum = self._transform.forth(values)
        advance = numpy.linspace(0, math.pi * self._transform.hop, spectrum.shape[-2])[:, None]
        if self._rate != 1:
            spectrum = _stretched(spectrum, self._rate, advance)
        slow = self._transform.back(spectrum, round(length / self._rate))
        made = resampled(slow, int(self._sample_rate / self._rate), self._sample_rate)[..., :length]
        return numpy.pad(made, [(0, 0)] * (made.ndim - 1) + [(0, length - made.shape[-1])])


class DetectPitchFrequency(AudioOperation):
    """The pitch of each frame, by the lag at which the sound is most like itself."""

    def __init__(self, sample_rate, frame_time=0.01, win_length=30, freq_low=85, freq_high=3400):
        self._rate = _not_zero("sample_rate", sample_rate)
        self._frame = math.ceil(sample_rate * positive("frame_time", frame_time, (int, float)))
        self._smoothed = whole_from("win_length", win_length, 1)
        self._most = math.ceil(sample_rate / positive("freq_low", freq_low, (int, float)))
        self._least = math.ceil(sample_rate / positive("freq_high", freq_high, (int, float)))

    def _array(self, values):
        lags = self._likeness(values)
        least = self._least
        best = lags[..., least:].argmax(-1)
        half = lags[..., least : lags.shape[-1] // 2]
        early = half.argmax(-1)  # a lag half as long, where it fits as well: an octave higher
        fits = half.max(-1) > 0.99 * lags[..., least:].max(-1)
        found = self._median(numpy.where(fits, early, best) + least + 1)
        return self._rate / (1e-9 + found)

    def _made(self, values):
        return super()._made(values).astype(numpy.float32)

    def _likeness(self, values):
        """(..., frame, lag): correlation of each frame with what comes `lag` samples later."""
        frames = -(-values.shape[-1] // self._frame)
        used = frames * self._frame
        missing = self._most + used - values.shape[-1]
        wide = numpy.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
        shape = (*values.shape[:-1], frames, self._frame)
        first = wide[..., :used].reshape(shape)
        made = []
        for lag in range(1, self._most + 1):
            later = wide[..., lag : lag + used].reshape(shape)
            lengths = [1e-9 + numpy.sqrt((each**2).sum(-1)) for each in (first, later)]
            made.append((first * later).sum(-1) / lengths[0] ** 2 / lengths[1] ** 2)
        return numpy.stack(made, -1)

    def _median(self, lags):
        before = (self._smoothed - 1) // 2
        wide = numpy.pad(lags, [(0, 0)] * (lags.ndim - 1) + [(before, 0)])
        wide[..., :before] = wide[..., before : before + 1]
        if wide.shape[-1] < self._smoothed:
            raise _checks.PipelineError(
                f"DetectPitchFrequency: win_length {self._smoothed} is longer than the sound, which has "
                f"{lags.shape[-1]} frames"
            )
        windows = numpy.lib.stride_tricks.sliding_window_view(wide, self._smoothed, -1)
        return numpy.sort(windows, -1)[..., (self._smoothed - 1) // 2]


class InverseMelScale(AudioOperation):
    """A spectrogram whose mel bands are like those given, found from random numbers step by step."""

    shape = "<..., freq, time>"
    ranks_from = 2

    def __init__(
        self,
        n_stft,
        n_mels=128,
        sample_rate=16000,
        f_min=0.0,
        f_max=None,
        max_iter=100000,
        tolerance_loss=1e-5,
        tolerance_change=1e-8,
        sgdargs=None,
        norm=NormType.NONE,
        mel_type=MelType.HTK,
    ):
        self._bands = MelScale(n_mels, sample_rate, f_min, f_max, n_stft, norm, mel_type)._bands
        self._steps = whole_from("max_iter", max_iter, 1)
        self._near = positive("tolerance_loss", tolerance_loss)
        self._still = positive("tolerance_change", tolerance_change)
        given = {} if sgdargs is None else _checks.of_type("sgdargs", sgdargs, dict)
        self._speed = not_negative("sgd_lr", given.get("sgd_lr", 0.1))
        self._momentum = not_negative("sgd_momentum", given.get("sgd_momentum", 0.9))

    def _array(self, values):
        if values.shape[-2] != self._bands.shape[1]:
            raise _checks.PipelineError(
                f"InverseMelScale: n_mels is {self._bands.shape[1]}, and the input has {values.shape[-2]}"
            )
        wanted = values.reshape(-1, *values.shape[-2:]).swapaxes(-1, -2)
        made = numpy.stack([self._found(each) for each in wanted]).swapaxes(-1, -2)
        return made.reshape(*(values.shape[:-2] or (1,)), *made.shape[-2:])

    def _found(self, wanted):
        """(time, freq) for (time, mel), by gradient descent on the mean over time of the squared error."""
        found = _random.generator().random((len(wanted), len(self._bands)))
        moved, before = 0, math.inf
        for _ in range(self._steps):
            error = wanted - found @ self._bands
            loss = float((error**2).sum(-1).mean())
            moved = self._momentum * moved - 2 / len(wanted) * error @ self._bands.T
            found = (found - self._speed * moved).clip(min=0)
            if loss < self._near or abs(before - loss) < self._still:
                break
            before = loss
        return found
