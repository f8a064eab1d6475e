"""Passes in Python, for what the library's tensors cannot hold: text, objects, rows of any length.

A node describes a step, as data::Node does in the library; `rows(draw)` makes one pass over it. A row is a
list of numpy arrays (or of dicts, which MindSpore passes on), one for each column.
"""

import collections
import copy
import itertools

from mindspore._lazy import numpy
from mindspore.dataset import _random, config
from mindspore.dataset._checks import PipelineError, RowError

ENDLESS = -1
UNKNOWN = None
_HELD = frozenset("fd?bilqBI")  # of numpy's dtypes, those that tensors of the library hold


class Kept:
    """What a generator gives, for every pass: its values stay in memory."""

    def __init__(self, values):
        self._values = values

    def __iter__(self):
        now, self._values = itertools.tee(self._values)
        return now


class NeedsRowsError(Exception):
    """A value that no tensor of the library holds: the pass is made here instead."""


def value_of(value):
    """What a column holds: an array, or a dict of them."""
    if type(value) is numpy.ndarray:
        return _checked(value)
    if isinstance(value, dict):
        return {name: _of_dict(each) for name, each in value.items()}
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    if value is None:
        raise RowError("a row holds None; give each column a number, a string, an array or a dict")
    return _checked(numpy.asarray(value))


def _checked(array):
    if array.dtype.hasobject:
        raise RowError(
            f"Invalid data type: got an array of Python objects ({array.shape}). Data type of the input or "
            "its converted Numpy array is expected to be numbers, strings, bytes or arrays of them"
        )
    return array


def _of_dict(value):
    """What a dict holds: None and objects of the script's own, which no array holds, are passed on."""
    if isinstance(value, list | tuple):
        made = [_of_dict(each) for each in value]
        return tuple(made) if isinstance(value, tuple) else made
    if isinstance(value, dict) or type(value) is numpy.ndarray or hasattr(value, "asnumpy"):
        return value_of(value)
    array = numpy.asarray(value)
    return value if array.dtype.hasobject else array


def held(value):
    """`value` as an array that the library's tensors hold; NeedsRowsError where there is none."""
    if type(value) is numpy.ndarray and value.dtype.char in _HELD and value.size:
        return value
    value = value_of(value)
    if type(value) is not numpy.ndarray or value.dtype.char not in _HELD:
        raise NeedsRowsError(
            f"a value of {getattr(value, 'dtype', type(value))}, which no tensor of a network holds: make "
            "columns of numbers of it by map(), such as map(lambda d: tuple(d.values()), 'd', ['x', 'y'])"
        )
    return value


class Draw:
    """Which pass: what is random in it depends on this and on the place in the pipeline."""

    begins = ends = True  # with repeat(): whether this is the first, the last of its repetitions
    is_look = False  # whether somebody asks for sizes, shapes or dtypes alone

    def __init__(self, seed, epoch, repetition=0, number=None):
        self.seed, self.epoch, self.repetition = seed, epoch, repetition
        self.number = (
            epoch if number is None else number
        )  # among the passes of its iterator, as scripts are told

    def again(self, repetition, of):
        """The pass of one of `of` repetitions (below 1: without end)."""
        made = Draw(self.seed, self.epoch, self.repetition * 1000003 + repetition, self.number)
        made.is_look = self.is_look
        made.begins = self.begins and repetition == 0
        made.ends = self.ends and repetition == of - 1
        return made

    def stream(self, place):
        return _random.stream(self.seed, self.epoch, self.repetition, place)


class Node:
    """A step. `place` numbers the steps from the source on."""

    def __init__(self, children, columns):
        self.children = children
        self.columns = columns
        self.place = sum(child.place for child in children) + 1

    def index(self, name, what):
        if name not in self.columns:
            raise PipelineError(
                f"{what}: there is no column '{name}' (Invalid column name: it does not exist); there are: "
                f"{', '.join(self.columns)}"
            )
        return self.columns.index(name)

    def size(self):
        return self.children[0].size()


class Source(Node):
    """Rows that `begin(draw)` gives one after the other."""

    def __init__(self, columns, begin, size):
        super().__init__([], columns)
        self._begin, self._size = begin, size

    def size(self):
        return self._size() if callable(self._size) else self._size

    def rows(self, draw):
        return iter(self._begin(draw))


class Map(Node):
    """Functions over some columns of each row."""

    def __init__(self, child, functions, inputs, outputs):
        inputs = inputs or child.columns[:1]
        self._at = [child.index(name, "map") for name in inputs]
        outputs = outputs or inputs
        rest = [name for name in child.columns if name not in inputs]
        if len(outputs) == len(inputs):
            renamed = dict(zip(inputs, outputs, strict=True))
            columns = [renamed.get(name, name) for name in child.columns]
        else:
            columns = [*outputs, *rest]
        if len(set(columns)) != len(columns):
            raise PipelineError(f"map: two columns would have one name: {columns}")
        super().__init__([child], columns)
        self._rest = [child.index(name, "map") for name in rest]
        self._functions, self._count, self._in_place = functions, len(outputs), len(outputs) == len(inputs)

    def rows(self, draw):
        mode = config.get_error_samples_mode()
        if mode == config.ErrorSamplesMode.RETURN:
            return self._mapped(draw, ())
        if mode == config.ErrorSamplesMode.SKIP:
            return self._mapped(draw, [])
        return self._replaced(draw)

    def _replaced(self, draw):
        """The rows, and for each that fails one of the first ones again behind them."""
        failed, kept = [], []
        for row in self._mapped(draw, failed):
            if len(kept) <= len(failed):
                kept.append(list(row))
            yield row
        for number in range(len(failed) if kept else 0):
            yield kept[number % len(kept)]

    def _mapped(self, draw, failed):
        """The rows. `failed`: a list takes the numbers of those that cannot be made; (): an error."""
        key = (draw.seed, draw.epoch, draw.repetition, self.place)
        for number, row in enumerate(self.children[0].rows(draw)):
            _random.begin(*key, number)
            try:
                made = apply(self._functions, [row[at] for at in self._at])
            except Exception:
                if failed == ():
                    raise
                failed.append(number)
                continue
            finally:
                _random.end()
            if len(made) != self._count:
                raise PipelineError(
                    f"map operation: [PyFunc] failed. The number of columns returned ({len(made)}) should "
                    f"match the number of 'output_columns' ({self._count})"
                )
            if not self._in_place:
                yield made + [row[at] for at in self._rest]
                continue
            row = list(row)
            for at, value in zip(self._at, made, strict=True):
                row[at] = value
            yield row


def apply(functions, values):
    """The functions one after the other; a tuple is several values."""
    for function in functions:
        answer = function(*values)
        values = answer if isinstance(answer, tuple) else (answer,)
    return [value_of(value) for value in values]


class Filter(Node):
    """The rows for which the predicate holds."""

    def __init__(self, child, predicate, inputs):
        super().__init__([child], child.columns)
        self._at = [child.index(name, "filter") for name in inputs or child.columns]
        self._predicate = predicate

    def size(self):
        return UNKNOWN

    def rows(self, draw):
        for row in self.children[0].rows(draw):
            keep = self._predicate(*[row[at] for at in self._at])
            if not isinstance(keep, bool | numpy.bool_ | numpy.ndarray):
                raise PipelineError(
                    f"filter: the predicate returned {type(keep).__name__}; Invalid data, it should be a bool"
                )
            if numpy.all(keep):
                yield row


class BatchInfo:
    """What `per_batch_map` and `batch_size` of one's own are told."""

    def __init__(self, batch, epoch):
        self._batch, self._epoch = batch, epoch

    def get_batch_num(self):
        """The number of the batch in its pass, from 0 on."""
        return self._batch

    def get_epoch_num(self):
        """The number of the pass, from 0 on."""
        return self._epoch


class Batch(Node):
    """Rows stacked; `size` may be a function of BatchInfo. `padding`: see padded."""

    def __init__(self, child, size, drop_remainder, change=None, inputs=None, outputs=None, padding=None):
        if change is not None and inputs is None:
            inputs = list(child.columns)
        self._at = [child.index(name, "batch") for name in inputs or []]
        names = outputs or inputs or []
        if change is not None and len(names) != len(self._at):
            columns = [*names, *(name for name in child.columns if name not in inputs)]
        else:
            renamed = dict(zip(inputs or [], names, strict=True))
            columns = [renamed.get(name, name) for name in child.columns]
        super().__init__([child], columns)
        self._outputs = len(names)
        self.rows_of_batch, self._drop, self._change, self._padding = size, drop_remainder, change, padding
        for name in padding or {}:
            child.index(name, "padded_batch")

    def size(self):
        rows = self.children[0].size()
        if callable(self.rows_of_batch) or rows in (UNKNOWN, ENDLESS):
            return UNKNOWN if callable(self.rows_of_batch) else rows
        return rows // self.rows_of_batch if self._drop else -(-rows // self.rows_of_batch)

    def rows(self, draw):
        rows = self.children[0].rows(draw)
        for number in itertools.count():
            info = BatchInfo(number, draw.number)
            want = self.rows_of_batch(info) if callable(self.rows_of_batch) else self.rows_of_batch
            if not isinstance(want, int) or want < 1:
                raise PipelineError(
                    f"batch: the function batch_size returned {want!r}, which must be an int above 0"
                )
            taken = list(itertools.islice(rows, want))
            if not taken or (len(taken) < want and self._drop):
                return
            yield self._stacked(taken, info)

    def _stacked(self, taken, info):
        names = self.children[0].columns
        columns = [[row[at] for row in taken] for at in range(len(names))]
        if self._change is not None:
            columns = self._changed(columns, info)
            names = self.columns
        if self._padding is not None:
            columns = [
                padded(column, *self._padding.get(name, (None, None)))
                if name in self._padding or not self._padding
                else column
                for name, column in zip(names, columns, strict=True)
            ]
        return [stacked(name, column) for name, column in zip(names, columns, strict=True)]

    def _changed(self, columns, info):
        # Of their own: what a script writes to them must not reach the arrays of its source.
        given = [[copy.copy(each) for each in columns[at]] for at in self._at]
        answer = self._change(*given, info)
        made = list(answer) if isinstance(answer, tuple) else [answer]
        if len(made) != self._outputs:
            raise PipelineError(
                f"batch: per_batch_map returned {len(made)} columns (Invalid data) for {self._outputs}"
            )
        made = [
            value_of(column) if isinstance(column, dict) else [value_of(each) for each in column]
            for column in made
        ]
        if self._outputs == len(self._at):
            for at, column in zip(self._at, made, strict=True):
                columns[at] = column
            return columns
        return made + [column for at, column in enumerate(columns) if at not in self._at]


def stacked(name, column):
    """The rows of a column as one array."""
    if isinstance(column, dict):
        return column
    if isinstance(column[0], dict):
        if any(each.keys() != column[0].keys() for each in column):
            kinds = sorted({str(list(each)) for each in column})
            raise PipelineError(
                f"batch: the dicts of column '{name}' have different keys, {' and '.join(kinds)}: the rows "
                "of a batch need the same ones"
            )
        return {key: stacked(name, [each[key] for each in column]) for key in column[0]}
    if isinstance(column[0], list | tuple):
        return [stacked(name, list(each)) for each in zip(*column, strict=True)]
    strange = [type(each).__name__ for each in column if type(each) is not numpy.ndarray]
    if strange:
        text = f"the dicts of column '{name}' hold {strange[0]}, of which no batch is made"
        raise PipelineError(f"batch: {text}: make numbers of it, or leave it out, by map()")
    kinds = {(value.shape, value.dtype.kind) for value in column}
    if len(kinds) > 1:
        shapes = sorted({str(value.shape) for value in column})
        what = "shapes" if len(shapes) > 1 else "data types"
        found = ", ".join(shapes if len(shapes) > 1 else sorted({str(value.dtype) for value in column}))
        raise PipelineError(
            f"batch: Inconsistent batch {what}: column '{name}' has rows of {found}; batch operation expects "
            "the same for all rows of a batch: use padded_batch, or per_batch_map"
        )
    return numpy.stack(column)


def padded(column, shape, value):
    """Each row filled up at its end to `shape`; None (a size or all): the largest of the batch."""
    largest = [max(sizes) for sizes in zip(*[row.shape for row in column], strict=True)]
    if shape is None:
        shape = [None] * len(largest)
    if len(shape) != len(largest):
        raise PipelineError(
            f"padded_batch: rank of pad_shape {list(shape)} differs from that of rows {largest}"
        )
    sizes = [large if size in (None, -1) else size for size, large in zip(shape, largest, strict=True)]
    if value is None:
        value = "" if column[0].dtype.kind == "U" else b"" if column[0].dtype.kind == "S" else 0
    return [_filled(row, sizes, value) for row in column]


def _filled(row, sizes, value):
    is_text = row.dtype.kind in "US"
    if is_text != isinstance(value, str | bytes):
        raise PipelineError(f"padded_batch: {value!r} cannot fill up rows of {row.dtype}")
    dtype = numpy.result_type(row.dtype, numpy.asarray(value).dtype) if is_text else row.dtype
    made = numpy.full(sizes, value, dtype)
    part = tuple(slice(0, min(have, want)) for have, want in zip(row.shape, sizes, strict=True))
    made[part] = row[part]
    return made


class Buckets(Node):
    """Rows of like length batched together."""

    def __init__(self, child, columns, settings):
        super().__init__([child], child.columns)
        self._at = [child.index(name, "bucket_batch_by_length") for name in columns]
        self._settings = settings

    def size(self):
        return UNKNOWN

    def _length(self, row):
        values = [row[at] for at in self._at]
        if (length := self._settings["length"]) is None:
            return values[0].shape[0] if values[0].shape else 0
        answer = numpy.asarray(length(*values))
        if answer.size != 1 or answer.dtype.kind not in "iub":
            raise PipelineError(
                f"bucket_batch_by_length: element_length_function returned {answer}, not a whole number"
            )
        return int(answer.reshape(()))

    def rows(self, draw):
        bounds, sizes = self._settings["boundaries"], self._settings["sizes"]
        buckets = [[] for _ in sizes]
        for row in self.children[0].rows(draw):
            length = self._length(row)
            if length < 0:
                raise PipelineError(f"bucket_batch_by_length: element_length_function returned {length}")
            at = sum(length >= bound for bound in bounds)
            buckets[at].append(row)
            if len(buckets[at]) == sizes[at]:
                yield self._batch(buckets[at], at)
                buckets[at] = []
        if not self._settings["drop_remainder"]:
            for at, rows in enumerate(buckets):
                if rows:
                    yield self._batch(rows, at)

    def _batch(self, rows, at):
        padding, bounds = self._settings["pad_info"], self._settings["boundaries"]
        made = []
        for name, column in zip(self.columns, zip(*rows, strict=True), strict=True):
            shape, value = (padding or {}).get(name, (None, None))
            if self._settings["to_boundary"] and (name in padding if padding else True):
                if at == len(bounds):
                    raise PipelineError(
                        "bucket_batch_by_length: a row is longer than the last of bucket_boundaries, and "
                        "pad_to_bucket_boundary is set"
                    )
                shape = [
                    bounds[at] - 1 if size is None else size for size in shape or [None] * column[0].ndim
                ]
            made.append(stacked(name, padded(list(column), shape, value)))
        return made


class Shuffle(Node):
    """Each row drawn from the next `buffer` that have not come yet."""

    def __init__(self, child, buffer):
        super().__init__([child], child.columns)
        self._buffer = buffer

    def rows(self, draw):
        random = draw.stream(self.place)
        rows = self.children[0].rows(draw)
        kept = list(itertools.islice(rows, self._buffer))
        for row in rows:
            at = int(random.integers(len(kept)))
            yield kept[at]
            kept[at] = row
        random.shuffle(order := list(range(len(kept))))
        yield from (kept[at] for at in order)


class Repeat(Node):
    """All rows `count` times."""

    def __init__(self, child, count):
        super().__init__([child], child.columns)
        self._count = count

    def size(self):
        rows = self.children[0].size()
        return rows if rows in (UNKNOWN, ENDLESS) else rows * self._count if self._count > 0 else ENDLESS

    def rows(self, draw):
        repetitions = range(self._count) if self._count > 0 else itertools.count()
        for repetition in repetitions:
            came = False
            for row in self.children[0].rows(draw.again(repetition, self._count)):
                came = True
                yield row
            if not came:
                return


class Part(Node):
    """Rows `begin` to `end` (None: all)."""

    def __init__(self, child, begin, end):
        super().__init__([child], child.columns)
        self._begin, self._end = begin, end

    def size(self):
        rows = self.children[0].size()
        if rows is UNKNOWN or (rows == ENDLESS and self._end is None):
            return rows
        return len(range(*slice(self._begin, self._end).indices(rows if rows != ENDLESS else self._end)))

    def rows(self, draw):
        return itertools.islice(self.children[0].rows(draw), self._begin, self._end)


class Sampled(Node):
    """The rows of one shard in their order (`shards` many), or all in random order."""

    def __init__(self, child, shard=None, shards=1):
        super().__init__([child], child.columns)
        self._shard, self._shards = shard, shards

    def size(self):
        rows = self.children[0].size()
        if rows in (UNKNOWN, ENDLESS) or self._shard is None:
            return rows
        return len(range(self._shard, rows, self._shards))

    def rows(self, draw):
        rows = self.children[0].rows(draw)
        if self._shard is not None:
            return itertools.islice(rows, self._shard, None, self._shards)
        kept = list(rows)
        draw.stream(self.place).shuffle(order := list(range(len(kept))))
        return (kept[at] for at in order)


class Columns(Node):
    """Some columns, under other names."""

    def __init__(self, child, at, names):
        super().__init__([child], names)
        self._at = at

    def rows(self, draw):
        for row in self.children[0].rows(draw):
            yield [row[at] for at in self._at]


class Zip(Node):
    """The columns of all side by side."""

    def __init__(self, children):
        columns = [name for child in children for name in child.columns]
        twice = [name for name, count in collections.Counter(columns).items() if count > 1]
        if twice:
            raise PipelineError(f"zip: two datasets have a column named '{twice[0]}': rename one")
        super().__init__(children, columns)

    def size(self):
        sizes = [child.size() for child in self.children]
        if UNKNOWN in sizes:
            return UNKNOWN
        return min((size for size in sizes if size != ENDLESS), default=ENDLESS)

    def rows(self, draw):
        for parts in zip(*[child.rows(draw) for child in self.children], strict=False):
            yield [value for part in parts for value in part]


class Concat(Node):
    """The rows of the first, then those of the second, ..."""

    def __init__(self, children):
        first = children[0].columns
        for child in children[1:]:
            if sorted(child.columns) != sorted(first):
                raise PipelineError(f"concat: the columns differ: {first} and {child.columns}")
        super().__init__(children, first)

    def size(self):
        sizes = [child.size() for child in self.children]
        return UNKNOWN if UNKNOWN in sizes else ENDLESS if ENDLESS in sizes else sum(sizes)

    def rows(self, draw):
        kinds = None
        for child in self.children:
            at = [child.columns.index(name) for name in self.columns]
            for row in child.rows(draw):
                row = [row[each] for each in at]
                these = [
                    (getattr(value, "ndim", None), getattr(value, "dtype", type(value))) for value in row
                ]
                kinds = kinds or these
                for name, was, now in zip(self.columns, kinds, these, strict=True):
                    if was != now and not (was[0] == now[0] and _both_text(was[1], now[1])):
                        raise PipelineError(
                            f"concat: column '{name}' is {was[1]} of rank {was[0]} in one dataset and "
                            f"{now[1]} of rank {now[0]} in another (Mismatched data)"
                        )
                yield row


def _both_text(a, b):
    return getattr(a, "kind", "") in "US" and getattr(b, "kind", "") == getattr(a, "kind", "")


class FlatMap(Node):
    """The rows of the dataset that a function makes of each row."""

    def __init__(self, child, function, columns, node_of):
        super().__init__([child], columns)
        self._function, self._node_of = function, node_of

    def size(self):
        return UNKNOWN

    def rows(self, draw):
        for row in self.children[0].rows(draw):
            yield from self._node_of(self._function(*row)).rows(draw)
