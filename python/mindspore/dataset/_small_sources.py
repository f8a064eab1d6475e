"""Sources of well-known data sets of digits, small pictures and texts that are read in Python."""

import os

from mindspore._lazy import numpy
from mindspore.dataset import _cache, _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._dataset import Shuffle
from mindspore.dataset._files import _files_of
from mindspore.dataset._named_sources import (
    _folder,
    _json_lines,
    _lines,
    _NamedDataset,
    _Order,
    _read_bytes,
)


def _one_of(name, value, allowed):
    if value not in allowed:
        raise ValueError(f"Input {name} is not within the valid set of {list(allowed)}: {value!r}")
    return value


# ---- Digits and small pictures -----------------------------------------------------------------------------


def _idx(path):
    """The numbers of an IDX file: uint8, or int32 for those of four bytes."""
    content = _read_bytes(path)
    kinds = {8: ">u1", 12: ">i4"}
    if len(content) < 4 or content[2] not in kinds or len(content) < 4 + 4 * content[3]:
        raise PipelineError(f"Invalid file, {path} is no IDX file of bytes or of whole numbers")
    shape = tuple(numpy.frombuffer(content, ">u4", content[3], 4).tolist())
    numbers = numpy.frombuffer(content, kinds[content[2]], offset=4 + 4 * content[3])
    if numbers.size != numpy.prod(shape):
        raise PipelineError(f"Invalid file, {path} holds {numbers.size} numbers, its header says {shape}")
    return numbers.reshape(shape)


class _Pairs(_NamedDataset):
    """Images and labels that are in memory."""

    def _read_pairs(self, images, labels):
        if len(images) != len(labels):
            raise PipelineError(f"{type(self).__name__}: {len(images)} images have {len(labels)} labels")
        self._read(["image", "label"], range(len(images)), lambda at: [images[at], labels[at]])


class EMnistDataset(_Pairs):
    """Handwritten letters and digits, the part `name`: columns image (28, 28, 1) uint8, label () uint32."""

    def __init__(
        self,
        dataset_dir,
        name,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        folder = _folder(dataset_dir)
        _one_of("name", name, ("byclass", "bymerge", "balanced", "letters", "digits", "mnist"))
        _one_of("usage", usage, (None, "train", "test", "all"))
        parts = ("test", "train") if usage in (None, "all") else (usage,)
        start = os.path.join(folder, f"emnist-{name}")
        images = numpy.concatenate([_idx(f"{start}-{part}-images-idx3-ubyte") for part in parts])
        labels = numpy.concatenate([_idx(f"{start}-{part}-labels-idx1-ubyte") for part in parts])
        self._read_pairs(images[..., None], labels.astype(numpy.uint32))


# By usage: files and which of their rows.
_QMNIST = {
    "train": [("qmnist-train", slice(None))],
    "test": [("qmnist-test", slice(None))],
    "test10k": [("qmnist-test", slice(10000))],
    "test50k": [("qmnist-test", slice(10000, None))],
    "nist": [("xnist", slice(None))],
}
_QMNIST["all"] = [*_QMNIST["train"], *_QMNIST["test"], *_QMNIST["nist"]]


class QMnistDataset(_Pairs):
    """Handwritten digits: columns image (28, 28, 1) uint8 and label uint32: (), or with compat=False (8,)."""

    def __init__(
        self,
        dataset_dir,
        usage=None,
        compat=True,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        folder = _folder(dataset_dir)
        _one_of("usage", usage, (None, *_QMNIST))
        _checks.of_type("compat", compat, bool)
        images, labels = [], []
        for name, rows in _QMNIST[usage or "all"]:
            start = os.path.join(folder, name)
            images.append(_idx(f"{start}-images-idx3-ubyte")[rows, :, :, None])
            labels.append(_idx(f"{start}-labels-idx2-int")[rows].astype(numpy.uint32))
        labels = numpy.concatenate(labels)
        self._read_pairs(numpy.concatenate(images), labels[:, 0] if compat else labels)


class USPSDataset(_NamedDataset):
    """Digits of envelopes: columns image (16, 16, 1) uint8 and label () uint32, from 0."""

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(None, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        folder = _folder(dataset_dir)
        files = {"train": ["usps"], "test": ["usps.t"]}
        files[None] = files["all"] = ["usps", "usps.t"]
        _one_of("usage", usage, files)
        rows = _in_turn([_usps_rows(os.path.join(folder, name)) for name in files[usage]])
        self._read(["image", "label"], rows, list)


def _in_turn(lists):
    """A row of each file after the other, as long as they have any: MindSpore's order for several files."""
    longest = max(map(len, lists))
    return [rows[at] for at in range(longest) for rows in lists if at < len(rows)]


def _usps_rows(path):
    rows = []
    for number, line in enumerate(_lines(path), start=1):
        label, *pairs = line.split()
        if len(pairs) != 256:
            raise PipelineError(f"Invalid data, line {number} of {path} has {len(pairs)} values, 256 wanted")
        values = numpy.asarray([pair.split(":")[1] for pair in pairs], numpy.float32)
        image = ((values + 1) / 2 * 255).astype(numpy.uint8).reshape(16, 16, 1)
        rows.append((image, numpy.asarray(int(label) - 1, numpy.uint32)))
    return rows


class SemeionDataset(_Pairs):
    """Digits as dots: columns image (16, 16) uint8, 0 or 1, and label () uint32."""

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
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        path = os.path.join(_folder(dataset_dir), "semeion.data")
        lines = [line.split() for line in _lines(path) if line.strip()]
        if any(len(line) != 266 for line in lines):
            raise PipelineError(f"Invalid data, a line of {path} has not 256 dots and 10 marks of the label")
        numbers = numpy.asarray(lines, numpy.float32).astype(numpy.uint8).reshape(-1, 266)
        images = numbers[:, :256].reshape(-1, 16, 16)
        self._read_pairs(images, numbers[:, 256:].argmax(1).astype(numpy.uint32))


_STL10 = {
    "train": ("train",),
    "test": ("test",),
    "unlabeled": ("unlabeled",),
    "train+unlabeled": ("train", "unlabeled"),
    "all": ("test", "train", "unlabeled"),
}


class STL10Dataset(_Pairs):
    """Photographs in ten classes: columns image (96, 96, 3) uint8 and label () int32, -1 for unlabeled."""

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
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        folder = _folder(dataset_dir)
        _one_of("usage", usage, (None, *_STL10))
        images, labels = [], []
        for part in _STL10[usage or "all"]:
            images.append(_stl10_images(os.path.join(folder, f"{part}_X.bin")))
            if part == "unlabeled":
                labels.append(numpy.full(len(images[-1]), -1, numpy.int32))
            else:
                given = numpy.frombuffer(_read_bytes(os.path.join(folder, f"{part}_y.bin")), numpy.uint8)
                labels.append(given.astype(numpy.int32) - 1)
        self._read_pairs(numpy.concatenate(images), numpy.concatenate(labels))


def _stl10_images(path):
    """Column by column in the file, a colour after the other."""
    pixels = numpy.frombuffer(_read_bytes(path), numpy.uint8)
    if pixels.size % (3 * 96 * 96):
        raise PipelineError(f"Invalid file, {path} holds no whole number of pictures of 96 x 96 in 3 colours")
    return pixels.reshape(-1, 3, 96, 96).transpose(0, 3, 2, 1)


# ---- CLUE --------------------------------------------------------------------------------------------------

# By task: what a line holds in train and eval, and in test. Keys that end in :number become uint32.
_PAIR = ("label sentence1 sentence2", "id:number sentence1 sentence2")
_SPANS = (
    "idx:number span1_index:number@target span1_text@target span2_index:number@target span2_text@target text"
)
_CLUE = {
    "AFQMC": _PAIR,
    "CMNLI": _PAIR,
    "TNEWS": ("keywords label label_desc sentence", "id:number keywords sentence"),
    "IFLYTEK": ("label label_des sentence", "id:number sentence"),
    "CSL": ("abst id:number keyword label", "abst id:number keyword"),
    "WSC": (f"label {_SPANS}", _SPANS),
}


def _clue_value(path, line, key):
    name, _, holder = key.partition("@")
    name, _, is_number = name.partition(":")
    try:
        value = line[holder][name] if holder else line[name]
    except (KeyError, TypeError):
        raise PipelineError(f"Invalid data, a line of {path} has no {name!r}") from None
    return numpy.asarray(value, numpy.uint32) if is_number else numpy.asarray(value)


class CLUEDataset(_NamedDataset):
    """Texts of CLUE: a column for each member of a line by `task` and `usage`, by name; numbers as uint32."""

    def __init__(
        self,
        dataset_files,
        task="AFQMC",
        usage="train",
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(None, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        _one_of("task", task, _CLUE)
        _one_of("usage", usage, ("train", "test", "eval"))
        keys = sorted(_CLUE[task][usage == "test"].split())
        files = [
            [[_clue_value(path, line, key) for key in keys] for line in _json_lines(path)]
            for path in _files_of(dataset_files)
        ]
        self._read_files([key.partition("@")[0].partition(":")[0] for key in keys], files)
