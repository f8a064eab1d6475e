"""Choices of the operations on sounds, by MindSpore's names."""

import enum


class _Choice(str, enum.Enum):  # noqa: UP042 - it shows as MindSpore's
    """A choice is its text, too."""


class BorderType(_Choice):
    """What stands beyond the end."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class DensityFunction(_Choice):
    """Which noise dithers."""

    TPDF = "TPDF"
    RPDF = "RPDF"
    GPDF = "GPDF"


class FadeShape(_Choice):
    """The curve of a fade."""

    LINEAR = "linear"
    EXPONENTIAL = "exponential"
    LOGARITHMIC = "logarithmic"
    QUARTER_SINE = "quarter_sine"
    HALF_SINE = "half_sine"


class GainType(_Choice):
    """What a gain is counted in."""

    AMPLITUDE = "amplitude"
    POWER = "power"
    DB = "db"


class Interpolation(_Choice):
    """How values between two samples are taken."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"


class MelType(_Choice):
    """The mel scale."""

    HTK = "htk"
    SLANEY = "slaney"


class Modulation(_Choice):
    """The wave that moves a delay."""

    SINUSOIDAL = "sinusoidal"
    TRIANGULAR = "triangular"


class NormMode(_Choice):
    """Whether a cosine transform is orthonormal."""

    ORTHO = "ortho"
    NONE = "none"


class NormType(_Choice):
    """Whether mel weights are divided by their bands."""

    SLANEY = "slaney"
    NONE = "none"


class ResampleMethod(_Choice):
    """The window of a resampling."""

    SINC_INTERPOLATION = "sinc_interpolation"
    KAISER_WINDOW = "kaiser_window"


class ScaleType(_Choice):
    """What a spectrogram holds."""

    POWER = "power"
    MAGNITUDE = "magnitude"


class WindowType(_Choice):
    """The window of a transform."""

    BARTLETT = "bartlett"
    BLACKMAN = "blackman"
    HAMMING = "hamming"
    HANN = "hann"
    KAISER = "kaiser"
