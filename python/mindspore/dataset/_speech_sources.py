"""Further sources of well-known data sets of speech and music that are read in Python."""

import os

from mindspore._lazy import numpy
from mindspore.dataset import _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._named_sources import _below, _folder, _lines, _read_bytes
from mindspore.dataset._small_sources import _one_of
from mindspore.dataset._sound_sources import _sound, _Sounds


def _text(name, value, allowed):
    """`value`, one of the texts `allowed`; None stays."""
    _checks.of_type(name, value, str, optional=True)
    return value if value is None else _one_of(name, value, allowed)


def _number(value):
    return numpy.asarray(int(value), numpy.uint32)


class _Rated(_Sounds):
    """Sounds whose sample_rate is an uint32."""

    def _values(self, row):
        waveform, rate = _sound(row[0])
        return [waveform, rate.astype(numpy.uint32), *row[1]]


class _Chosen(_Rated):
    """Sounds of one of the parts that `_ALLOWED` names; the argument is `_ARGUMENT`."""

    _ARGUMENT = "usage"
    _ALLOWED: tuple = ()

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
        self._part = _text(self._ARGUMENT, usage, self._ALLOWED)
        super().__init__(
            dataset_dir, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache
        )


_SPEAKERS = (
    *("aew", "ahw", "aup", "awb", "axb", "bdl", "clb", "eey", "fem", "gka", "jmk", "ksp", "ljm", "lnh"),
    *("rms", "rxr", "slp", "slt"),
)


class CMUArcticDataset(_Chosen):
    """One speaker who reads: columns waveform (1, samples) float32, sample_rate () uint32, transcript and
    utterance_id, strings. `name` is the speaker, None: 'aew'."""

    _ARGUMENT = "name"
    _ALLOWED = _SPEAKERS
    _COLUMNS = ("transcript", "utterance_id")

    def __init__(
        self,
        dataset_dir,
        name=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        super().__init__(
            dataset_dir,
            name,
            num_samples,
            num_parallel_workers,
            shuffle,
            sampler,
            num_shards,
            shard_id,
            cache,
        )

    def _rows_in(self, folder):
        place = os.path.join(folder, f"cmu_us_{self._part or 'aew'}_arctic")
        listed = os.path.join(place, "etc", "txt.done.data")
        for line in filter(None, _lines(listed)):
            key, *texts = line.split('"')
            if len(texts) < 2:
                raise PipelineError(f'Invalid file, {listed} has a line that is not ( name "text" ): {line}')
            name = key.strip("( ")
            yield os.path.join(place, "wav", f"{name}.wav"), [texts[0], name.rpartition("_")[2]]


_LIBRI_PARTS = (
    *("dev-clean", "dev-other", "test-clean", "test-other", "train-clean-100", "train-clean-360"),
    "train-other-500",
)


class LibriTTSDataset(_Chosen):
    """Books that are read: columns waveform (1, samples) float32, sample_rate () uint32, original_text and
    normalized_text, strings, speaker_id and chapter_id () uint32, utterance_id, a string."""

    _ALLOWED = (*_LIBRI_PARTS, "all")
    _COLUMNS = ("original_text", "normalized_text", "speaker_id", "chapter_id", "utterance_id")

    def _rows_in(self, folder):
        for part in _LIBRI_PARTS if self._part in (None, "all") else (self._part,):
            for path in _found(os.path.join(folder, part), ".trans.tsv"):
                for line in filter(None, _lines(path)):
                    name, original, normalized = line.split("\t")
                    speaker, chapter, *_ = name.split("_")
                    values = [original, normalized, _number(speaker), _number(chapter), name]
                    yield os.path.join(os.path.dirname(path), f"{name}.wav"), values


def _found(folder, ending):
    """The files below a folder, in order, whose names end so; none where there is no such folder."""
    return sorted(
        os.path.join(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if name.endswith(ending)
    )


_TED_PARTS = ("train", "test", "dev")


class TedliumDataset(_Sounds):
    """Talks: columns waveform (1, samples) float32, sample_rate () int32, transcript, talk_id, speaker_id and
    identifier, strings. `release` is 'release1', 'release2' or 'release3', which has all usages in one."""

    _COLUMNS = ("transcript", "talk_id", "speaker_id", "identifier")

    def __init__(
        self,
        dataset_dir,
        release,
        usage=None,
        extensions=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        _checks.of_type("release", release, str)
        _one_of("release", release, ("release1", "release2", "release3"))
        self._parts = ("data",)
        allowed = ("all",) if release == "release3" else (*_TED_PARTS, "all")
        _text("usage", usage, allowed)
        if release != "release3":
            self._parts = _TED_PARTS if usage in (None, "all") else (usage,)
        _checks.of_type("extensions", extensions, str, optional=True)
        if extensions not in (None, ".sph"):
            raise PipelineError(f"TedliumDataset: extensions={extensions!r} is not supported; it is '.sph'")
        super().__init__(
            dataset_dir, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache
        )

    def _rows_in(self, folder):
        rows = []
        for part in self._parts:
            place = os.path.join(folder, part)
            for path in _below(_folder(os.path.join(place, "stm"))):
                if path.endswith(".stm"):
                    rows += [(number, *_spoken(line, place)) for number, line in enumerate(_lines(path))]
        if not rows:
            raise PipelineError(
                "Invalid data, no valid data matching the dataset API TedliumDataset: there is no line in "
                f"the .stm files of {folder}"
            )
        return [row[1:] for row in sorted(rows, key=lambda row: (str(row[0]), row[1]))]

    def _values(self, row):
        return [*_sphere(*row[:3]), *row[3]]


def _spoken(line, place):
    """The sound file of a line of an .stm file, its first and last second, and its texts."""
    parts = line.split(" ", 6)
    if len(parts) != 7:
        raise PipelineError(f"Invalid data, an .stm file below {place} has a broken line: {line}")
    talk, _, speaker, start, end, identifier, transcript = parts
    path = os.path.join(place, "sph", f"{talk}.sph")
    return path, float(start), float(end), [transcript, talk, speaker, identifier]


def _sphere(path, start, end):
    """(waveform (1, samples) float32 from -1 to 1, samples a second) of a part of a file of NIST SPHERE."""
    content = _read_bytes(path)
    head = content[:1024].decode("ascii", "replace").split("\n")
    fields = {line.split()[0]: line.split()[-1] for line in head if len(line.split()) == 3}
    try:
        rate = int(fields["sample_rate"])
    except (KeyError, ValueError):
        raise PipelineError(
            f"Invalid data, {path} is no file of NIST SPHERE: it has no sample_rate"
        ) from None
    first, last = int(start * rate), int(end * rate)
    samples = numpy.frombuffer(content[1024:], ">i2", (len(content) - 1024) // 2)[first:last]
    if len(samples) != last - first:
        raise PipelineError(f"Invalid data, {path} ends before {end} seconds")
    waveform = samples.astype(numpy.float32) / numpy.float32(32767)
    return waveform[None], numpy.asarray(rate, numpy.int32)


_GENRES = ("blues", "classical", "country", "disco", "hiphop", "jazz", "metal", "pop", "reggae", "rock")


class GTZANDataset(_Chosen):
    """Pieces of music: columns waveform (1, samples) float32, sample_rate () uint32 and label, a string.

    `usage` is None or 'all'; the lists that divide the pieces into 'train', 'valid' and 'test' are not here.
    """

    _ALLOWED = ("train", "valid", "test", "all")
    _COLUMNS = ("label",)

    def _rows_in(self, folder):
        if self._part not in (None, "all"):
            raise NotImplementedError(
                f"GTZANDataset(usage={self._part!r}): the lists of this usage are not here; use 'all' and "
                "choose the pieces with a sampler or filter()"
            )
        for genre in _GENRES:
            place = os.path.join(folder, genre)
            for path in _below(place) if os.path.isdir(place) else ():
                if path.endswith(".wav"):
                    yield path, [genre]
