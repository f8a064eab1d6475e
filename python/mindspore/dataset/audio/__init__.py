"""mindspore.dataset.audio: operations on sounds."""

from mindspore import _names

# Each name loads with its first use: names by the module that has them.
_HOLDERS = {
    "_enums": """
        BorderType DensityFunction FadeShape GainType Interpolation MelType Modulation NormMode NormType
        ResampleMethod ScaleType WindowType""",
    "_effects": """
        Contrast DCShift Dither Fade Flanger Gain MuLawDecoding MuLawEncoding Overdrive Phaser Vol""",
    "_filters": """
        AllpassBiquad BandBiquad BandpassBiquad BandrejectBiquad BassBiquad Biquad DeemphBiquad
        EqualizerBiquad Filtfilt HighpassBiquad LFilter LowpassBiquad RiaaBiquad TrebleBiquad""",
    "_pitch": "DetectPitchFrequency InverseMelScale PitchShift Resample",
    "_spectra": """
        AmplitudeToDB Angle ComplexNorm ComputeDeltas DBToAmplitude FrequencyMasking Magphase
        MaskAlongAxis MaskAlongAxisIID SlidingWindowCmn TimeMasking""",
    "_transforms": """
        GriffinLim InverseSpectrogram LFCC MFCC MelScale MelSpectrogram PhaseVocoder SpectralCentroid
        Spectrogram TimeStretch create_dct linear_fbanks melscale_fbanks""",
}
_LATER = {name: holder for holder, names in _HOLDERS.items() for name in names.split()}

__all__ = sorted(_LATER)
__getattr__ = _names.later(__name__, _LATER)
