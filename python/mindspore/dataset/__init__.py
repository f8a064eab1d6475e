"""mindspore.dataset: pipelines with MindSpore's arguments."""

import muster
from mindspore import _device, _names
from mindspore.dataset import transforms, vision


def _refuse(call: str, **arguments) -> None:
    """Arguments that would change the result and are not provided."""
    for name, (value, neutral) in arguments.items():
        if value is not neutral:
            raise NotImplementedError(_names.sentence(f"{call}({name}={value!r})"))


def _note_workers(num_parallel_workers) -> None:
    if num_parallel_workers is not None:
        _device.note_once("note: num_parallel_workers has no effect: a pipeline runs ahead on one thread")


class Dataset:
    """A muster.dataset.Dataset; every method returns a new one."""

    def __init__(self, pipeline):
        self._pipeline = pipeline

    def map(
        self,
        operations,
        input_columns=None,
        output_columns=None,
        num_parallel_workers=None,
        python_multiprocessing=False,
        cache=None,
        callbacks=None,
    ):
        """Applies operations to columns."""
        _refuse(
            "mindspore.dataset.Dataset.map",
            output_columns=(output_columns, None),
            python_multiprocessing=(python_multiprocessing, False),
            cache=(cache, None),
            callbacks=(callbacks, None),
        )
        _note_workers(num_parallel_workers)
        return Dataset(self._pipeline.map(operations, input_columns))

    def batch(self, batch_size, drop_remainder=False, num_parallel_workers=None):
        """Stacks rows; the last batch is smaller unless it is dropped."""
        _note_workers(num_parallel_workers)
        return Dataset(self._pipeline.batch(batch_size, drop_remainder))

    def repeat(self, count=None):
        """All items `count` times; without end by default."""
        return Dataset(self._pipeline.repeat(count))

    def take(self, count=-1):
        """At most the first `count` items."""
        return Dataset(self._pipeline.take(count))

    def skip(self, count):
        """All but the first `count` items."""
        return Dataset(self._pipeline.skip(count))

    def get_dataset_size(self):
        """Items in one pass."""
        return self._pipeline.get_dataset_size()

    def get_col_names(self):
        """The names of the columns."""
        return self._pipeline.get_col_names()

    def create_tuple_iterator(self, columns=None, num_epochs=-1, output_numpy=False, do_copy=False):
        """Something to loop over; items are tuples."""
        _refuse("mindspore.dataset.Dataset.create_tuple_iterator", columns=(columns, None))
        return self._pipeline.create_tuple_iterator(num_epochs, output_numpy)

    def create_dict_iterator(self, num_epochs=-1, output_numpy=False, do_copy=False):
        """Something to loop over; items are dicts."""
        return self._pipeline.create_dict_iterator(num_epochs, output_numpy)

    def __iter__(self):
        return iter(self._pipeline)

    def __len__(self):
        return len(self._pipeline)

    __getattr__ = _names.missing("mindspore.dataset.Dataset")


class MnistDataset(Dataset):
    """Handwritten digits from IDX files: columns image (28, 28, 1) uint8 and label () uint32."""

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
        _refuse("mindspore.dataset.MnistDataset", sampler=(sampler, None), cache=(cache, None))
        _note_workers(num_parallel_workers)
        super().__init__(
            muster.dataset.MnistDataset(
                dataset_dir,
                usage,
                num_samples=num_samples,
                shuffle=shuffle,
                num_shards=num_shards,
                shard_id=shard_id,
            )
        )


__all__ = ["Dataset", "MnistDataset", "transforms", "vision"]
__getattr__ = _names.missing(__name__)
