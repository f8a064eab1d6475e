"""mindspore.dataset: pictures that are made, for trying a pipeline without files."""

import numpy

from mindspore import _names
from mindspore.dataset import _cache, _checks
from mindspore.dataset._sources import GeneratorDataset


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


__all__ = ["FakeImageDataset"]
