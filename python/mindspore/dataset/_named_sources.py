"""Sources of well-known data sets that are read in Python: their files as their authors publish them."""

import json
import os
import xml.etree.ElementTree
from typing import NamedTuple

from mindspore import _names
from mindspore._lazy import numpy
from mindspore.dataset import _cache, _checks
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._dataset import workers
from mindspore.dataset._files import _ReadDataset


class _Order(NamedTuple):
    """What chooses among the rows."""

    sampler: object
    shuffle: object
    num_samples: object
    num_shards: object
    shard_id: object


class _NamedDataset(_ReadDataset):
    """A source of one data set; see subclasses."""

    def _start(self, order, num_parallel_workers, refused):
        _names.refuse(f"mindspore.dataset.{type(self).__name__}", **refused)
        workers(num_parallel_workers)
        self._order = order

    def _read(self, columns, rows, values):
        """`values(row)` gives the values of one of `rows`."""
        if not rows:
            raise PipelineError(f"{type(self).__name__}: no data found in the files that were given")
        self._begin(columns, len(rows), lambda number: values(rows[number]), *self._order)

    def _read_files(self, columns, files):
        """The rows of each file; those of several come in turn, where there are no shards."""
        if self._order.num_shards is None:
            from mindspore.dataset._small_sources import _in_turn

            self._read(columns, _in_turn(files), list)
            return
        rows = [row for file in files for row in file]
        if not rows:
            raise PipelineError(f"{type(self).__name__}: no data found in the files that were given")
        counts = [len(file) for file in files]
        self._begin(columns, len(rows), lambda number: list(rows[number]), *self._order, files=counts)


def _folder(path):
    _checks.of_type("dataset_dir", path, str)
    if not os.path.isdir(path):
        raise ValueError(f"The folder {path} does not exist or is not a directory or permission denied!")
    return path


def _file(path):
    if not os.path.isfile(path):
        raise ValueError(f"The file {path} does not exist or permission denied!")
    return path


def _below(*parts):
    """The paths of what is in a folder, in order."""
    folder = os.path.join(*parts)
    return [os.path.join(folder, name) for name in sorted(os.listdir(_folder(folder)))]


def _read_bytes(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise PipelineError(f"Failed to open file: {path} ({error.strerror})") from None


def _lines(path):
    return _read_bytes(path).decode().splitlines()


def _picture(path, decode):
    """The file's bytes, or its pixels as (H, W, 3) uint8."""
    encoded = numpy.frombuffer(_read_bytes(path), numpy.uint8)
    if not decode:
        return encoded
    from mindspore.dataset import vision

    return vision.Decode()(encoded)


# ---- COCO --------------------------------------------------------------------------------------------------


def _of_annotation(path, annotation, name):
    try:
        return annotation[name]
    except (KeyError, TypeError):
        raise PipelineError(
            f"Invalid annotation, the attribute of '{name}' is missing in annotation file: {path}."
        ) from None


def _padded(lists):
    """Lists of numbers as one float32 array; -1 stands where one is shorter."""
    made = numpy.full((len(lists), max(map(len, lists))), -1, numpy.float32)
    for row, numbers in zip(made, lists, strict=True):
        row[: len(numbers)] = numbers
    return made


def _column_of(values):
    return numpy.asarray(values, numpy.uint32).reshape(-1, 1)


def _outlines(path, found):
    """The corners of each polygon of the objects; of a crowd the counts of its run lengths."""
    lists = []
    for annotation in found:
        given = _of_annotation(path, annotation, "segmentation")
        lists += [_of_annotation(path, given, "counts")] if annotation.get("iscrowd", 0) else given
    return _padded(lists)


def _boxes(path, found):
    return numpy.asarray([_of_annotation(path, each, "bbox") for each in found], numpy.float32)


def _categories(path, found):
    return _column_of([_of_annotation(path, each, "category_id") for each in found])


def _crowds(path, found):
    return _column_of([each.get("iscrowd", 0) for each in found])


# By task: the columns behind the image, and what makes them of the annotations of one image.
_COCO = {
    "Detection": {"bbox": _boxes, "category_id": _categories, "iscrowd": _crowds},
    "Stuff": {
        "segmentation": _outlines,
        "iscrowd": _crowds,
    },
    "Keypoint": {
        "keypoints": lambda path, found: _padded([_of_annotation(path, each, "keypoints") for each in found]),
        "num_keypoints": lambda path, found: _column_of(
            [_of_annotation(path, each, "num_keypoints") for each in found]
        ),
    },
    "Panoptic": {
        "bbox": _boxes,
        "category_id": _categories,
        "iscrowd": _crowds,
        "area": lambda path, found: _column_of([_of_annotation(path, each, "area") for each in found]),
    },
    "Captioning": {
        "captions": lambda path, found: numpy.asarray(
            [[_of_annotation(path, each, "caption")] for each in found]
        )
    },
}


def _coco_annotations(path, content, task):
    """File names and annotations of the pictures that have any, in the order of 'images'."""
    names = {
        _of_annotation(path, image, "id"): _of_annotation(path, image, "file_name")
        for image in _of_annotation(path, content, "images")
    }
    found = {image: [] for image in names}
    for annotation in _of_annotation(path, content, "annotations"):
        image = _of_annotation(path, annotation, "image_id")
        if image not in names:
            raise PipelineError(f"Invalid annotation, image_id {image} is no id of 'images' in: {path}.")
        found[image] += (
            _of_annotation(path, annotation, "segments_info") if task == "Panoptic" else [annotation]
        )
    return [(names[image], annotations) for image, annotations in found.items() if annotations]


class CocoDataset(_NamedDataset):
    """Pictures of COCO 2017 with what its annotations say of them.

    Columns: image, uint8: (bytes,) or, decoded, (H, W, 3); behind it by `task`, for n objects of the picture:
    Detection bbox (n, 4) float32 (x, y, width, height), category_id and iscrowd (n, 1) uint32; Stuff
    segmentation (polygons, longest) float32, shorter ones filled up with -1, and iscrowd; Keypoint keypoints
    (n, longest) float32 and num_keypoints (n, 1) uint32; Panoptic those of Detection and area (n, 1) uint32;
    Captioning captions (n, 1), strings. Pictures without annotations do not come.
    """

    def __init__(
        self,
        dataset_dir,
        annotation_file,
        task="Detection",
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        decode=False,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
        extra_metadata=False,
        decrypt=None,
    ):
        refused = {
            **_cache.refused(cache),
            "extra_metadata": (extra_metadata, False),
            "decrypt": (decrypt, None),
        }
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, refused)
        folder, path = _folder(dataset_dir), _file(annotation_file)
        if task not in _COCO:
            raise ValueError(f"Invalid task type: {task}; there are {', '.join(_COCO)}.")
        _checks.of_type("decode", decode, bool)
        try:
            content = json.loads(_read_bytes(path))
        except ValueError as error:
            raise PipelineError(f"Invalid annotation file, {path} load failed: {error}") from None
        self._task, self._content, self._path = task, content, path
        columns = _COCO[task]
        rows = [
            (name, [make(path, found) for make in columns.values()])
            for name, found in _coco_annotations(path, content, task)
        ]
        self._read(
            ["image", *columns],
            rows,
            lambda row: [_picture(os.path.join(folder, row[0]), decode), *row[1]],
        )

    def get_class_indexing(self):
        """The number of each category, by name; with Panoptic [number, whether it is a thing]."""
        if self._task not in ("Detection", "Panoptic"):
            raise NotImplementedError("Only 'Detection' and 'Panoptic' support get_class_indexing.")
        members = ("id", "isthing") if self._task == "Panoptic" else ("id",)
        return {
            _of_annotation(self._path, each, "name"): [
                _of_annotation(self._path, each, name) for name in members
            ]
            for each in _of_annotation(self._path, self._content, "categories")
        }


# ---- VOC ---------------------------------------------------------------------------------------------------


def _text(path, element, name, otherwise=None):
    found = element.find(name)
    if found is not None:
        return found.text
    if otherwise is None:
        raise PipelineError(f"Invalid xml, the node of {name} is missing in {path}.")
    return otherwise


def _box(path, element):
    box = element.find("bndbox")
    if box is None:
        raise PipelineError(f"Invalid xml, the node of bndbox is missing in {path}.")
    left, top, right, bottom = (float(_text(path, box, name)) for name in ("xmin", "ymin", "xmax", "ymax"))
    if not (0 < left < right and 0 < top < bottom):
        raise PipelineError(
            f"Invalid bndbox, the coordinate of bndbox in {path} should be greater than 0 and max above min, "
            f"but got [{left}, {top}, {right}, {bottom}]."
        )
    return [left, top, right - left, bottom - top]


class _Object(NamedTuple):
    name: str
    box: list
    difficult: int
    truncated: int


def _voc_objects(path):
    try:
        root = xml.etree.ElementTree.parse(_file(path)).getroot()
    except xml.etree.ElementTree.ParseError as error:
        raise PipelineError(f"Invalid xml, failed to parse {path}: {error}") from None
    found = root.findall("object")
    if not found:
        raise PipelineError(f"Invalid xml, the node of object is missing in {path}.")
    return [
        _Object(
            _text(path, each, "name"),
            _box(path, each),
            int(_text(path, each, "difficult", "0")),
            int(_text(path, each, "truncated", "0")),
        )
        for each in found
    ]


class VOCDataset(_NamedDataset):
    """Pictures of Pascal VOC.

    Columns: image, uint8: (bytes,) or, decoded, (H, W, 3); behind it with task='Segmentation' target, as
    image, and with task='Detection' for n objects bbox (n, 4) float32 (x, y, width, height), label, difficult
    and truncate (n, 1) uint32. With `class_indexing` objects of other classes do not come.
    """

    def __init__(
        self,
        dataset_dir,
        task="Segmentation",
        usage="train",
        class_indexing=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        decode=False,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
        extra_metadata=False,
        decrypt=None,
    ):
        refused = {
            **_cache.refused(cache),
            "extra_metadata": (extra_metadata, False),
            "decrypt": (decrypt, None),
        }
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, refused)
        folder = _folder(dataset_dir)
        _checks.of_type("usage", usage, str)
        _checks.of_type("decode", decode, bool)
        if task not in ("Segmentation", "Detection"):
            raise ValueError(f"Invalid task : {task}; there are 'Segmentation' and 'Detection'.")
        if task == "Segmentation" and class_indexing is not None:
            raise ValueError("class_indexing is not supported in Segmentation task.")
        _checks.of_type("class_indexing", class_indexing, dict, optional=True)
        part = "Main" if task == "Detection" else task
        listed = _file(os.path.join(folder, "ImageSets", part, usage + ".txt"))
        names = [line.split()[0] for line in _lines(listed) if line.strip()]

        def picture(name):
            return _picture(os.path.join(folder, "JPEGImages", name + ".jpg"), decode)

        if task == "Detection":
            self._begin_detection(folder, names, class_indexing, picture)
        else:
            targets = os.path.join(folder, "SegmentationClass")
            self._read(
                ["image", "target"],
                names,
                lambda name: [picture(name), _picture(os.path.join(targets, name + ".png"), decode)],
            )

    def _begin_detection(self, folder, names, class_indexing, picture):
        found = {name: _voc_objects(os.path.join(folder, "Annotations", name + ".xml")) for name in names}
        classes = sorted({each.name for objects in found.values() for each in objects})
        numbers = class_indexing or {name: number for number, name in enumerate(classes)}
        kept = {name: [each for each in objects if each.name in numbers] for name, objects in found.items()}
        self._class_indexing = lambda: numbers

        def values(name):
            objects = kept[name]
            return [
                picture(name),
                numpy.asarray([each.box for each in objects], numpy.float32),
                _column_of([numbers[each.name] for each in objects]),
                _column_of([each.difficult for each in objects]),
                _column_of([each.truncated for each in objects]),
            ]

        columns = ["image", "bbox", "label", "difficult", "truncate"]
        self._read(columns, [name for name in names if kept[name]], values)

    def get_class_indexing(self):
        """The number of each class, by name."""
        if self._class_indexing is None:
            raise NotImplementedError("Only 'Detection' support get_class_indexing.")
        return super().get_class_indexing()


# ---- Pictures in lists -------------------------------------------------------------------------------------


class CelebADataset(_NamedDataset):
    """Faces: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and attr (attributes,) uint32, 0 or 1."""

    def __init__(
        self,
        dataset_dir,
        num_parallel_workers=None,
        shuffle=None,
        usage="all",
        sampler=None,
        decode=False,
        extensions=None,
        num_samples=None,
        num_shards=None,
        shard_id=None,
        cache=None,
        decrypt=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, {**_cache.refused(cache), "decrypt": (decrypt, None)})
        folder = _folder(dataset_dir)
        parts = {"all": None, "train": "0", "valid": "1", "test": "2"}
        if usage not in parts:
            raise ValueError(f"usage should be 'all', 'train', 'valid' or 'test', not {usage!r}.")
        _checks.of_type("decode", decode, bool)
        endings = tuple(extensions or ())
        lines = _lines(os.path.join(folder, "list_attr_celeba.txt"))[2:]
        rows = [line.split() for line in lines if line.strip()]
        if parts[usage] is not None:
            partition = dict(
                line.split()[:2]
                for line in _lines(os.path.join(folder, "list_eval_partition.txt"))
                if line.strip()
            )
            rows = [row for row in rows if partition.get(row[0]) == parts[usage]]
        if endings:
            rows = [row for row in rows if row[0].endswith(endings)]
        self._read(
            ["image", "attr"],
            rows,
            lambda row: [
                _picture(os.path.join(folder, row[0]), decode),
                (numpy.asarray(row[1:], numpy.int32) > 0).astype(numpy.uint32),
            ],
        )


class ManifestDataset(_NamedDataset):
    """Pictures that a manifest lists: columns image, uint8: (bytes,) or, decoded, (H, W, 3), and label int32.

    Each line is JSON: {"source": path, "usage": "train", "annotation": [{"name": class}]}. A line whose class
    `class_indexing` does not name is left out.
    """

    def __init__(
        self,
        dataset_file,
        usage="train",
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        class_indexing=None,
        decode=False,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        order = _Order(sampler, shuffle, num_samples, num_shards, shard_id)
        self._start(order, num_parallel_workers, _cache.refused(cache))
        path = _file(dataset_file)
        if usage not in ("train", "eval", "inference"):
            raise PipelineError(f"ManifestDataset: {usage} does not match any of train, eval, inference")
        _checks.of_type("decode", decode, bool)
        _checks.of_type("class_indexing", class_indexing, dict, optional=True)
        rows = [
            (str(line["source"]), line["annotation"][0]["name"])
            for line in _json_lines(path)
            if line.get("usage") == usage and line.get("annotation")
        ]
        classes = sorted({label for _, label in rows})
        numbers = class_indexing or {name: number for number, name in enumerate(classes)}
        self._class_indexing = lambda: numbers
        self._read(
            ["image", "label"],
            [row for row in rows if row[1] in numbers],
            lambda row: [_picture(row[0], decode), numpy.asarray(numbers[row[1]], numpy.int32)],
        )


def _json_lines(path):
    try:
        return [json.loads(line) for line in _lines(path) if line.strip()]
    except ValueError as error:
        raise PipelineError(f"Invalid file, failed to parse a line of {path} as JSON: {error}") from None
