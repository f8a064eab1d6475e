"""Sources of well-known data sets of pictures whose labels stand in MAT files."""

import os

from mindspore._lazy import numpy
from mindspore.dataset import _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._named_sources import _below, _file, _folder, _lines, _Order, _picture
from mindspore.dataset._picture_sources import _mat_variables, _Pictures
from mindspore.dataset._small_sources import _one_of


def _text(name, value, allowed):
    _checks.of_type(name, value, str)
    return _one_of(name, value, allowed)


_CALTECH_OUTLINES = {
    "Faces": "Faces_2",
    "Faces_easy": "Faces_3",
    "Motorbikes": "Motorbikes_16",
    "airplanes": "Airplanes_Side_2",
}


class Caltech101Dataset(_Pictures):
    """Objects: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and category () int64 with target_type
    'category' (None), annotation (2, points) float64, an outline, with 'annotation', both with 'all'."""

    def __init__(
        self,
        dataset_dir,
        target_type=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        decode=False,
        sampler=None,
        num_shards=None,
        shard_id=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        folder = self._begin_pictures(dataset_dir, decode, order, num_parallel_workers, None)
        kind = "category" if target_type is None else target_type
        _text("target_type", kind, ("category", "annotation", "all"))
        pictures = os.path.join(folder, "101_ObjectCategories")
        names = [os.path.basename(path) for path in _below(pictures) if os.path.isdir(path)]
        names = [name for name in names if name != "BACKGROUND_Google"]
        self._class_indexing = {name: number for number, name in enumerate(names)}
        rows = [
            (os.path.join(pictures, name), os.path.join(folder, "Annotations"), number, at)
            for number, name in enumerate(names)
            for at in range(1, len(_below(pictures, name)) + 1)
        ]
        columns = {"category": ["category"], "annotation": ["annotation"], "all": ["category", "annotation"]}
        self._read(["image", *columns[kind]], rows, lambda row: self._values(columns[kind], *row))

    def _values(self, columns, place, outlines, number, at):
        values = [_picture(os.path.join(place, f"image_{at:04}.jpg"), self._decode)]
        if "category" in columns:
            values.append(numpy.asarray(number, numpy.int64))
        if "annotation" in columns:
            name = os.path.basename(place)
            path = os.path.join(outlines, _CALTECH_OUTLINES.get(name, name), f"annotation_{at:04}.mat")
            values.append(numpy.ascontiguousarray(_mat_variables(path)["obj_contour"]))
        return values


_FLOWER_PARTS = {
    "train": ("trnid",),
    "test": ("tstid",),
    "valid": ("valid",),
    "all": ("trnid", "tstid", "valid"),
}


class Flowers102Dataset(_Pictures):
    """Flowers: columns image, uint8: (bytes,) or, decoded, (H, W, 3), with task='Segmentation' a picture
    segmentation likewise, and label () uint32."""

    def __init__(
        self,
        dataset_dir,
        task="Classification",
        usage="all",
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        decode=False,
        sampler=None,
        num_shards=None,
        shard_id=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        folder = self._begin_pictures(dataset_dir, bool(decode), order, num_parallel_workers, None)
        task = "Classification" if task is None else task
        _text("task", task, ("Classification", "Segmentation"))
        usage = "all" if usage is None else usage
        _text("usage", usage, tuple(_FLOWER_PARTS))
        labels = _mat_variables(_file(os.path.join(folder, "imagelabels.mat")))["labels"].ravel()
        parts = _mat_variables(_file(os.path.join(folder, "setid.mat")))
        numbers = numpy.concatenate([parts[part].ravel() for part in _FLOWER_PARTS[usage]]).astype(int)
        places = [("jpg", "image")] + ([("segmim", "segmim")] if task == "Segmentation" else [])
        rows = [
            (
                *(os.path.join(folder, place, f"{start}_{number:05}.jpg") for place, start in places),
                numpy.asarray(labels[number - 1] - 1, numpy.uint32),
            )
            for number in numbers
        ]
        columns = ("image", "segmentation", "label") if task == "Segmentation" else ("image", "label")
        self._read_pictures(rows, columns)


_BOUNDARY_PARTS = ("train", "val", "train_noval", "all")
_CLASSES = 20


class SBDataset(_Pictures):
    """Pictures with outlines: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and task, uint8: (20, H,
    W) the boundaries of each class, or (H, W) with task='Segmentation'. Its files are read by scipy."""

    def __init__(
        self,
        dataset_dir,
        task="Boundaries",
        usage="all",
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        decode=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        folder = self._begin_pictures(
            _folder(dataset_dir), False if decode is None else decode, order, num_parallel_workers, None
        )
        self._task = _text("task", task, ("Boundaries", "Segmentation"))
        _text("usage", usage, _BOUNDARY_PARTS)
        listed = [
            os.path.join(folder, f"{part}.txt") for part in (("train", "val") if usage == "all" else (usage,))
        ]
        for path in listed:
            if not os.path.isfile(path):
                raise FileNotFoundError(f"SBDataset: {path} not found")
        names = [line.strip() for path in listed for line in _lines(path) if line.strip()]
        rows = [
            (os.path.join(folder, "img", f"{name}.jpg"), os.path.join(folder, "cls", f"{name}.mat"))
            for name in names
        ]
        self._read(
            ["image", "task"], rows, lambda row: [_picture(row[0], self._decode), self._outlines(row[1])]
        )

    def _outlines(self, path):
        try:
            from scipy.io import loadmat
        except ImportError:
            raise PipelineError(f"SBDataset: {path} is read by scipy, which is not installed") from None
        found = loadmat(path)["GTcls"][0][self._task][0]
        if self._task == "Segmentation":
            return numpy.asarray(found)
        return numpy.stack([found[at][0].toarray() for at in range(_CLASSES)])
