"""Sources of well-known data sets of pictures that are read in Python."""

import os
import struct
import zlib

from mindspore._lazy import numpy
from mindspore.dataset import _cache, _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._named_sources import (
    _below,
    _folder,
    _lines,
    _NamedDataset,
    _Order,
    _picture,
    _read_bytes,
)
from mindspore.dataset._small_sources import _one_of, _Pairs


def _label(number, kind="uint32"):
    return numpy.asarray(number, kind)


class _Pictures(_NamedDataset):
    """Pictures in files, with labels."""

    def _begin_pictures(self, folder, decode, order, num_parallel_workers, cache):
        self._start(order, num_parallel_workers, _cache.refused(cache))
        _checks.of_type("decode", decode, bool)
        self._decode = decode
        return _folder(folder)

    def _read_pictures(self, rows, columns=("image", "label")):
        """`rows`: the paths of pictures, and last what the label is."""
        self._read(
            list(columns), rows, lambda row: [*(_picture(path, self._decode) for path in row[:-1]), row[-1]]
        )


class _InFolders(_Pictures):
    """Pictures below one folder, without usages: a subclass gives its rows in `_rows_in`."""

    def __init__(
        self,
        dataset_dir,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        decode=False,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        folder = self._begin_pictures(dataset_dir, decode, order, num_parallel_workers, cache)
        self._read_pictures(list(self._rows_in(folder)))

    def _rows_in(self, folder):
        raise NotImplementedError


class SUN397Dataset(_InFolders):
    """Scenes: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and label () uint32."""

    def _rows_in(self, folder):
        for number, name in enumerate(line for line in _lines(os.path.join(folder, "ClassName.txt")) if line):
            for path in _below(folder, *name.strip("/").split("/")):
                if path.endswith((".jpg", ".jpeg", ".png")):
                    yield path, _label(number)


class Caltech256Dataset(_InFolders):
    """Objects: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and label () int32, by folders."""

    def _rows_in(self, folder):
        for number, place in enumerate(filter(os.path.isdir, _below(folder))):
            for path in _below(place):
                yield path, _label(number, numpy.int32)


class OmniglotDataset(_Pictures):
    """Characters of alphabets: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and label () int32.

    `background` (None: True) chooses images_background, else images_evaluation.
    """

    def __init__(
        self,
        dataset_dir,
        background=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        decode=False,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        folder = self._begin_pictures(dataset_dir, decode, order, num_parallel_workers, cache)
        _checks.of_type("background", background, bool, optional=True)
        part = "images_evaluation" if background is False else "images_background"
        characters = [place for alphabet in _below(folder, part) for place in _below(alphabet)]
        rows = [
            (path, _label(number, numpy.int32))
            for number, place in enumerate(characters)
            for path in _below(place)
        ]
        self._read_pictures(rows)


class _ByUsage(_Pictures):
    """Pictures of a usage: a subclass names `_USAGES`, and gives its rows in `_rows_of`."""

    _USAGES: tuple = ()

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        decode=False,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        folder = self._begin_pictures(dataset_dir, decode, order, num_parallel_workers, cache)
        _one_of("usage", usage, (None, "all", *self._USAGES))
        parts = self._USAGES if usage in (None, "all") else (usage,)
        self._read_pictures([row for part in parts for row in self._rows_of(folder, part)])

    def _rows_of(self, folder, part):
        raise NotImplementedError


class Food101Dataset(_ByUsage):
    """Dishes: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and label, a string."""

    _USAGES = ("train", "test")

    def _rows_of(self, folder, part):
        for key in filter(None, _lines(os.path.join(folder, "meta", f"{part}.txt"))):
            yield os.path.join(folder, "images", f"{key}.jpg"), numpy.asarray(key.split("/")[0])


class RenderedSST2Dataset(_ByUsage):
    """Sentences as pictures: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and label () uint32.

    The label is 1 for sentences that praise.
    """

    _USAGES = ("test", "train", "val")

    def _rows_of(self, folder, part):
        for number, name in enumerate(("negative", "positive")):
            for path in _below(folder, "valid" if part == "val" else part, name):
                yield path, _label(number)


_PLACES = {
    "train-standard": ("places365_train_standard.txt", "data_{}_standard"),
    "train-challenge": ("places365_train_challenge.txt", "data_{}_challenge"),
    "val": ("places365_val.txt", "val_{}"),
}


class Places365Dataset(_Pictures):
    """Scenes: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and label () uint32.

    `small` takes the pictures of 256 x 256, else the large ones; `usage` None is 'train-standard'.
    """

    def __init__(
        self,
        dataset_dir,
        usage=None,
        small=True,
        decode=False,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        folder = self._begin_pictures(dataset_dir, decode, order, num_parallel_workers, cache)
        _one_of("usage", usage, (None, *_PLACES))
        _checks.of_type("small", small, bool)
        listed, place = _PLACES[usage or "train-standard"]
        place = os.path.join(folder, place.format("256" if small else "large"))
        pairs = [line.split() for line in _lines(os.path.join(folder, listed)) if line.strip()]
        self._read_pictures(
            [(os.path.join(place, name.lstrip("/")), _label(number)) for name, number in pairs]
        )


# ---- Faces -------------------------------------------------------------------------------------------------

_FACES = {"original": "lfw", "funneled": "lfw_funneled", "deepfunneled": "lfw-deepfunneled"}
_LFW_FILES = {
    "train": ("{}DevTrain.txt",),
    "test": ("{}DevTest.txt",),
    "all": ("{}DevTrain.txt", "{}DevTest.txt"),
    "10fold": ("{}.txt",),
}


class LFWDataset(_Pictures):
    """Faces. With task='people' (None) columns image and label () uint32, by lfw-names.txt; with task='pairs'
    image1, image2 and label, 1 for the same person. Images are uint8: (bytes,) or, decoded, (H, W, 3).

    `image_set` (None: 'funneled') is 'original', 'funneled' or 'deepfunneled'.
    """

    def __init__(
        self,
        dataset_dir,
        task=None,
        usage=None,
        image_set=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        decode=False,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        folder = self._begin_pictures(dataset_dir, decode, order, num_parallel_workers, cache)
        _one_of("task", task, (None, "people", "pairs"))
        _one_of("usage", usage, (None, *_LFW_FILES))
        _one_of("image_set", image_set, (None, *_FACES))
        task = task or "people"
        faces = os.path.join(folder, _FACES[image_set or "funneled"])

        def picture(name, number):
            return os.path.join(faces, name, f"{name}_{int(number):04}.jpg")

        listed = [
            line.split("\t")
            for name in _LFW_FILES[usage or "all"]
            for line in _lines(os.path.join(folder, name.format(task)))
        ]
        if task == "pairs":
            self._read_pictures(_pairs_of(listed, picture), ("image1", "image2", "label"))
        else:
            names = [line.split("\t")[0] for line in _lines(os.path.join(folder, "lfw-names.txt"))]
            self._read_pictures(_people_of(listed, names, picture))


def _people_of(listed, names, picture):
    """A line that is no number alone is a person and how many pictures of it there are."""
    numbers = {name: number for number, name in enumerate(names)}
    return [
        (picture(line[0], at), _label(numbers[line[0]]))
        for line in listed
        if len(line) == 2
        for at in range(1, int(line[1]) + 1)
    ]


def _pairs_of(listed, picture):
    """Two pictures of one person, or of two."""
    rows = []
    for line in listed:
        if len(line) == 3:
            rows.append((picture(*line[:2]), picture(line[0], line[2]), _label(1)))
        elif len(line) == 4:
            rows.append((picture(*line[:2]), picture(*line[2:]), _label(0)))
    return rows


# ---- Digits in MAT files -----------------------------------------------------------------------------------


def _elements(path, data):
    """(kind, bytes) of what a MAT file of level 5 holds, or one of its variables."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind >> 16:  # of up to four bytes, in the same eight
            yield kind & 0xFFFF, data[at + 4 : at + 4 + (kind >> 16)]
            at += 8
            continue
        content = data[at + 8 : at + 8 + size]
        if len(content) < size:
            raise PipelineError(f"Invalid file, {path} ends within an element")
        at += 8 + size + (-size % 8 if kind != 15 else 0)
        if kind == 15:
            yield from _elements(path, zlib.decompress(content))
        else:
            yield kind, content


_MAT_KINDS = {1: "<i1", 2: "<u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8"}


def _mat_variables(path):
    """The arrays of a MAT file of level 5, by name."""
    content = _read_bytes(path)
    if content[124:128] != b"\x00\x01IM":
        raise PipelineError(f"Invalid file, {path} is no MAT file of level 5")
    found = {}
    for kind, variable in _elements(path, content[128:]):
        if kind == 14:  # a matrix: flags, shape, name, numbers
            _, (_, shape), (_, name), (numbers, values) = list(_elements(path, variable))[:4]
            array = numpy.frombuffer(values, _MAT_KINDS[numbers])
            found[name.decode()] = array.reshape(numpy.frombuffer(shape, "<i4").tolist(), order="F")
    return found


class SVHNDataset(_Pairs):
    """Digits of street numbers: columns image (32, 32, 3) uint8 and label () uint32."""

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, {})
        folder = _folder(dataset_dir)
        _one_of("usage", usage, (None, "train", "test", "extra", "all"))
        images, labels = [], []
        for part in ("train", "test", "extra") if usage in (None, "all") else (usage,):
            found = _mat_variables(os.path.join(folder, f"{part}_32x32.mat"))
            images.append(found["X"].transpose(3, 0, 1, 2))
            labels.append(found["y"].reshape(-1).astype(numpy.uint32) % 10)  # 10 stands for 0
        self._read_pairs(numpy.concatenate(images), numpy.concatenate(labels))
