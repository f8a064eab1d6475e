"""Sources of well-known data sets of speech that are read in Python."""

import io
import os
import wave

from mindspore._lazy import numpy
from mindspore.dataset import _cache
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._named_sources import _below, _folder, _lines, _NamedDataset, _Order, _read_bytes
from mindspore.dataset._small_sources import _one_of


def _sound(path):
    """(waveform (1, samples) float32 from -1 to 1, samples a second) of a WAV file of one channel."""
    try:
        with wave.open(io.BytesIO(_read_bytes(path))) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            content = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise PipelineError(f"Invalid file, {path} is no WAV file: {error}") from None
    if (channels, width) != (1, 2):
        raise PipelineError(f"{path}: one channel of 16 bits is read, not {channels} of {8 * width}")
    samples = numpy.frombuffer(content, "<i2").astype(numpy.float32) / numpy.float32(32767)
    return samples[None], numpy.asarray(rate, numpy.int32)


class _Sounds(_NamedDataset):
    """Files of sound, and what is said of them: a subclass gives (path, values) in `_rows_in`."""

    _COLUMNS: tuple = ()

    def __init__(
        self,
        dataset_dir,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        self._begin_sounds(
            dataset_dir, num_parallel_workers, cache, sampler, shuffle, num_samples, num_shards, shard_id
        )

    def _begin_sounds(self, folder, num_parallel_workers, cache, *order):
        self._start(_Order(*order), num_parallel_workers, _cache.refused(cache))
        columns = ["waveform", "sample_rate", *self._COLUMNS]
        self._read(columns, list(self._rows_in(_folder(folder))), self._values)

    def _values(self, row):
        return [*_sound(row[0]), *row[1]]

    def _rows_in(self, folder):
        raise NotImplementedError


class YesNoDataset(_Sounds):
    """Eight words, yes or no: columns waveform (1, samples) float32, sample_rate () and label (8,) int32."""

    _COLUMNS = ("label",)

    def _rows_in(self, folder):
        for path in _below(folder):
            stem, ending = os.path.splitext(os.path.basename(path))
            if ending == ".wav":
                yield path, [numpy.asarray(stem.split("_"), numpy.int32)]


class LJSpeechDataset(_Sounds):
    """One speaker who reads: columns waveform (1, samples) float32, sample_rate () int32, transcription and
    normalized_transcription, strings."""

    _COLUMNS = ("transcription", "normalized_transcription")

    def _rows_in(self, folder):
        for line in filter(None, _lines(os.path.join(folder, "metadata.csv"))):
            name, *texts = line.split("|")
            yield os.path.join(folder, "wavs", f"{name}.wav"), texts


class SpeechCommandsDataset(_Sounds):
    """Single words: columns waveform (1, samples) float32, sample_rate () int32, label and speaker_id, both
    strings, and utterance_number () int32."""

    _COLUMNS = ("label", "speaker_id", "utterance_number")

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        self._usage = _one_of("usage", usage, (None, "train", "valid", "test", "all"))
        super().__init__(
            dataset_dir, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache
        )

    def _rows_in(self, folder):
        for key in self._keys_in(folder):
            word, name = key.split("/")
            speaker, _, number = os.path.splitext(name)[0].split("_")
            yield os.path.join(folder, word, name), [word, speaker, numpy.asarray(int(number), numpy.int32)]

    def _keys_in(self, folder):
        """word/file of what the usage has: train is what the two lists do not name."""
        names = {"valid": "validation_list.txt", "test": "testing_list.txt"}
        if self._usage in names:
            return sorted(filter(None, _lines(os.path.join(folder, names[self._usage]))))
        words = [word for word in sorted(os.listdir(folder)) if os.path.isdir(os.path.join(folder, word))]
        keys = [
            f"{word}/{name}"
            for word in words
            if word != "_background_noise_"
            for name in sorted(os.listdir(os.path.join(folder, word)))
            if name.endswith(".wav")
        ]
        if self._usage != "train":
            return keys
        others = {key for name in names.values() for key in _lines(os.path.join(folder, name))}
        return [key for key in keys if key not in others]
