"""Sources of files that are read in Python: MindRecord, text, tables, lists of pictures."""

import csv
import functools
import glob
import os

from mindspore import _names
from mindspore._lazy import numpy
from mindspore.dataset import _cache, _checks, _rows, _samplers
from mindspore.dataset._checks import PipelineError
from mindspore.dataset._dataset import Shuffle, workers
from mindspore.dataset._own_rows import Rows
from mindspore.dataset._sources import GeneratorDataset


def _files_of(given, name="dataset_files"):
    """The files of a name, of a pattern, or of several."""
    _checks.of_type(name, given, str, list)
    patterns = [given] if isinstance(given, str) else list(given)
    files = []
    for pattern in patterns:
        _checks.of_type(name, pattern, str)
        found = sorted(glob.glob(pattern))
        if not found:
            raise ValueError(f"The following patterns did not match any files: [{pattern!r}].")
        files += found
    return files


class _Numbered(Rows):
    """Rows that `read(number)` gives."""

    def __init__(self, columns, count, read):
        super().__init__(None, columns)
        self._count, self._read = count, read

    def __len__(self):
        return self._count

    def row(self, number):
        """Row `number`."""
        return [_rows.value_of(value) for value in self._read(number)]


class _ReadDataset(GeneratorDataset):
    """A source whose rows Python reads; see subclasses."""

    def _begin(
        self,
        columns,
        count,
        read,
        sampler,
        shuffle,
        num_samples,
        num_shards,
        shard_id,
        labels_of=None,
        files=None,
        by_file=False,
    ):
        """`labels_of(column)`: for PKSampler. `files`: rows of each file, whose shards are blocks of rows."""
        if count == 0:
            raise PipelineError(f"{type(self).__name__}: there are no rows (the file is empty)")
        by_shuffle = {None: None, False: None, True: "global"}.get(shuffle, str(shuffle))
        if isinstance(shuffle, Shuffle):
            shuffle = shuffle == Shuffle.GLOBAL or shuffle == Shuffle.FILES or shuffle == Shuffle.INFILE
        chosen = _samplers.chosen(sampler, shuffle, num_samples or None, num_shards, shard_id)
        if files is not None and num_shards is not None:
            chosen = _samplers.BlockSampler(
                files, num_shards, shard_id, by_shuffle, num_samples or None, by_file
            )
        labels = None
        if labels_of is not None and isinstance(chosen, _samplers.PKSampler):
            labels = functools.partial(labels_of, chosen.class_column)
        self._open_rows(_Numbered(columns, count, read), chosen, {}, labels)


class MindDataset(_ReadDataset):
    """Rows of MindRecord files."""

    def __init__(
        self,
        dataset_files,
        columns_list=None,
        num_parallel_workers=None,
        shuffle=None,
        num_shards=None,
        shard_id=None,
        sampler=None,
        padded_sample=None,
        num_padded=None,
        num_samples=None,
        cache=None,
    ):
        from mindspore.mindrecord import _files, _format

        _names.refuse("mindspore.dataset.MindDataset", **_cache.refused(cache))
        workers(num_parallel_workers)
        _checks.of_type("dataset_files", dataset_files, str, list)
        for path in _checks.files_there(dataset_files):
            _checks.of_type("dataset_files", path, str)
        if sampler is not None and shuffle is not None:
            raise PipelineError(
                "MindDataset: sampler and shuffle exclude each other: the sampler orders the rows"
            )
        if sampler is not None and not isinstance(sampler, _samplers.BuiltinSampler):
            raise PipelineError(
                f"MindDataset: sampler is one of mindspore.dataset, not {type(sampler).__name__}"
            )
        paths = _files.paths_of(dataset_files) if isinstance(dataset_files, str) else dataset_files
        files = [_format.File(os.path.abspath(path)) for path in paths]
        schema = files[0].schema
        for file in files:
            if file.schema != schema:
                raise PipelineError(
                    f"MindDataset: {file.path} has the schema {file.schema}, {files[0].path} has {schema}"
                )
        _checks.of_type("columns_list", columns_list, list, optional=True)
        columns = _checks.names("columns_list", columns_list) or sorted(schema)
        for name in columns:
            if name not in schema:
                raise PipelineError(
                    f"MindDataset: Invalid data, column '{name}' is not in the schema {sorted(schema)}"
                )
        places = [(file, number) for file in files for number in range(len(file.places))]
        padding = _padded_rows(padded_sample, num_padded, columns)

        def read(number):
            if number >= len(places):
                return [_column(schema[name], padded_sample[name]) for name in columns]
            file, at = places[number]
            row = file.row(at)
            return [_column(schema[name], row[name]) for name in columns]

        def labels_of(name):
            if name not in schema:
                raise PipelineError(f"PKSampler: class_column '{name}' is not in the schema {sorted(schema)}")
            return [file.row(at)[name] for file, at in places]

        count = len(places) + padding
        self._begin(columns, count, read, sampler, shuffle, num_samples, num_shards, shard_id, labels_of)


def _padded_rows(sample, count, columns):
    if (sample is None) != (count is None):
        raise RuntimeError(
            "padded_sample is specified and requires num_padded as well, and the other way round."
        )
    if sample is None:
        return 0
    _checks.of_type("padded_sample", sample, dict)
    _checks.whole("num_padded", count, 0)
    if set(columns) - set(sample):
        raise PipelineError(f"padded_sample lacks columns: {sorted(set(columns) - set(sample))}")
    return count


def _column(field, value):
    if field["type"] == "bytes":
        return numpy.array([bytes(value)])
    return numpy.asarray(value, None if field["type"] == "string" else field["type"])


class TextFileDataset(_ReadDataset):
    """Lines of text files: column text."""

    def __init__(
        self,
        dataset_files,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        _names.refuse("mindspore.dataset.TextFileDataset", **_cache.refused(cache))
        workers(num_parallel_workers)
        lines, files = [], []
        for name in _files_of(dataset_files):
            with open(name, encoding="utf-8", newline="\n") as file:  # "\r" is of the line, as in MindSpore
                found = [line for line in file.read().split("\n") if line]
            lines += found
            files.append(len(found))
        order = (None, shuffle, num_samples, num_shards, shard_id)
        self._begin(["text"], len(lines), lambda at: [lines[at]], *order, files=files)


class CSVDataset(_ReadDataset):
    """Rows of tables; `column_defaults` say what the columns hold."""

    def __init__(
        self,
        dataset_files,
        field_delim=",",
        column_defaults=None,
        column_names=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        _names.refuse("mindspore.dataset.CSVDataset", **_cache.refused(cache))
        workers(num_parallel_workers)
        _checks.of_type("field_delim", field_delim, str)
        if len(field_delim) != 1 or field_delim in '"\r\n':
            raise ValueError("field_delim is invalid.")
        files = _files_of(dataset_files)
        names = _checks.names("column_names", column_names)
        cells, counts = [], []
        for name in files:
            found = _csv_rows(name, field_delim)
            if column_names is None:
                names = _header(name, found, names)
                found = found[1:]
            cells += found
            counts.append(len(found))
        defaults = column_defaults or [""] * len(names)
        if len(defaults) != len(names):
            raise PipelineError(
                f"CSVDataset: column_defaults has {len(defaults)} values for {len(names)} columns: {names}"
            )
        for row in cells:
            if len(row) != len(names):
                raise PipelineError(f"CSVDataset: a row has {len(row)} cells for {len(names)} columns: {row}")

        def read(number):
            return [_cell(text, other) for text, other in zip(cells[number], defaults, strict=True)]

        order = (None, shuffle, num_samples, num_shards, shard_id)
        self._begin(names, len(cells), read, *order, files=counts)


def _csv_rows(name, delimiter):
    try:
        with open(name, encoding="utf-8-sig", newline="") as file:  # spreadsheets write a mark in front
            return [row for row in csv.reader(file, delimiter=delimiter) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise PipelineError(f"CSVDataset: {name} is no table in UTF-8: {error}") from None


def _header(name, rows, names):
    """The columns that the first row of a file names: those of all files."""
    if not rows:
        raise PipelineError(f"CSVDataset: {name} is empty: its first row has the names of the columns")
    if len(set(rows[0])) != len(rows[0]):
        raise PipelineError(f"CSVDataset: {name} names a column twice: {rows[0]}")
    if names is not None and rows[0] != names:
        raise PipelineError(
            f"CSVDataset: {name} has the columns {rows[0]}, the first file {names}: all files have the same, "
            "in one order"
        )
    return rows[0]


def _cell(text, default):
    if isinstance(default, str):
        return numpy.asarray(text or default)
    kind = numpy.int32 if isinstance(default, int) else numpy.float32
    try:
        if kind is numpy.int32 and text and float(text).is_integer():  # numpy.savetxt writes 1.0e+00
            return numpy.asarray(kind(int(float(text))))
        return numpy.asarray(kind(text) if text else kind(default))
    except (ValueError, OverflowError):
        raise PipelineError(f"CSVDataset: type cast error, {text!r} is no {kind.__name__}") from None


class TFRecordDataset(_ReadDataset):
    """Examples of TensorFlow's files: a column for each feature."""

    def __init__(
        self,
        dataset_files,
        schema=None,
        columns_list=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        shard_equal_rows=False,
        cache=None,
        compression_type=None,
    ):
        from mindspore.dataset import _tfrecord, _types

        _names.refuse("mindspore.dataset.TFRecordDataset", **_cache.refused(cache))
        workers(num_parallel_workers)
        if compression_type not in (None, "", "GZIP", "ZLIB"):
            raise ValueError(
                f"Input compression_type can only be either '', 'GZIP' or 'ZLIB', but got {compression_type}"
            )
        examples, files, places = [], [], []
        for name in _files_of(dataset_files):
            found = _tfrecord.examples(name, compression_type)
            examples += found
            files.append(len(found))
            places += [f"record {number} of {name}" for number in range(len(found))]
        if not examples:
            raise PipelineError(f"TFRecordDataset: there are no records in {dataset_files}")
        fields = None
        if schema is not None:
            schema = schema if isinstance(schema, _types.Schema) else _types.Schema(schema)
            fields = {column["name"]: column for column in schema.columns}
            if num_samples is None and 0 < schema.num_rows < len(examples):
                num_samples = schema.num_rows
        columns = _checks.names("columns_list", columns_list) or list(
            fields or sorted(_tfrecord.features(examples[0], places[0]))
        )

        def read(number):
            place = places[number]
            found = _tfrecord.features(examples[number], place)
            return [_tfrecord.column(found, name, (fields or {}).get(name), place) for name in columns]

        order = (None, shuffle, num_samples, num_shards, shard_id)
        self._begin(columns, len(examples), read, *order, files=files, by_file=not shard_equal_rows)
