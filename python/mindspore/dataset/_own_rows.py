"""Rows of a source of one's own, as the library's tensors hold them."""

import functools
import operator

from mindspore.dataset import _checks
from muster import _draws


class Rows:
    """A source of one's own: its rows as the library's tensors hold them."""

    _tells = True  # what it draws, by itself

    def __init__(self, source, columns, types=None):
        self._source, self._columns, self._types = source, columns, types
        at = functools.partial(operator.getitem, source)
        self._at = _draws.told(at, _draws.OF_ROWS, _name_of(source), getattr(source, "__getitem__", None))

    def __len__(self):
        return len(self._source)

    def row(self, number):
        """Row `number` as arrays, or whatever numpy holds."""
        from mindspore.dataset import _iterators

        try:
            row = self._at(number)
        except Exception as error:
            raise _iterators.of_user(error) from error
        return self.values(row)

    def values(self, row):
        """The values of a row, one for each column."""
        from mindspore.dataset import _iterators, _rows

        if not isinstance(row, tuple | list):
            row = (row,)
        if len(row) != len(self._columns):
            raise _checks.PipelineError(
                "GeneratorDataset: the 'source' of 'GeneratorDataset' should return same number of NumPy "
                "arrays as specified in column_names, the size of column_names is:"
                f"{len(self._columns)} and number of returned NumPy array is:{len(row)} (Invalid columns "
                f"size); a row is a tuple with a value for each of {self._columns}"
            )
        try:
            values = [_rows.value_of(value) for value in row]
        except TypeError as error:
            raise _iterators.of_user(error) from None
        if self._types:
            for value, dtype in zip(values, self._types, strict=True):
                _check_dtype(value, dtype)
        return values

    def __getitem__(self, number):
        from mindspore.dataset import _rows

        return tuple([_rows.held(value) for value in self.row(number)])


def _name_of(source):
    return getattr(source, "__name__", type(source).__name__)


def _check_dtype(value, dtype):
    from mindspore.dataset import _types

    if dtype is not None and value.dtype != _types.numpy_dtype(dtype):
        raise _checks.PipelineError(
            f"GeneratorDataset: data type of a column is not the same as in column_types: {value.dtype} and "
            f"{_types.numpy_dtype(dtype)}"
        )


class Sequence:
    """Rows that come one after the other, as the library's tensors hold them."""

    _tells = True  # what it draws, and what its passes change, by itself

    def __init__(self, rows, begin, num_samples):
        self._of_row, self._begin, self._num_samples = rows, begin, num_samples
        self._watch = None

    def _look(self):
        """In a job that recovers, at what the passes change in the source."""
        if not _draws.recovers():
            return
        from muster import _carried

        self._watch = self._watch or _carried.SourceWatch(self._of_row._source)
        self._watch.begin_pass()

    def rows(self, draw=None):
        """One pass over the rows."""
        from mindspore.dataset import _iterators

        self._look()
        rows = self._begin()
        following = _draws.told(rows.__next__, _draws.IN_TURN, _name_of(self._of_row._source), of=None)
        number = 0
        while self._num_samples is None or number < self._num_samples:
            try:
                row = following()
            except StopIteration:
                return
            except Exception as error:
                raise _iterators.of_user(error) from error
            number += 1
            yield self._of_row.values(row)

    def __iter__(self):
        from mindspore.dataset import _rows

        for row in self.rows():
            yield tuple([_rows.held(value) for value in row])


class CountedSequence(Sequence):
    """One whose length is known."""

    def __init__(self, rows, begin, num_samples, source):
        super().__init__(rows, begin, num_samples)
        self._source = source

    def __len__(self):
        rows = len(self._source)
        return rows if self._num_samples is None else min(rows, self._num_samples)
