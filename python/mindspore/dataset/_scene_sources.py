"""Sources of well-known data sets of streets and faces that are read in Python."""

import json
import os

from mindspore._lazy import numpy
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._named_sources import _below, _lines, _Order, _picture
from mindspore.dataset._picture_sources import _Pictures
from mindspore.dataset._small_sources import _one_of

_TASKS = {
    "instance": "instanceIds.png",
    "semantic": "labelIds.png",
    "polygon": "polygons.json",
    "color": "color.png",
}


class CityscapesDataset(_Pictures):
    """Streets: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and task, a picture likewise.

    `task` is 'instance', 'semantic' or 'color', or 'polygon', whose column is JSON; `quality_mode`
    is 'fine' or 'coarse'; `usage` 'train', 'val', 'all', and 'test' (fine) or 'train_extra' (coarse).
    """

    def __init__(
        self,
        dataset_dir,
        usage="train",
        quality_mode="fine",
        task="instance",
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
        _one_of("task", task, tuple(_TASKS))
        _one_of("quality_mode", quality_mode, ("fine", "coarse"))
        parts = ("train", "test", "val") if quality_mode == "fine" else ("train", "train_extra", "val")
        _one_of("usage", usage, (*parts, "all"))
        of_task = "gtFine" if quality_mode == "fine" else "gtCoarse"
        rows = [
            self._pair(folder, path, of_task, _TASKS[task])
            for part in (parts if usage == "all" else (usage,))
            for city in _below(folder, "leftImg8bit", part)
            for path in _below(city)
        ]
        values = self._outlined if task == "polygon" else self._pictured
        self._read(["image", "task"], rows, values)

    @staticmethod
    def _pair(folder, path, of_task, ending):
        """The picture, and its file of the task."""
        place, name = os.path.split(path)
        stem = name.rpartition("_leftImg8bit")[0]
        inner = os.path.relpath(place, os.path.join(folder, "leftImg8bit"))
        other = os.path.join(folder, of_task, inner, f"{stem}_{of_task}_{ending}")
        if not os.path.isfile(other):
            raise PipelineError(f"CityscapesDataset: {path} has no file {other}")
        return path, other

    def _pictured(self, row):
        return [_picture(path, self._decode) for path in row]

    def _outlined(self, row):
        with open(row[1], encoding="utf-8") as file:
            outlines = json.load(file)
        text = json.dumps(outlines, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        return [_picture(row[0], self._decode), numpy.asarray(text)]


_KITTI_LABELS = ("Car", "Cyclist", "DontCare", "Misc", "Pedestrian", "Person_sitting", "Tram", "Truck", "Van")
_KITTI_COLUMNS = ("label", "truncated", "occluded", "alpha", "bbox", "dimensions", "location", "rotation_y")


class KITTIDataset(_Pictures):
    """Streets from a car: columns image, uint8: (bytes,) or, decoded, (H, W, 3); with usage='train' (None)
    of the n objects label (n, 1) uint32, truncated (n, 1) float32, occluded (n, 1) uint32, alpha (n, 1), bbox
    (n, 4), dimensions (n, 3), location (n, 3) and rotation_y (n, 1) float32.
    """

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
        _one_of("usage", usage, (None, "train", "test"))
        if usage == "test":
            paths = _below(folder, "data_object_image_2", "testing", "image_2")
            self._read(["image"], paths, lambda path: [_picture(path, self._decode)])
            return
        labels = os.path.join(folder, "data_object_label_2", "training", "label_2")
        self._read(
            ["image", *_KITTI_COLUMNS],
            _below(folder, "data_object_image_2", "training", "image_2"),
            lambda path: [_picture(path, self._decode), *_objects_of(path, labels)],
        )


def _objects_of(picture, labels):
    """The columns of what a picture shows."""
    stem = os.path.splitext(os.path.basename(picture))[0]
    path = os.path.join(labels, f"{stem}.txt")
    objects = [line.split() for line in _lines(path) if line.strip()]
    if any(len(each) != 15 or each[0] not in _KITTI_LABELS for each in objects):
        raise PipelineError(f"Invalid annotation: {path} has a line that is no object of KITTI")
    numbers = numpy.asarray([each[1:] for each in objects], numpy.float32).reshape(-1, 14)
    kinds = numpy.asarray([[_KITTI_LABELS.index(each[0])] for each in objects], numpy.uint32)
    occluded = numbers[:, 1:2].astype(numpy.uint32)
    apart = (numbers[:, at:end] for at, end in ((2, 3), (3, 7), (7, 10), (10, 13), (13, 14)))
    return [kinds.reshape(-1, 1), numbers[:, :1], occluded, *apart]


_FACE_COLUMNS = ("bbox", "blur", "expression", "illumination", "occlusion", "pose", "invalid")
_FACE_LISTS = {
    "train": ("wider_face_train_bbx_gt.txt", "WIDER_train"),
    "valid": ("wider_face_val_bbx_gt.txt", "WIDER_val"),
    "test": ("wider_face_test_filelist.txt", "WIDER_test"),
}


class WIDERFaceDataset(_Pictures):
    """Faces: columns image, uint8: (bytes,) or, decoded, (H, W, 3); but for usage='test', of n faces bbox
    (n, 4), blur, expression, illumination, occlusion, pose and invalid (n,), int32.

    `usage` is 'train', 'valid', 'test' or 'all' (None), which is train and valid.
    """

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
        _one_of("usage", usage, (None, "train", "valid", "test", "all"))
        parts = ("train", "valid") if usage in (None, "all") else (usage,)
        rows = [row for part in parts for row in _pictures_of_faces(folder, part)]
        columns = [] if usage == "test" else _FACE_COLUMNS
        self._read(["image", *columns], rows, lambda row: [_picture(row[0], self._decode), *row[1:]])


def _pictures_of_faces(folder, part):
    """(path, columns ...) of each picture of a list."""
    listed, place = _FACE_LISTS[part]
    path = os.path.join(folder, "wider_face_split", listed)
    lines = iter(line.strip() for line in _lines(path) if line.strip())
    for name in lines:
        picture = os.path.join(folder, place, "images", name)
        if part == "test":
            yield (picture,)
            continue
        count = next(lines, "")
        if not count.isdigit():
            raise PipelineError(
                f"Invalid annotation: {path} says {count!r} where a number of faces is wanted"
            )
        faces = [next(lines, "").split() for _ in range(max(int(count), 1))]  # no face: one line of zeros
        if any(len(face) != 10 for face in faces):
            raise PipelineError(f"Invalid annotation: {path} has a face of {name} without its ten numbers")
        numbers = numpy.asarray(faces, numpy.int32)
        yield (picture, numbers[:, :4], *(numbers[:, at] for at in range(4, 10)))


__all__ = ["CityscapesDataset", "KITTIDataset", "WIDERFaceDataset"]
