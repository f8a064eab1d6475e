"""Classes FileWriter and FileReader."""

import math
import os
import re

import numpy

from mindspore.mindrecord import _format
from mindspore.mindrecord._errors import (
    MRMDefineIndexError,
    MRMInvalidSchemaError,
    ParamKindError,
    ParamTypeError,
    ParamValueError,
)

SUCCESS, FAILED = "SUCCESS", "FAILED"
_TYPES = ("int32", "int64", "float32", "float64", "string", "bytes")


def paths_of(name):
    """The files that belong together, of the name of one of them."""
    path = os.path.abspath(os.path.expanduser(name))
    addresses = _format.File(path).header["shard_addresses"]
    folder = os.path.dirname(path)
    return [os.path.join(folder, os.path.basename(each)) for each in addresses]


class FileWriter:
    """Writes rows as `shard_num` files of MindRecord, FILE (or FILE0, FILE1, ...), each with its index."""

    def __init__(self, file_name, shard_num=1, overwrite=False):
        if not isinstance(file_name, str):
            raise ParamKindError(
                f"Invalid parameter, file_name must be a str, not {type(file_name).__name__}"
            )
        if not isinstance(shard_num, int) or isinstance(shard_num, bool):
            raise ParamKindError(
                f"Invalid parameter, shard_num must be an int, not {type(shard_num).__name__}"
            )
        if not 1 <= shard_num <= 1000:
            raise ParamValueError(f"Invalid parameter, shard_num must be from 1 to 1000, not {shard_num}")
        if re.search(r'[*?"<>|`&\';]', file_name):
            raise ParamValueError(
                f"Invalid file, the file name {file_name} has a character that is not allowed"
            )
        digits = len(str(shard_num - 1))
        names = [file_name] if shard_num == 1 else [f"{file_name}{at:0{digits}d}" for at in range(shard_num)]
        self._paths = [os.path.abspath(name) for name in names]
        for path in self._paths:
            for each in (path, path + ".db"):
                if os.path.exists(each) and not overwrite:
                    raise RuntimeError(
                        f"Invalid file, mindrecord file: {each} already exists. Please set the "
                        f"'overwrite' to True"
                    )
        self._schema, self._description, self._rows, self._indexes = None, "", [], None

    @classmethod
    def open_for_append(cls, file_name):
        """A writer that adds rows to files that are there."""
        paths = paths_of(file_name)
        files = [_format.File(path) for path in paths]
        made = cls.__new__(cls)
        made._paths, made._schema = paths, files[0].schema
        made._description = files[0].header["schema"][0]["desc"]
        made._indexes = [each["index_field"] for each in files[0].header["index_fields"] or []]
        made._rows = [file.row(number) for file in files for number in range(len(file.places))]
        return made

    def add_schema(self, content, desc=None):
        """The fields of rows: {"name": {"type": ..., "shape": [...]}}."""
        if not isinstance(content, dict) or not content:
            raise MRMInvalidSchemaError(f"Schema content is not a dict of fields by name: {content!r}")
        for name, field in content.items():
            if str(name)[:1].isdigit():
                raise RuntimeError(f"Invalid schema, field '{name}' begins with a digit")
            if not re.fullmatch(r"[0-9A-Za-z_]+", str(name)):
                raise MRMInvalidSchemaError(
                    f"Invalid schema, field '{name}' should be composed of '0-9', 'a-z', 'A-Z' and '_'."
                )
            if not isinstance(field, dict) or field.get("type") not in _TYPES:
                raise MRMInvalidSchemaError(
                    f"Invalid schema, the type of field '{name}' must be one of {_TYPES}, not {field}"
                )
            if set(field) - {"type", "shape"}:
                raise MRMInvalidSchemaError(
                    f"Invalid schema, field '{name}' has more than type and shape: {field}"
                )
            if "shape" in field and field["type"] in ("bytes", "string"):
                raise MRMInvalidSchemaError(f"Invalid schema, field '{name}': {field['type']} has no shape")
        self._schema, self._description = dict(sorted(content.items())), desc or ""

    def add_index(self, index_fields):
        """Fields to search for: scalars."""
        if not isinstance(index_fields, list) or not index_fields:
            raise ParamTypeError("Invalid parameter, index_fields must be a list of names")
        for name in index_fields:
            if self._schema is None or name not in self._schema:
                raise MRMDefineIndexError(f"Failed to set field '{name}' as index: it is not in the schema")
            if name in _format.blob_fields(self._schema):
                raise MRMDefineIndexError(
                    f"Failed to set field '{name}' as index: bytes and arrays have none"
                )
        self._indexes = list(index_fields)

    def write_raw_data(self, raw_data, parallel_writer=False):
        """Adds rows: dicts by field."""
        if not isinstance(raw_data, list):
            raise ParamTypeError(f"Invalid parameter, raw_data must be a list, not {type(raw_data).__name__}")
        if self._schema is None:
            raise RuntimeError("Failed to write data, there is no schema: call add_schema first")
        if not raw_data:
            raise RuntimeError("Failed to write data: raw_data is empty")
        for row in raw_data:
            if not isinstance(row, dict):
                raise ParamTypeError("Invalid parameter, raw_data must be a list of dicts")
            self._rows.append(self._checked(row))

    def _checked(self, row):
        made = {}
        for name, field in self._schema.items():
            if name not in row:
                raise RuntimeError(f"There is no field '{name}' of the schema in a row: {sorted(row)}")
            made[name] = _checked_value(name, field, row[name])
        return made

    def set_header_size(self, header_size):
        """Checked, a power of 2 from 16 KiB to 128 MiB: headers are 16 MiB."""
        _check_size("header_size", header_size, 14, 27)

    def set_page_size(self, page_size):
        """Checked, a power of 2 from 32 KiB to 256 MiB: pages are 32 MiB."""
        _check_size("page_size", page_size, 15, 28)

    def commit(self):
        """Writes the files."""
        if self._schema is None:
            raise RuntimeError("Failed to commit, there is no schema: call add_schema first")
        indexes = self._indexes
        if indexes is None:
            blobs = _format.blob_fields(self._schema)
            indexes = [name for name in self._schema if name not in blobs]
        addresses = [os.path.basename(path) for path in self._paths]
        files = len(self._paths)
        for number, path in enumerate(self._paths):
            begin, end = (at * len(self._rows) // files for at in (number, number + 1))
            rows = self._rows[begin:end]
            _format.write(path, addresses, number, self._schema, self._description, rows, indexes)


def _check_size(name, size, least, most):
    if not isinstance(size, int):
        raise ParamKindError(f"Invalid parameter, {name} must be an int, not {type(size).__name__}")
    if size.bit_count() != 1 or not 1 << least <= size <= 1 << most:
        raise RuntimeError(f"{name} must be a power of 2 from {1 << least} to {1 << most}, not {size}")


def _checked_value(name, field, value):
    kind = field["type"]
    if kind == "bytes":
        if not isinstance(value, bytes | bytearray | numpy.ndarray):
            raise RuntimeError(f"field '{name}' is bytes in the schema, and {type(value).__name__} in a row")
        return value.tobytes() if isinstance(value, numpy.ndarray) else bytes(value)
    if kind == "string":
        if not isinstance(value, str):
            raise RuntimeError(
                f"field '{name}' is a string in the schema, and {type(value).__name__} in a row"
            )
        return str(value)
    if "shape" in field:
        array = numpy.asarray(value)
        if array.dtype != kind:
            raise RuntimeError(f"field '{name}' is {kind} in the schema, and {array.dtype} in a row")
        if not _fits(array.size, field["shape"]):
            raise RuntimeError(f"field '{name}' has the shape {field['shape']}, and {array.shape} in a row")
        return array
    of_other_kind = isinstance(value, int | numpy.integer) == kind.startswith("float")
    if isinstance(value, str | bytes) or numpy.ndim(value) or of_other_kind:
        raise RuntimeError(f"field '{name}' is one {kind} in the schema, and {type(value).__name__} in a row")
    return int(value) if kind.startswith("int") else float(value)


def _fits(count, shape):
    """Whether so many elements have the shape, one of whose sizes may be open (-1)."""
    known = math.prod(size for size in shape if size != -1)
    if -1 not in shape:
        return count == known
    return shape.count(-1) == 1 and count % max(known, 1) == 0


class FileReader:
    """Reads files of MindRecord row by row."""

    def __init__(self, file_name, num_consumer=4, columns=None, operator=None):
        if not isinstance(num_consumer, int) or num_consumer < 1:
            raise ParamValueError("Invalid parameter, num_consumer must be an int above 0")
        if columns is not None and not isinstance(columns, list):
            raise ParamTypeError("Invalid parameter, columns must be a list")
        if not isinstance(file_name, str | list):
            raise ParamKindError(
                f"Invalid parameter, file_name must be a str or a list, not {type(file_name).__name__}"
            )
        names = file_name if isinstance(file_name, list) else paths_of(file_name)
        self._files = [_format.File(os.path.abspath(name)) for name in names]
        for name in columns or ():
            if name not in self._files[0].schema:
                raise RuntimeError(f"Invalid data, column '{name}' is not in the schema")
        self._columns = columns

    def get_next(self):
        """The rows, as dicts."""
        for file in self._files:
            for number in range(len(file.places)):
                row = file.row(number)
                yield (
                    row
                    if self._columns is None
                    else {name: row[name] for name in self._columns if name in row}
                )

    def close(self):
        """Closes the files."""
        self._files = []

    def len(self):
        """How many rows there are."""
        return sum(len(file.places) for file in self._files)

    def schema(self):
        """The fields of rows."""
        return self._files[0].schema
