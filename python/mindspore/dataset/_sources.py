"""Where rows come from, with MindSpore's arguments."""

import copy
import functools

import muster.dataset

from mindspore import _device, _names
from mindspore.dataset import _cache, _checks, _origins, _own_rows, _samplers
from mindspore.dataset._dataset import Dataset, Shuffle, shuffle_from, workers


class _Ordered:
    """Rows in the order of a sampler that is made in Python, anew for each pass."""

    _tells = True  # nothing: it draws by the number of the pass

    def __init__(self, sampler, rows, read, labels=None):
        self._sampler, self._rows, self._read, self._labels = sampler, rows, read, labels
        self._passes = 0
        self._now = sampler

    @property
    def is_told(self):
        """Whether it has to hear which pass of an iterator begins: a class of a script defines reset()."""
        return any(type(each).reset is not _samplers.Sampler.reset for each in self._sampler.chain())

    def _of_pass(self, draw):
        # Each iterator has a sampler of its own, which is reset before each pass but its first.
        if draw is None or not self.is_told:
            return self._sampler
        if draw.is_look:
            return copy.deepcopy(self._sampler)
        if draw.number == 0 and draw.repetition == 0:
            self._now = copy.deepcopy(self._sampler)
        else:
            for each in self._now.chain():
                each.reset()
        return self._now

    def order(self, draw=None):
        """The row numbers of the next pass."""
        from mindspore.dataset import _random, config

        if draw is None:
            random = _random.stream(config.get_seed(), self._passes)
            self._passes += 1
        else:
            random = draw.stream(0)
        labels = self._labels() if self._labels is not None else None
        return self._of_pass(draw)._order(self._rows, random, labels)

    def __iter__(self):
        return iter(self._read(self.order()))

    def __len__(self):
        return len(self.order())


class MappableDataset(_origins.Placed, Dataset):
    """A source that can read any of its rows."""

    def _open(self, make, sampler, rows=None, labels=None):
        """`make(sampler)` gives the library's pipeline; `rows`: how many there are, if known."""
        self._make, self._sampler = make, sampler
        native = None if sampler.child_sampler is not None else sampler._native(rows)
        if native is not None:
            super().__init__(_in_library(make, native))
            return
        columns_of = make(muster.dataset.SequentialSampler())
        ordered = _Ordered(sampler, columns_of.get_dataset_size(), self._read_numbers, labels)
        columns = columns_of.get_col_names()
        super().__init__(
            None if ordered.is_told else muster.dataset.GeneratorDataset(ordered, columns),
            lambda: _rows_module().Source(
                columns, lambda draw: map(list, self._read_numbers(ordered.order(draw))), lambda: len(ordered)
            ),
        )

    def _read_numbers(self, numbers):
        return self._make(muster.dataset.SubsetSampler(numbers)).create_tuple_iterator(1, True)

    def add_sampler(self, new_sampler):
        """Chooses among the rows that the sampler until now gives."""
        self._open(self._make, _samplers.above(new_sampler, self._sampler))

    def use_sampler(self, new_sampler):
        """Puts the sampler in the place of the last one added; those below it stay."""
        child = self._sampler.child_sampler
        self._open(self._make, _samplers.above(_samplers.checked(new_sampler), child))

    def is_shuffled(self):
        """Whether rows come in random order."""
        return self._sampler.is_shuffled()

    def is_sharded(self):
        """Whether only one part of the rows comes."""
        return self._sampler.is_sharded()

    def _rows_numbered(self, numbers, randomize):
        if type(self)._open is not MappableDataset._open or self._sampler.child_sampler is not None:
            return super()._rows_numbered(numbers, randomize)
        if not isinstance(self._sampler, _samplers.SequentialSampler | _samplers.RandomSampler):
            return super()._rows_numbered(numbers, randomize)
        made = MappableDataset.__new__(MappableDataset)
        made._class_indexing = self._class_indexing
        made._open(self._make, _samplers.SubsetSampler(numbers))
        return made


def _ends_once_for_all(source) -> bool:
    """Whether it is an iterator of Python's own, which nothing begins anew: iter([...]), map, an open file.

    A pass that finds text in the first row is made once more in Python, so what was read must be kept.
    """
    kind = type(source)
    is_iterator = hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools", "_io", "_csv")
    return is_iterator and kind.__name__ not in ("count", "cycle", "repeat")  # those end never


def _rows_module():
    from mindspore.dataset import _rows

    return _rows


def _in_library(make, *args):
    """Mistakes that MindSpore finds when a pass begins are RuntimeErrors there."""
    try:
        return make(*args)
    except _checks.PipelineError:
        raise
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise _checks.PipelineError(str(error)) from None


class _FolderDataset(MappableDataset):
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
        call = f"mindspore.dataset.{type(self).__name__}"
        _names.refuse(call, **_cache.refused(cache))
        workers(num_parallel_workers)
        chosen = _samplers.chosen(sampler, shuffle_from(call, shuffle), num_samples, num_shards, shard_id)
        self._open(functools.partial(_opened, self._source, _checks.folder(dataset_dir), usage), chosen)


def _opened(source, dataset_dir, usage, sampler):
    return source(dataset_dir, usage, sampler=sampler)


class MnistDataset(_FolderDataset):
    """Handwritten digits from IDX files: columns image (28, 28, 1) uint8 and label () uint32."""

    _source = muster.dataset.MnistDataset


class FashionMnistDataset(_FolderDataset):
    """Pictures of clothes from IDX files: columns image (28, 28, 1) uint8 and label () uint32."""

    _source = muster.dataset.FashionMnistDataset


class KMnistDataset(_FolderDataset):
    """Japanese letters from IDX files: columns image (28, 28, 1) uint8 and label () uint32."""

    _source = muster.dataset.MnistDataset


class Cifar10Dataset(_FolderDataset):
    """Photographs in ten classes: columns image (32, 32, 3) uint8 and label () uint32."""

    _source = muster.dataset.Cifar10Dataset


class Cifar100Dataset(_FolderDataset):
    """Photographs in a hundred classes: columns image (32, 32, 3) uint8, coarse_label, fine_label uint32."""

    _source = muster.dataset.Cifar100Dataset


class ImageFolderDataset(MappableDataset):
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
        call = "mindspore.dataset.ImageFolderDataset"
        _names.refuse(call, decrypt=(decrypt, None), **_cache.refused(cache))
        workers(num_parallel_workers)
        _checks.of_type("decode", decode, bool)
        chosen = _samplers.chosen(sampler, shuffle_from(call, shuffle), num_samples, num_shards, shard_id)
        folder = _checks.folder(dataset_dir)
        self._class_indexing = lambda: class_indexing or _classes_of(folder)
        self._open(
            lambda order: muster.dataset.ImageFolderDataset(
                folder, sampler=order, extensions=extensions, class_indexing=class_indexing, decode=decode
            ),
            chosen,
        )


def _classes_of(folder):
    import os

    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return {name: number for number, name in enumerate(names)}


class GeneratorDataset(MappableDataset):
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
        call = "mindspore.dataset.GeneratorDataset"
        if _ends_once_for_all(source):
            source = _rows_module().Kept(source)
        if (
            not callable(source)
            and not hasattr(source, "__iter__")
            and not hasattr(source, "__next__")
            and not hasattr(source, "__getitem__")
        ):
            raise TypeError(
                "Input `source` function of GeneratorDataset should be callable, iterable or random "
                "accessible, commonly it should implement one of the method like yield, __getitem__ or "
                "__next__(__iter__)."
            )
        if not callable(source) and _has_rows_without_end(source):
            raise _checks.PipelineError(
                f"GeneratorDataset: {type(source).__name__} has '__getitem__' alone: a random access dataset "
                "needs '__len__' (`__len__` method is required), or its rows would have no end"
            )
        _checks.of_type("num_parallel_workers", num_parallel_workers, int, optional=True)
        workers(num_parallel_workers)
        _checks.of_type("python_multiprocessing", python_multiprocessing, bool)
        shuffle = shuffle_from(call, shuffle)
        columns, types = _described(column_names, column_types, schema)
        of_row = _own_rows.Rows(source, columns, types)
        is_random = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if batch_sampler is not None or collate_fn is not None:
            self._open_batches(
                of_row, batch_sampler, collate_fn, (num_samples, shuffle, sampler, num_shards, shard_id)
            )
            return
        several = bool(python_multiprocessing) and (num_parallel_workers or 1) > 1
        if is_random:
            chosen = _samplers.chosen(sampler, shuffle, num_samples, num_shards, shard_id)
            processes = {
                "num_parallel_workers": (num_parallel_workers or 1) if several else 1,
                "python_multiprocessing": several,
                "max_rowsize": max_rowsize,
            }
            self._open_rows(of_row, chosen, processes)
            return
        for name, value in (("sampler", sampler), ("num_shards", num_shards), ("shard_id", shard_id)):
            if value is not None:
                raise ValueError(f"{name} is not supported if source does not have attribute '__getitem__'.")
        if shuffle:
            _device.note_once("note: shuffle has no effect on an iterator or a function: .shuffle(n) has")
        if several:
            _device.note_once(
                "note: num_parallel_workers has no effect: the rows of an iterator or a function come one "
                "after the other, on one thread"
            )
        self._open_sequence(of_row, functools.partial(_begun, source), num_samples, source)

    def _open_rows(self, of_row, sampler, processes, labels=None):
        self._sampler, columns = sampler, of_row._columns
        in_python = labels is not None or sampler.child_sampler is not None
        native = None if in_python else sampler._native(len(of_row))
        ordered = _Ordered(sampler, len(of_row), lambda order: (of_row[at] for at in order), labels)
        if native is not None:
            pipeline = _in_library(
                lambda: muster.dataset.GeneratorDataset(of_row, columns, sampler=native, **processes)
            )
        else:
            pipeline = None if ordered.is_told else muster.dataset.GeneratorDataset(ordered, columns)
        size = (lambda: pipeline.get_dataset_size()) if native is not None else (lambda: len(ordered))
        Dataset.__init__(
            self,
            pipeline,
            lambda: _rows_module().Source(
                columns, lambda draw: (of_row.row(at) for at in ordered.order(draw)), size
            ),
        )
        self._make_rows = lambda numbers: (of_row, _samplers.SubsetSampler(numbers), processes)

    def _open_sequence(self, of_row, begin, num_samples, source):
        if num_samples is not None:
            _checks.whole("num_samples", num_samples, 0, 2**63 - 1)
        counted = hasattr(source, "__len__")
        arguments = (of_row, begin, num_samples or None)
        made = _own_rows.CountedSequence if counted else _own_rows.Sequence
        sequence = made(*arguments, source) if counted else made(*arguments)
        self._sampler = _samplers.SequentialSampler()
        self._make_rows = None
        Dataset.__init__(
            self,
            muster.dataset.GeneratorDataset(sequence, of_row._columns),
            lambda: _rows_module().Source(
                of_row._columns, sequence.rows, (lambda: len(sequence)) if counted else None
            ),
        )

    def _open_batches(self, of_row, batch_sampler, collate_fn, others):
        if batch_sampler is None:
            raise ValueError("collate_fn can only be specified when batch_sampler is set.")
        if any(other is not None for other in others):
            raise ValueError(
                "batch_sampler is mutually exclusive with num_samples, shuffle, sampler, num_shards, "
                "shard_id."
            )
        if not isinstance(batch_sampler, _samplers.Sampler) and not hasattr(batch_sampler, "__iter__"):
            raise TypeError(f"batch_sampler should have __getitem__ or __iter__, not {type(batch_sampler)}")
        source = of_row._source

        def batches():
            for numbers in batch_sampler:
                rows = [source[int(at)] for at in numbers]
                yield collate_fn(rows) if collate_fn is not None else _collated(of_row, rows)

        self._open_sequence(of_row, batches, None, batch_sampler)

    def _rows_numbered(self, numbers, randomize):
        if self._make_rows is None or not isinstance(
            self._sampler, _samplers.SequentialSampler | _samplers.RandomSampler
        ):
            return Dataset._rows_numbered(self, numbers, randomize)
        made = GeneratorDataset.__new__(GeneratorDataset)
        made._open_rows(*self._make_rows(numbers))
        return made

    def add_sampler(self, new_sampler):
        """Chooses among the rows that the sampler until now gives."""
        self._open_sampled(_samplers.above(_samplers.checked(new_sampler), self._sampler))

    def use_sampler(self, new_sampler):
        """Puts the sampler in the place of the last one added; those below it stay."""
        self._open_sampled(_samplers.above(_samplers.checked(new_sampler), self._sampler.child_sampler))

    def _open_sampled(self, sampler):
        if self._make_rows is None:
            raise _checks.PipelineError("a source without __getitem__ takes no sampler")
        of_row, _, processes = self._make_rows([0])
        self._open_rows(of_row, sampler, processes)


def _collated(of_row, rows):
    from mindspore.dataset import _rows

    columns = zip(*[of_row.values(row) for row in rows], strict=True)
    return tuple(
        _rows.stacked(name, list(column)) for name, column in zip(of_row._columns, columns, strict=True)
    )


def _has_rows_without_end(source):
    methods = ("__len__", "__iter__", "__next__")
    return hasattr(source, "__getitem__") and not any(hasattr(source, name) for name in methods)


def _begun(source):
    made = source() if callable(source) and not hasattr(source, "__next__") else source
    return iter(made) if hasattr(made, "__iter__") or hasattr(made, "__getitem__") else made


def _described(column_names, column_types, schema):
    from mindspore.dataset import _types

    if schema is not None:  # counts before names and types, as in MindSpore
        schema = schema if isinstance(schema, _types.Schema) else _types.Schema(schema)
        return [column["name"] for column in schema.columns], [column["type"] for column in schema.columns]
    if column_names is None:
        raise ValueError("Neither columns_names nor schema are provided.")
    columns = _checks.names("column_names", column_names)
    if column_types is not None:
        if not isinstance(column_types, list | tuple):
            raise TypeError(
                f"Argument column_types with value {column_types} is not of type [<class 'list'>]"
            )
        if len(column_types) != len(columns):
            raise ValueError("column_names and column_types differ in length")
    return columns, column_types


class NumpySlicesDataset(GeneratorDataset):
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
        names = _checks.names("column_names", column_names)
        workers(num_parallel_workers)
        chosen = _samplers.chosen(sampler, shuffle, num_samples, num_shards, shard_id)
        names, arrays = _sliced(data, names)
        of_row = _Slices(arrays, names)
        held = _rows_module()._HELD
        if any(isinstance(array, list) or array.dtype.char not in held for array in arrays):
            self._open_rows(of_row, chosen, {})
            return
        self._open(
            lambda order: muster.dataset.NumpySlicesDataset(tuple(arrays), names, sampler=order),
            chosen,
            len(of_row),
        )
        self._make_rows = lambda numbers: (of_row, _samplers.SubsetSampler(numbers), {})


class _Slices(_own_rows.Rows):
    """Element `number` of each array."""

    def __init__(self, arrays, columns):
        super().__init__(arrays, columns)

    def __len__(self):
        return len(self._source[0])

    def row(self, number):
        import numpy

        return [numpy.asarray(array[number]) for array in self._source]


def _array_or_rows(column):
    """An array, or a list of one for each row where rows have different shapes."""
    import numpy

    try:
        return numpy.asarray(column)
    except ValueError:
        return [numpy.asarray(row) for row in column]


def _sliced(data, names):
    import numpy

    _checks.of_type("data", data, list, tuple, dict, numpy.ndarray)
    if len(data) == 0:
        raise ValueError("Argument data cannot be empty")
    if isinstance(data, dict):
        names = names or _checks.names("column_names", list(data))
        columns = list(data.values())
    elif isinstance(data, tuple):
        columns = list(data)
    else:
        columns = [data]
    names = names or [f"column_{at}" for at in range(len(columns))]
    if len(names) != len(columns):
        raise ValueError(
            f"Num of input column names is {len(names)}, but required is {len(columns)} as data is "
            f"{type(data).__name__}."
        )
    arrays = [_array_or_rows(column) for column in columns]
    for name, array in zip(names, arrays, strict=True):
        parts = array if isinstance(array, list) else [array]
        if any(part.dtype.hasobject for part in parts):
            raise TypeError(f"column '{name}' holds Python objects; give numbers, strings or arrays of them")
        if (parts[0] is array and array.ndim == 0) or len(array) != len(arrays[0]):
            raise ValueError(
                "NumpySlicesDataset: the columns differ in length (all should have as many rows)"
            )
    return names, arrays


class PaddedDataset(GeneratorDataset):
    """Rows given as dicts, to fill up another dataset."""

    def __init__(self, padded_samples):
        import numpy

        _checks.of_type("padded_samples", padded_samples, list)
        if not padded_samples:
            raise ValueError("padded_samples cannot be empty.")
        for sample in padded_samples:
            if not isinstance(sample, dict):
                raise TypeError("each of padded_samples must be a dict")
        names = sorted(padded_samples[0])
        rows = [tuple(numpy.asarray(sample[name]) for name in names) for sample in padded_samples]
        super().__init__(rows, names, shuffle=False)


__all__ = [
    "Cifar10Dataset",
    "Cifar100Dataset",
    "FashionMnistDataset",
    "GeneratorDataset",
    "ImageFolderDataset",
    "KMnistDataset",
    "MappableDataset",
    "MnistDataset",
    "NumpySlicesDataset",
    "PaddedDataset",
    "Shuffle",
]
