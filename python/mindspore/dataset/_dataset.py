"""Class Dataset with MindSpore's arguments."""

import enum

import muster.dataset

from mindspore import _device, _names
from muster import _subclasses


def note_batch_processes(python_multiprocessing) -> None:
    if python_multiprocessing:
        _device.note_once(
            "note: python_multiprocessing of batch() has no effect: no Python function runs there"
        )


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
        column_order=None,
        python_multiprocessing=False,
        cache=None,
        callbacks=None,
        max_rowsize=None,
        offload=None,
    ):
        """Applies operations to columns."""
        _names.refuse("mindspore.dataset.Dataset.map", cache=(cache, None), callbacks=(callbacks, None))
        mapped = self._pipeline.map(
            operations,
            input_columns,
            output_columns,
            num_parallel_workers,
            bool(python_multiprocessing),
            max_rowsize,
        )
        return Dataset(mapped if column_order is None else mapped.project(column_order))

    def filter(self, predicate, input_columns=None, num_parallel_workers=None):
        """The items for which the predicate is true."""
        return Dataset(self._pipeline.filter(predicate, input_columns))

    def batch(self, batch_size, drop_remainder=False, num_parallel_workers=None, **others):
        """Stacks rows; the last batch is smaller unless it is dropped."""
        note_batch_processes(others.pop("python_multiprocessing", False))
        others.pop("max_rowsize", None)
        _names.refuse(
            "mindspore.dataset.Dataset.batch", **{name: (value, None) for name, value in others.items()}
        )
        return Dataset(self._pipeline.batch(batch_size, drop_remainder))

    def shuffle(self, buffer_size):
        """Each item is drawn from the next `buffer_size` that have not come yet."""
        return Dataset(self._pipeline.shuffle(buffer_size))

    def repeat(self, count=None):
        """All items `count` times; without end by default."""
        return Dataset(self._pipeline.repeat(count))

    def take(self, count=-1):
        """At most the first `count` items."""
        return Dataset(self._pipeline.take(count))

    def skip(self, count):
        """All but the first `count` items."""
        return Dataset(self._pipeline.skip(count))

    def project(self, columns):
        """Only the named columns."""
        return Dataset(self._pipeline.project(columns))

    def rename(self, input_columns, output_columns):
        """Other names for some columns."""
        return Dataset(self._pipeline.rename(input_columns, output_columns))

    def concat(self, datasets):
        """The items of this dataset, then those of the others."""
        return Dataset(self._pipeline.concat(_pipelines(datasets)))

    def __add__(self, datasets):
        return self.concat(datasets)

    def zip(self, datasets):
        """The columns of this dataset and of the others side by side."""
        return Dataset(self._pipeline.zip(_pipelines(datasets)))

    def get_dataset_size(self):
        """Items in one pass."""
        return self._pipeline.get_dataset_size()

    def get_batch_size(self):
        """Rows in an item."""
        return self._pipeline.get_batch_size()

    def get_repeat_count(self):
        """Repetitions in the last repeat()."""
        return self._pipeline.get_repeat_count()

    def get_col_names(self):
        """The names of the columns."""
        return self._pipeline.get_col_names()

    def create_tuple_iterator(self, columns=None, num_epochs=-1, output_numpy=False, do_copy=False):
        """Something to loop over; items are tuples."""
        pipeline = self._pipeline if columns is None else self._pipeline.project(columns)
        return pipeline.create_tuple_iterator(num_epochs, output_numpy)

    def create_dict_iterator(self, num_epochs=-1, output_numpy=False, do_copy=False):
        """Something to loop over; items are dicts."""
        return self._pipeline.create_dict_iterator(num_epochs, output_numpy)

    def __iter__(self):
        return iter(self._pipeline)

    def __len__(self):
        return len(self._pipeline)

    __getattr__ = _names.missing("mindspore.dataset.Dataset")


_subclasses.watch_datasets(Dataset)


def _pipelines(datasets):
    if isinstance(datasets, Dataset):
        datasets = [datasets]
    return [dataset._pipeline for dataset in datasets]


def zip(datasets):
    """The columns of all datasets side by side."""
    return Dataset(muster.dataset.zip(_pipelines(datasets)))


class Shuffle(enum.Enum):
    """How a source shuffles; those of Muster know GLOBAL only."""

    GLOBAL = "global"
    FILES = "files"
    INFILE = "infile"


def shuffle_from(call, shuffle):
    """MindSpore's `shuffle` as a bool or None."""
    if not isinstance(shuffle, Shuffle):
        return shuffle
    _names.refuse(call, shuffle=(shuffle, Shuffle.GLOBAL))
    return True
