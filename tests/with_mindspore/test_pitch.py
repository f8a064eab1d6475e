"""Sampling rates and pitch of sounds: MindSpore 2.7.0's numbers for two sounds of our own."""

import sys

import numpy as np
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore.dataset as ds
from mindspore.dataset import audio

TIME = np.arange(400) / 8000
SOUND = np.stack(
    [
        np.sin(2 * np.pi * 200 * TIME) + 0.3 * np.sin(2 * np.pi * 450 * TIME),
        np.cos(2 * np.pi * 310 * TIME) * TIME * 20,
    ]
)


def _in_pipeline(operation, sound):
    rows = ds.NumpySlicesDataset([sound], ["sound"], shuffle=False).map(operation, ["sound"])
    (row,) = rows.create_tuple_iterator(num_epochs=1, output_numpy=True)
    return row[0]


@pytest.mark.parametrize(
    ("make", "dtype", "size", "firsts", "last", "total"),
    [
        (lambda: audio.Resample(48000, 32000), float, 267, (0.02569, 0.38029), -0.79742, 258.1275),
        (lambda: audio.Resample(300, 700), np.float32, 934, (0.00071, 0.08882), -0.1161, 903.7026),
        (
            lambda: audio.Resample(480.5, 160.2, audio.ResampleMethod.KAISER_WINDOW, 7, 0.98),
            *(float, 134, (0.07919, 0.7017), -0.62384, 129.1091),
        ),
        (lambda: audio.PitchShift(8000, 12, n_fft=64), float, 400, (0.06987, 0.53838), 0.65808, 361.9766),
    ],
)
def test_sounds_at_another_rate_or_pitch_are_mindspores(make, dtype, size, firsts, last, total):
    sound = SOUND.astype(dtype)
    for made in (make()(sound), _in_pipeline(make(), sound)):
        assert made.dtype == dtype
        assert made.shape == (2, size)
        assert [*made[0, :2], made[1, -1]] == pytest.approx([*firsts, last], abs=2e-5)
        assert float(abs(made).sum()) == pytest.approx(total, abs=2e-3)


def test_a_sound_at_its_own_rate_stays_as_it_is():
    assert (audio.Resample()(SOUND) == SOUND).all()


def test_the_pitch_of_each_frame_is_found():
    made = audio.DetectPitchFrequency(8000, win_length=3)(SOUND)
    assert made.dtype == np.float32
    wanted = [[205.1282] * 4, [320.0] + [307.6923] * 3]
    assert made.tolist() == [pytest.approx(row, abs=1e-3) for row in wanted]
    with pytest.raises(RuntimeError, match="win_length"):
        audio.DetectPitchFrequency(8000)(SOUND)


def test_a_spectrogram_is_found_that_has_the_mel_bands():
    sound = abs(np.random.RandomState(4).standard_normal((20, 12))).astype(np.float32)
    bands = audio.MelScale(8, 8000, n_stft=20)(sound)
    found = audio.InverseMelScale(20, 8, 8000, sgdargs={"sgd_lr": 0.05, "sgd_momentum": 0.9})(bands)
    assert found.shape == (1, 20, 12)
    assert found.min() >= 0
    assert audio.MelScale(8, 8000, n_stft=20)(found)[0] == pytest.approx(bands, abs=0.1)
    assert audio.InverseMelScale(20, 8, 8000, max_iter=3)(np.stack([bands] * 2)).shape == (2, 20, 12)


@pytest.mark.parametrize(
    ("make", "kind", "word"),
    [
        (lambda: audio.Resample(-5), ValueError, "orig_freq is not within"),
        (lambda: audio.Resample(5, 0), ValueError, "new_freq is not within"),
        (lambda: audio.Resample(resample_method="sinc"), TypeError, "ResampleMethod"),
        (lambda: audio.Resample(rolloff=1.5), ValueError, "rolloff is not within"),
        (lambda: audio.PitchShift(8000, 2, bins_per_octave=0), ValueError, "bins_per_octave"),
        (lambda: audio.PitchShift(8000, 2, n_fft=8, win_length=9), ValueError, "win_length"),
        (lambda: audio.DetectPitchFrequency(0), ValueError, "sample_rate"),
        (lambda: audio.DetectPitchFrequency(8000, freq_low=0), ValueError, "freq_low"),
        (lambda: audio.InverseMelScale(20, 0), ValueError, "n_mels"),
        (lambda: audio.InverseMelScale(20, 8, f_min=9, f_max=9), ValueError, "greater than f_min"),
        (lambda: audio.InverseMelScale(20, 8, tolerance_loss=-1.0), ValueError, "tolerance_loss"),
        (lambda: audio.InverseMelScale(20, 9)(np.ones((8, 3))), RuntimeError, "n_mels"),
    ],
)
def test_rates_and_pitch_refuse_what_mindspore_refuses(make, kind, word):
    with pytest.raises(kind, match=word):
        make()
