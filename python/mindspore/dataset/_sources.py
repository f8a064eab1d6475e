"""Where rows come from, with MindSpore's arguments."""

import muster.dataset

from mindspore import _device, _names
from mindspore.dataset._dataset import Dataset, shuffle_from


class _FolderDataset(Dataset):
    """Files in a folder. Workers read ahead by themselves: num_parallel_workers changes nothing here."""

    _source = None

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
        _names.refuse(f"mindspore.dataset.{type(self).__name__}", cache=(cache, None))
        super().__init__(
            self._source(
                dataset_dir,
                usage,
                num_samples=num_samples,
                shuffle=shuffle_from(f"mindspore.dataset.{type(self).__name__}", shuffle),
                sampler=sampler,
                num_shards=num_shards,
                shard_id=shard_id,
            )
        )


class MnistDataset(_FolderDataset):
    """Handwritten digits from IDX files: columns image (28, 28, 1) uint8 and label () uint32."""

    _source = muster.dataset.MnistDataset


class FashionMnistDataset(_FolderDataset):
    """Pictures of clothes from IDX files: columns image (28, 28, 1) uint8 and label () uint32."""

    _source = muster.dataset.FashionMnistDataset


class Cifar10Dataset(_FolderDataset):
    """Photographs in ten classes: columns image (32, 32, 3) uint8 and label () uint32."""

    _source = muster.dataset.Cifar10Dataset


class Cifar100Dataset(_FolderDataset):
    """Photographs in a hundred classes: columns image (32, 32, 3) uint8, coarse_label, fine_label uint32."""

    _source = muster.dataset.Cifar100Dataset


class ImageFolderDataset(Dataset):
    """Pictures in folders, one folder a class: columns image, uint8, and label () int32."""

    def __init__(
        self,
        dataset_dir,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        extensions=None,
        class_indexing=None,
        decode=False,
        num_shards=None,
        shard_id=None,
        cache=None,
        decrypt=None,
    ):
        _names.refuse("mindspore.dataset.ImageFolderDataset", cache=(cache, None), decrypt=(decrypt, None))
        super().__init__(
            muster.dataset.ImageFolderDataset(
                dataset_dir,
                num_samples=num_samples,
                shuffle=shuffle_from(f"mindspore.dataset.{type(self).__name__}", shuffle),
                sampler=sampler,
                extensions=extensions,
                class_indexing=class_indexing,
                decode=decode,
                num_shards=num_shards,
                shard_id=shard_id,
            )
        )


class NumpySlicesDataset(Dataset):
    """Rows of arrays."""

    def __init__(
        self,
        data,
        column_names=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
    ):
        super().__init__(
            muster.dataset.NumpySlicesDataset(
                data,
                column_names,
                num_samples=num_samples,
                shuffle=shuffle_from(f"mindspore.dataset.{type(self).__name__}", shuffle),
                sampler=sampler,
                num_shards=num_shards,
                shard_id=shard_id,
            )
        )


class GeneratorDataset(Dataset):
    """Rows that Python code makes."""

    def __init__(
        self,
        source,
        column_names=None,
        column_types=None,
        schema=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        python_multiprocessing=True,
        max_rowsize=None,
        batch_sampler=None,
        collate_fn=None,
    ):
        _names.refuse(
            "mindspore.dataset.GeneratorDataset",
            schema=(schema, None),
            batch_sampler=(batch_sampler, None),
            collate_fn=(collate_fn, None),
        )
        several = bool(python_multiprocessing) and (num_parallel_workers or 1) > 1
        if several and not (hasattr(source, "__getitem__") and hasattr(source, "__len__")):
            _device.note_once(
                "note: num_parallel_workers has no effect: the rows of an iterator or a function come one "
                "after the other, on one thread"
            )
            several = False
        super().__init__(
            muster.dataset.GeneratorDataset(
                source,
                column_names,
                column_types,
                num_samples=num_samples,
                shuffle=shuffle_from(f"mindspore.dataset.{type(self).__name__}", shuffle),
                sampler=sampler,
                num_shards=num_shards,
                shard_id=shard_id,
                num_parallel_workers=(num_parallel_workers or 1) if several else 1,
                python_multiprocessing=several,
                max_rowsize=max_rowsize,
            )
        )
