"""Further sources of well-known data sets of pictures that are read in Python."""

import os

from mindspore._lazy import numpy
from mindspore.dataset import _cache, _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._named_sources import _below, _file, _folder, _lines, _NamedDataset, _Order, _picture
from mindspore.dataset._picture_sources import _InFolders, _label, _Pictures
from mindspore.dataset._small_sources import _one_of


def _text(name, value, allowed):
    _checks.of_type(name, value, str)
    return _one_of(name, value, allowed)


# ---- Pairs of large and small pictures ---------------------------------------------------------------------

_SCALES = {
    **{f"{kind}_x{scale}": f"LR_{kind}/X{scale}" for kind in ("bicubic", "unknown") for scale in (2, 3, 4)},
    "bicubic_x8": "LR_x8",
    **{f"{kind}_x4": f"LR_{kind}" for kind in ("mild", "difficult", "wild")},
}


class DIV2KDataset(_Pictures):
    """Pictures at two resolutions: columns hr_image and lr_image, uint8: (bytes,) or, decoded, (H, W, 3).

    `downgrade` is 'bicubic' or 'unknown' with scale 2, 3, 4 ('bicubic' also 8), or 'mild', 'difficult' or
    'wild' with scale 4; `usage` is 'train', 'valid' or 'all'.
    """

    def __init__(
        self,
        dataset_dir,
        usage="train",
        downgrade="bicubic",
        scale=2,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        decode=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        folder = self._begin_pictures(
            dataset_dir, False if decode is None else decode, order, num_parallel_workers, cache
        )
        _text("usage", usage, ("train", "valid", "all"))
        _one_of("scale", scale, (2, 3, 4, 8))
        _text("downgrade", downgrade, ("bicubic", "unknown", "mild", "difficult", "wild"))
        place = _SCALES.get(f"{downgrade}_x{scale}")
        if place is None:
            raise ValueError(f"DIV2KDataset: there are no pictures of downgrade={downgrade!r}, scale={scale}")
        ending = f"x{scale}{downgrade[0] if downgrade in ('mild', 'difficult', 'wild') else ''}.png"
        rows = [
            (path, os.path.join(folder, f"DIV2K_{part}_{place}", os.path.basename(path)[:-4] + ending))
            for part in (("train", "valid") if usage == "all" else (usage,))
            for path in _below(folder, f"DIV2K_{part}_HR")
            if path.endswith(".png")
        ]
        for row in rows:
            _file(row[1])
        self._read(["hr_image", "lr_image"], rows, lambda row: [_picture(path, self._decode) for path in row])


# ---- Pictures and sentences --------------------------------------------------------------------------------


class FlickrDataset(_Pictures):
    """Pictures of Flickr8k or 30k: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and annotation,
    its sentences, strings."""

    def __init__(
        self,
        dataset_dir,
        annotation_file,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        decode=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        folder = self._begin_pictures(
            dataset_dir, False if decode is None else decode, order, num_parallel_workers, cache
        )
        _checks.of_type("annotation_file", annotation_file, str)
        found = {}
        for line in filter(None, _lines(_file(annotation_file))):
            key, _, sentence = line.partition("\t")
            name = key.rpartition("#")[0]
            if not name or not sentence:
                raise PipelineError(f"Invalid file, {annotation_file} has a line without a sentence: {line}")
            found.setdefault(os.path.join(folder, name), []).append(sentence)
        self._read_pictures(
            [(path, numpy.asarray(found[path])) for path in sorted(found)], ("image", "annotation")
        )


class SBUDataset(_InFolders):
    """Pictures of Flickr: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and caption, a string."""

    def _rows_in(self, folder):
        start = "SBU_captioned_photo_dataset_"
        addresses, captions = (
            _lines(os.path.join(folder, f"{start}{name}.txt")) for name in ("urls", "captions")
        )
        if len(addresses) != len(captions):
            raise PipelineError(
                f"Invalid data, {folder} has {len(addresses)} addresses and {len(captions)} captions"
            )
        for address, caption in zip(addresses, captions, strict=True):
            name = "_".join(address.split("/")[3:])
            path = os.path.join(folder, "sbu_images", name)
            if name and os.path.isfile(path):
                yield path, numpy.asarray(caption.rstrip(" "))

    def _read_pictures(self, rows, columns=("image", "caption")):
        super()._read_pictures(rows, columns)


# ---- Scenes ------------------------------------------------------------------------------------------------

_SCENES = (
    *("bedroom", "bridge", "church_outdoor", "classroom", "conference_room", "dining_room", "kitchen"),
    *("living_room", "restaurant", "tower"),
)


class LSUNDataset(_Pictures):
    """Scenes: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and label () uint32, by folders.

    `classes`: a list of kinds of scenes, None: all; `usage` is 'train', 'test', 'valid', or 'all' (None).
    """

    def __init__(
        self,
        dataset_dir,
        usage=None,
        classes=None,
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
        usage = "all" if usage is None else _text("usage", usage, ("train", "test", "valid", "all"))
        if classes is not None:
            _checks.of_type("classes", classes, list)
            for each in classes:
                _text("classes", each, _SCENES)
        places = [os.path.join(folder, "test")] if usage == "test" else []
        parts = {"train": ("train",), "valid": ("val",), "all": ("train", "val")}.get(usage, ())
        wanted = {f"{scene}_{part}" for scene in classes or _SCENES for part in parts}
        places += [
            place for place in _below(folder) if any(each in os.path.basename(place) for each in wanted)
        ]
        self._read_pictures(
            [(path, _label(number)) for number, place in enumerate(places) for path in _below(place)]
        )


# ---- Patches of pictures -----------------------------------------------------------------------------------

_TOURS = ("notredame", "yosemite", "liberty", "notredame_harris", "yosemite_harris", "liberty_harris")
_PATCH, _PATCHES_A_SIDE = 64, 16


class PhotoTourDataset(_NamedDataset):
    """Patches of photos of sights: with usage='train' (None) the column image, (64, 64, 1) uint8; with 'test'
    image1, image2 and matches () uint32, 1 where both show one place."""

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
        _text("name", name, _TOURS)
        if usage is not None:
            _text("usage", usage, ("train", "test"))
        place = _folder(os.path.join(folder, name))
        self._sheets = [path for path in _below(place) if path.endswith(".bmp")]
        if usage == "test":
            lines = [line.split() for line in _lines(os.path.join(place, "m50_100000_100000_0.txt")) if line]
            rows = [(int(one[0]), int(one[3]), _label(one[1] == one[4])) for one in lines]
            self._read(
                ["image1", "image2", "matches"],
                rows,
                lambda row: [self._patch(row[0]), self._patch(row[1]), row[2]],
            )
        else:
            count = len([line for line in _lines(os.path.join(place, "info.txt")) if line.strip()])
            self._read(["image"], range(count), lambda number: [self._patch(number)])

    def _patch(self, number):
        from PIL import Image

        sheet, at = divmod(number, _PATCHES_A_SIDE**2)
        row, column = divmod(at, _PATCHES_A_SIDE)
        if sheet >= len(self._sheets):
            raise PipelineError(
                f"PhotoTourDataset: there is no patch {number} in {len(self._sheets)} pictures"
            )
        with Image.open(self._sheets[sheet]) as image:
            left, top = column * _PATCH, row * _PATCH
            patch = image.convert("L").crop((left, top, left + _PATCH, top + _PATCH))
            return numpy.asarray(patch)[..., None]
