"""Arguments of datasets and their operations, checked as MindSpore checks them: type first, then value."""

import numbers
import os

from muster import _core

INT32_MAX = 2147483647
UINT32_MAX = 4294967295


class PipelineError(RuntimeError, ValueError):
    """What a pass over a dataset cannot do: MindSpore says RuntimeError, the library below ValueError."""


class DamagedError(PipelineError, _core.CorruptDataError):
    """A file that cannot be read: MindSpore says RuntimeError, the library below CorruptDataError."""


def pipeline_error(error):
    """What the library refuses in a pass is a RuntimeError in MindSpore; other errors stay as they are."""
    if type(error) is _core.CorruptDataError:
        return DamagedError(str(error))
    return PipelineError(str(error)) if type(error) is ValueError else error


class RowError(PipelineError, TypeError):
    """A value that no column can hold: a TypeError of Python's, and MindSpore's RuntimeError."""


def is_whole(value) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def of_type(name, value, *types, optional=False):
    """`value`, if it is of one of the types; bool is no number."""
    if optional and value is None:
        return value
    if isinstance(value, bool) and bool not in types and object not in types:
        fits = False
    elif (int in types and is_whole(value)) or (float in types and is_number(value)):
        fits = True
    else:
        fits = isinstance(value, types)
    if not fits:
        shown = '""' if isinstance(value, str) and not value else value
        raise TypeError(
            f"Argument {name} with value {shown} is not of type {list(types)}, but got {type(value)}."
        )
    return value


def whole(name, value, low, high=INT32_MAX, optional=False):
    """`value`, a whole number of `low` to `high`."""
    if optional and value is None:
        return value
    of_type(name, value, int)
    if not low <= value <= high:
        raise ValueError(f"Input {name} is not within the required interval of [{low}, {high}].")
    return int(value)


def number(name, value, low=None, high=None, above=None):
    """`value`, a number from `low` (or above `above`) to `high`."""
    of_type(name, value, int, float)
    too_low = (low is not None and value < low) or (above is not None and value <= above)
    if value != value or too_low or (high is not None and value > high):
        left = f"({above}" if above is not None else f"[{'-inf' if low is None else low}"
        right = "inf)" if high is None else f"{high}]"
        raise ValueError(f"Input {name} is not within the required interval of {left}, {right}.")
    return float(value)


def probability(name, value):
    return number(name, value, 0, 1)


def names(name, value, optional=True):
    """Column names as a list; a name stands for a list of it."""
    if value is None and optional:
        return None
    if not isinstance(value, str | list | tuple):
        of_type(name, value, list, str)
    given = [value] if isinstance(value, str) else list(value)
    for each in given:
        if not isinstance(each, str):
            raise TypeError(
                f"Argument {name}[{given.index(each)}] with value {each} is not of type [<class 'str'>]"
                f", but got {type(each)}."
            )
        if not each:
            raise ValueError(f"{name}[{given.index(each)}] should not be empty.")
    if not given:
        raise ValueError(f"{name} should not be empty.")
    if len(set(given)) != len(given):
        raise ValueError("Every column name should not be same with others in column_names.")
    return given


def shards(num_shards, shard_id):
    """Both or neither."""
    if (num_shards is None) != (shard_id is None):
        which = (
            "shard_id is specified but num_shards is not"
            if num_shards is None
            else "num_shards is specified and currently requires shard_id as well"
        )
        raise PipelineError(f"{which}. num_shards and shard_id need to be passed in together.")
    if num_shards is not None:
        whole("num_shards", num_shards, 1)
        of_type("shard_id", shard_id, int)
        if not 0 <= shard_id < num_shards:
            raise ValueError(
                f"Input shard_id is not within the required interval of [0, {num_shards - 1}]: "
                "shard_id should be less than num_shards."
            )


def padding(pad_info):
    """What a row is filled up to, by column; None: all columns to the largest."""
    if pad_info is None:
        return {}
    of_type("pad_info", pad_info, dict)
    for name, entry in pad_info.items():
        of_type("key in pad_info", name, str)
        if entry is None:
            continue
        of_type("value in pad_info", entry, tuple)
        if len(entry) != 2:
            raise ValueError(f"value in pad_info: {entry} is not (shape, value)")
        of_type("shape in pad_info", entry[0], list, optional=True)
    return {name: (None, None) if entry is None else entry for name, entry in pad_info.items()}


class _NoFolderError(FileNotFoundError, ValueError):
    """MindSpore says ValueError, the library below FileNotFoundError."""


def folder(path):
    """The path of a folder that is there."""
    if not os.path.isdir(path):
        raise _NoFolderError(f"The folder {path} does not exist or is not a directory or permission denied!")
    return str(path)


def function_of(name, value):
    """A TypeError where `value` is neither None nor a function."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} takes a function, not {value!r}")


def files_there(given):
    """The files that are given, each of which must be there."""
    files = [given] if isinstance(given, str) else list(given)
    missing = [file for file in files if not isinstance(file, str) or not os.path.isfile(file)]
    if missing or not files:
        raise PipelineError(
            f"there is no file {missing[0]!r}" if missing else "there are no files: the list is empty"
        )
    return files


def batch_size_of(value):
    """The size of a batch, or what gives it; True is 1, as in Python."""
    if not isinstance(value, int) and not is_whole(value) and not callable(value):
        raise TypeError(f"batch_size should either be an int or a callable, but got {type(value)}.")
    if not callable(value):
        return whole("batch_size", int(value), 1)
    arguments = getattr(getattr(value, "__code__", None), "co_argcount", 1) - hasattr(value, "__self__")
    if arguments != 1:
        raise ValueError(f"batch_size: its function takes one argument, a BatchInfo, not {arguments}")
    return value


def buckets(boundaries, sizes):
    """Checks where the buckets of bucket_batch_by_length end."""
    for name, values in (("bucket_boundaries", boundaries), ("bucket_batch_sizes", sizes)):
        if not values:
            raise ValueError(f"{name} cannot be empty.")
        for value in values:
            if not is_whole(value):
                raise TypeError(f"{name} should be a list of int.")
            if value <= 0:
                rule = "must only contain" if name == "bucket_boundaries" else "should be a list of"
                raise ValueError(f"{name} {rule} positive numbers.")
    if sorted(set(boundaries)) != boundaries:
        raise ValueError("bucket_boundaries should be strictly increasing.")
    if len(sizes) != len(boundaries) + 1:
        raise ValueError("bucket_batch_sizes must contain one element more than bucket_boundaries.")


def split_sizes(sizes, total):
    """How many rows each part of a split has."""
    of_type("sizes", sizes, list)
    if not sizes:
        raise ValueError("sizes cannot be empty.")
    if all(is_whole(size) for size in sizes):
        if any(size <= 0 for size in sizes):
            raise ValueError("sizes is a list of int, but there should be no negative or zero numbers.")
        if sum(sizes) != total:
            raise RuntimeError(f"Sum of split sizes {sum(sizes)} is not equal to dataset size {total}.")
        return sizes
    if not all(isinstance(size, float) for size in sizes):
        raise ValueError("sizes should be list of int or list of float.")
    if any(not 0 < size <= 1 for size in sizes):
        raise ValueError("sizes is a list of float, but there should be no numbers outside the range (0, 1].")
    if abs(sum(sizes) - 1) > 1e-9:
        raise ValueError("sizes is a list of float, but the percentages do not sum up to 1.")
    counts = [round(total * size) for size in sizes]
    for size, count in zip(sizes, counts, strict=True):
        if count == 0:
            raise RuntimeError(f"Split size {size} is too small: it gives no rows of {total}.")
    at, rest = 0, total - sum(counts)
    while rest:
        step = 1 if rest > 0 else -1
        if counts[at] + step > 0:
            counts[at] += step
            rest -= step
        at = (at + 1) % len(counts)
    return counts
