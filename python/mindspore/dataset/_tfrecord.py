"""TFRecord files: records of tf.train.Example, without TensorFlow."""

import gzip
import zlib

from mindspore._lazy import numpy
from mindspore.dataset._checks import DamagedError, PipelineError
from muster import _core


def examples(path, compression=None):
    """The records of a file as bytes."""
    with open(path, "rb") as file:
        data = file.read()
    if compression:
        try:
            data = gzip.decompress(data) if compression == "GZIP" else zlib.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise PipelineError(
                f"TFRecordDataset: {path} is not compressed as {compression}, or damaged: {error}"
            ) from None
    made, end = _core._records_in(data)
    if end < len(data):
        raise DamagedError(
            f"TFRecordDataset: {path} is no TFRecord file, cut off or damaged: record {len(made)}, at byte "
            f"{end}, does not have the length or the checksum that it says"
        )
    return made


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data):
    """(number, value) of a protobuf message: whole numbers, and bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"a field of kind {kind}")
        if at > len(data):
            raise ValueError("a field that is cut off")
        yield tag >> 3, value


def features(example, place):
    """The features of an example, by name: bytes, float32 or int64. `place` is for the error."""
    made = {}
    try:
        for _, entries in _fields(example):
            for _, entry in _fields(entries):
                parts = dict(_fields(entry))
                made[parts[1].decode()] = _feature(parts.get(2, b""))
    except (IndexError, KeyError, TypeError, ValueError, AttributeError):
        raise PipelineError(f"TFRecordDataset: {place} is no tf.train.Example") from None
    return made


def _feature(data):
    for number, values in _fields(data):
        if number == 1:
            return [value for _, value in _fields(values)]
        if number == 2:
            return numpy.frombuffer(b"".join(value for _, value in _fields(values)), "<f4").copy()
        whole = []
        for _, value in _fields(values):
            if isinstance(value, int):
                whole.append(value)
                continue
            at = 0
            while at < len(value):
                each, at = _varint(value, at)
                whole.append(each)
        return numpy.array([each - (1 << 64) if each >> 63 else each for each in whole], numpy.int64)
    return numpy.zeros(0, numpy.float32)


def column(found, name, field, place):
    """A feature as a schema has it; without one as it is. `place` is for the error."""
    value = found.get(name)
    if value is None:
        raise PipelineError(f"TFRecordDataset: {place} has no feature '{name}'; it has {sorted(found)}")
    try:
        return _as_in_schema(value, field)
    except ValueError as error:
        raise PipelineError(
            f"TFRecordDataset: feature '{name}' of {place} is not as the schema says ({field}): {error}"
        ) from None


def _as_in_schema(value, field):
    if field is None:
        return _bytes_in(value) if isinstance(value, list) else value
    made = _converted(value, field["type"])
    return made.reshape(field["shape"]) if "shape" in field else made


def _bytes_in(texts):
    return numpy.frombuffer(b"".join(texts), numpy.uint8).copy()


def _converted(value, dtype):
    """In the schema's dtype; ValueError where the numbers would be others."""
    if isinstance(value, list):
        if dtype == "string":
            return numpy.array([each.decode(errors="replace") for each in value])
        return _bytes_in(value).astype(dtype)
    if dtype == "string":
        raise ValueError(f"it has numbers ({value.dtype})")
    wanted = numpy.dtype(dtype)
    if value.dtype.kind == "f" and wanted.kind in "iu" and value.size > 0:
        raise ValueError("it has fractions (float32)")
    made = value.astype(wanted)
    if wanted.kind in "iu" and (made != value).any():
        raise ValueError(f"{value[made != value][0]} does not fit into {dtype}")
    return made
