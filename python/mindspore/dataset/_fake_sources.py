"""mindspore.dataset: rows that are made, for trying a pipeline without files."""

import numpy

from mindspore import _names
from mindspore.dataset import _cache, _checks
from mindspore.dataset._sources import GeneratorDataset
from mindspore.dataset._types import Schema


class _Pictures:
    """Random pictures and classes: the same ones for the same number and seed."""

    def __init__(self, count, size, classes, seed):
        self._count, self._size, self._classes, self._seed = count, size, classes, seed

    def __len__(self):
        return self._count

    def __getitem__(self, at):
        drawn = numpy.random.RandomState((self._seed + int(at)) % 2**32)
        image = drawn.randint(0, 256, self._size).astype(numpy.uint8)
        return image, numpy.asarray(drawn.randint(self._classes), numpy.uint32)


class FakeImageDataset(GeneratorDataset):
    """Random pictures: columns image (H, W, C) uint8 and label () uint32.

    Args:
        num_images: How many there are.
        image_size: (H, W, C).
        num_classes: Labels are below it.
        base_seed: Another one makes other pictures.
        num_samples: How many rows come; None: all.
        num_parallel_workers: Changes nothing but the speed.
        shuffle: Whether rows come in random order; None: they do, unless there is a sampler.
        sampler: Which rows come.
        num_shards: How many parts the rows are divided into.
        shard_id: Which of them comes.
        cache: None.
    """

    def __init__(
        self,
        num_images=1000,
        image_size=(224, 224, 3),
        num_classes=10,
        base_seed=0,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        _names.refuse("mindspore.dataset.FakeImageDataset", **_cache.refused(cache))
        for name, value in (("num_images", num_images), ("num_classes", num_classes)):
            _checks.whole(name, value, 1)
        _checks.whole("base_seed", base_seed, 0)
        if not isinstance(image_size, list | tuple) or len(image_size) != 3:
            raise ValueError(f"image_size is (height, width, channels), not {image_size!r}")
        for size in image_size:
            _checks.whole("image_size", size, 1)
        super().__init__(
            _Pictures(num_images, tuple(image_size), num_classes, base_seed),
            ["image", "label"],
            num_parallel_workers=num_parallel_workers,
            shuffle=shuffle,
            sampler=sampler,
            num_samples=num_samples,
            num_shards=num_shards,
            shard_id=shard_id,
        )


class _RandomRows:
    """Random values of columns: the same ones for the same row."""

    _DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float32")

    def __init__(self, count, columns):
        self._count, self._columns = count, columns

    @classmethod
    def of_no_schema(cls, names):
        """Columns as drawn once: (dtype, shape) of each."""
        drawn = numpy.random.RandomState(0)
        return [(drawn.choice(cls._DTYPES), drawn.randint(1, 5, drawn.randint(1, 4)).tolist()) for _ in names]

    def __len__(self):
        return self._count

    def __getitem__(self, at):
        drawn = numpy.random.RandomState(int(at) % 2**32)
        return tuple(self._value(drawn, numpy.dtype(kind), shape) for kind, shape in self._columns)

    @staticmethod
    def _value(drawn, kind, shape):
        if kind.kind == "f":
            return drawn.standard_normal(shape).astype(kind) if shape else kind.type(drawn.standard_normal())
        if kind.kind == "b":
            return numpy.asarray(drawn.randint(0, 2, shape), kind)
        bytes_of = drawn.bytes(int(numpy.prod(shape)) * kind.itemsize)
        return numpy.frombuffer(bytes_of, kind).reshape(shape)


class RandomDataset(GeneratorDataset):
    """Rows of random numbers, in columns of a schema.

    Args:
        total_rows: How many there are; None: as the schema says.
        schema: A Schema, or the path of one in JSON; None: columns of drawn types and shapes.
        columns_list: Names of the columns without a schema, or which of its columns come.
        num_samples: How many rows come; None: all.
        num_parallel_workers: Changes nothing but the speed.
        cache: None.
        shuffle: Whether rows come in random order; None: they do.
        num_shards: How many parts the rows are divided into.
        shard_id: Which of them comes.

    Raises:
        TypeError: An argument is of another type.
        ValueError: There are no rows, or the schema has no such column.
    """

    def __init__(
        self,
        total_rows=None,
        schema=None,
        columns_list=None,
        num_samples=None,
        num_parallel_workers=None,
        cache=None,
        shuffle=None,
        num_shards=None,
        shard_id=None,
    ):
        _names.refuse("mindspore.dataset.RandomDataset", **_cache.refused(cache))
        _checks.of_type("columns_list", columns_list, list, optional=True)
        if total_rows is not None:
            _checks.whole("total_rows", total_rows, 0)
        if isinstance(schema, str):
            schema = Schema(schema)
        _checks.of_type("schema", schema, Schema, optional=True)
        rows = total_rows or (schema.num_rows if schema else 0) or num_samples or 0
        if not rows:
            raise ValueError("RandomDataset: total_rows says how many rows there are, or the schema does")
        names, columns = self._columns_of(schema, columns_list)
        super().__init__(
            _RandomRows(rows, columns),
            names,
            num_parallel_workers=num_parallel_workers,
            shuffle=shuffle,
            num_samples=num_samples,
            num_shards=num_shards,
            shard_id=shard_id,
        )

    @staticmethod
    def _columns_of(schema, columns_list):
        if schema is None:
            names = columns_list or ["c0"]
            return names, _RandomRows.of_no_schema(names)
        by_name = {each["name"]: (each["type"], each.get("shape", [1])) for each in schema.columns}
        names = columns_list or list(by_name)
        for name in names:
            if name not in by_name:
                raise ValueError(f"RandomDataset: the schema has {list(by_name)}, no column {name!r}")
        return names, [by_name[name] for name in names]


__all__ = ["FakeImageDataset", "RandomDataset"]
