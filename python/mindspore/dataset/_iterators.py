"""Loops over datasets: each pass goes on where it was left, and a new one begins behind its end."""

import functools
import itertools
import weakref
from _thread import _local  # threading takes longer to import

from mindspore.dataset import _checks
from muster import _core


class _StringTensor:
    """Text in a Tensor's place: `asnumpy` gives numpy's array of it."""

    def __init__(self, array):
        self._array = array
        self.shape = array.shape
        self.ndim = array.ndim
        self.size = array.size

    @property
    def dtype(self):
        """MindSpore's name of it."""
        return "String"

    def asnumpy(self):
        """The text as a numpy array."""
        return self._array

    def __getitem__(self, index):
        return _StringTensor(self._array[index])

    def __len__(self):
        return len(self._array)

    def __eq__(self, other):
        return str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def __str__(self):
        return str(self._array)

    def __repr__(self):
        return f"Tensor(shape={list(self.shape)}, dtype=String, value= {self._array.tolist()!r})"


def tensor_of(value):
    """A column's value as a Tensor; dicts hold Tensors."""
    if isinstance(value, dict):
        return {name: tensor_of(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        made = [tensor_of(each) for each in value]
        return tuple(made) if isinstance(value, tuple) else made
    if not hasattr(value, "dtype"):  # None and a script's own objects within a dict
        return value
    if value.dtype.kind in "US":
        return _StringTensor(value)
    return _core.Tensor(value)


@functools.cache
def _also_runtime_error(kind):
    """A class of exceptions that is `kind` and a RuntimeError; None where no class can be both."""
    bases = (RuntimeError,) if issubclass(RuntimeError, kind) else (kind, RuntimeError)
    try:
        members = {"__module__": kind.__module__, "__str__": _text, "__reduce__": _reduce, "_kind": kind}
        return type(kind.__name__, bases, members)
    except TypeError:
        return None


def _reduce(error):
    return _of_both, (type(error)._kind, error.args)


def _of_both(kind, args):
    made = _also_runtime_error(kind)
    error = made.__new__(made)
    error.args = args
    return error


def _text(error):
    return str(error.args[0]) if error.args else ""


_FAILED = "map operation: [PyFunc] failed. "


def of_user(error):
    """An exception of a script's own function as MindSpore has it: a RuntimeError; here of both types."""
    is_runtime_error = isinstance(error, RuntimeError) and type(error) is not RuntimeError
    if is_runtime_error or isinstance(error, StopIteration | KeyboardInterrupt):
        return error
    kind = _also_runtime_error(type(error))
    if kind is None:
        return error
    import traceback  # a script without errors starts sooner without it

    text = "".join(traceback.format_exception(error))
    head = f"Exception thrown from user defined Python function in dataset.\n{_FAILED}Error description:\n"
    made = _of_both(type(error), (head + text,))
    made.__dict__.update(error.__dict__)
    return made


def located(rows, origins):
    """The rows; an error of a script's function says where the rows were read from: `origins`, paths."""
    try:
        yield from rows
    except RuntimeError as error:
        if origins and _FAILED in str(error):
            place = f"The corresponding data file is: {', '.join(origins)}. "
            error.args = (str(error).replace(_FAILED, _FAILED + place, 1),)
        raise


_joins = None  # what makes whole columns of slices: dataset._slices, where a dataset_strategy has them


def join_with(function) -> None:
    """Rows are what `function` gives for them."""
    global _joins
    _joins = function


_here = _local()  # of a thread: whether whoever asks for a row joins it by itself


def unjoined(items):
    """The items of an iterable, in which rows of datasets are as they were read."""
    iterator = None
    while True:
        before, _here.is_unjoined = getattr(_here, "is_unjoined", False), True
        try:
            iterator = iter(items) if iterator is None else iterator
            item = next(iterator)
        except StopIteration:
            return
        finally:
            _here.is_unjoined = before
        yield item


ITERATORS_LIST = []  # weak references to the iterators that live


def _cleanup():
    """Ends the passes of all iterators."""
    for each in list(ITERATORS_LIST):
        if (iterator := each()) is not None:
            iterator.stop()


def _forget(gone):
    ITERATORS_LIST[:] = [each for each in ITERATORS_LIST if each is not gone and each() is not gone()]


class Iterator:
    """`num_epochs` passes over a dataset (-1: without end); a `for` loop takes what is left of one."""

    def __init__(self, dataset, num_epochs, output_numpy, do_copy=False, _is_further_pass=False):
        _checks.of_type("num_epochs", num_epochs, int)
        if num_epochs != -1 and num_epochs < 1:
            raise RuntimeError(f"num_epochs should be either -1 or positive, but got: {num_epochs}")
        _checks.of_type("output_numpy", output_numpy, bool)
        _checks.of_type("do_copy", do_copy, bool)
        self._dataset, self._left, self._as_numpy = dataset, num_epochs, output_numpy
        self._pass = None
        # The number of its next pass, and how many items of that are left out.
        self._number, self._left_out = (0, 0) if _is_further_pass else dataset._go_on()
        self._closed = False
        ITERATORS_LIST.append(weakref.ref(self, _forget))

    def __iter__(self):
        return self

    def __next__(self):
        if self._pass is None:
            self._begin()
        for row in self._pass:
            joins = _joins is not None and not getattr(_here, "is_unjoined", False)
            return self._item(_joins(row) if joins else row)
        self._pass = None
        raise StopIteration

    def _begin(self):
        if self._closed:
            raise RuntimeError("the iterator was released or stopped")
        if self._left == 0:
            raise RuntimeError(
                "The number of epochs that were asked for (num_epochs) is over: make a new iterator"
            )
        self._left -= self._left > 0
        rows = self._dataset._begin_pass(self._as_numpy, self._number)
        left_out, self._left_out = self._left_out, 0
        self._pass = itertools.islice(rows, left_out, None) if left_out else rows
        self._number = None if self._number is None else self._number + 1

    def __getattr__(self, name):
        raise AttributeError(f"an iterator over a dataset has no '{name}'")

    def stop(self):
        """Ends the passes."""
        self._pass, self._closed = None, True
        _forget(weakref.ref(self))

    release = stop


class TupleIterator(Iterator):
    """Rows as lists."""

    _item = staticmethod(list)


class DictIterator(Iterator):
    """Rows as dicts by column name."""

    def _item(self, row):
        return dict(zip(self._dataset._columns, row, strict=True))


__all__ = ["Iterator"]
