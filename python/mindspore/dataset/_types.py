"""Types of columns as scripts spell them, and class Schema."""

import muster
from mindspore.dataset import _checks


def numpy_dtype(dtype):
    """A dtype of mindspore, numpy or a name as numpy's."""
    import numpy

    name = str(getattr(dtype, "name", None) or dtype)
    name = name.rpartition(".")[2].lower().rstrip("_")
    if isinstance(dtype, type | numpy.dtype):
        return numpy.dtype(dtype)
    if name in ("string", "str"):
        return numpy.dtype(numpy.str_)
    if name in ("bytes", "byte"):
        return numpy.dtype(numpy.bytes_)
    try:
        if len(name) < 2:  # numpy's own codes
            raise TypeError
        return numpy.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        raise TypeError(f"{dtype!r} is no dtype that numpy has") from None


_TENSORS_HOLD = ("float32", "float64", "bool", "int8", "uint8", "int32", "int64", "uint32")


def held_name(dtype):
    """The name of a dtype that tensors hold, None of another one. Loads no numpy for one of mindspore."""
    if isinstance(dtype, muster.DType) and dtype.name in _TENSORS_HOLD:
        return dtype.name
    found = numpy_dtype(dtype).name
    return found if found in _TENSORS_HOLD else None


class Schema:
    """The columns of files: names, types and shapes; read from JSON, or added one after the other."""

    def __init__(self, schema_file=None):
        _checks.of_type("schema_file", schema_file, str, optional=True)
        self.columns = []
        self.dataset_type = ""
        self.num_rows = 0
        if schema_file is not None:
            import json  # here: it takes two milliseconds of every start

            try:
                with open(schema_file) as file:
                    described = json.load(file)
            except OSError as error:
                raise ValueError(f"Schema: {schema_file} cannot be read: {error.strerror}") from None
            self.from_json(described)

    def add_column(self, name, de_type, shape=None):
        """A column of this name and type; `shape` (None: of one axis), -1 for sizes that differ."""
        _checks.of_type("name", name, str)
        if isinstance(de_type, str):
            de_type = de_type.lower()
        numpy_dtype(de_type)
        _checks.of_type("shape", shape, list, optional=True)
        if any(column["name"] == name for column in self.columns):
            raise RuntimeError(f"Schema: there is a column '{name}' already")
        spelt = str(numpy_dtype(de_type)) if numpy_dtype(de_type).kind not in "US" else "string"
        column = {"name": name, "type": spelt, "rank": 1 if shape is None else len(shape)}
        if shape is not None:
            column["shape"] = shape
        self.columns.append(column)

    def parse_columns(self, columns):
        """Columns of a list of dicts, or of a dict of dicts by name."""
        if isinstance(columns, dict):
            columns = [{"name": name, **columns[name]} for name in sorted(columns)]
        if not isinstance(columns, list):
            raise _checks.RowError(f"Schema: columns are a list or a dict, not {type(columns).__name__}")
        for column in columns:
            if not isinstance(column, dict) or "type" not in column:
                raise RuntimeError(f"Schema: a column has no type: {column}")
            if "name" not in column:
                raise RuntimeError(f"Schema: a column has no name: {column}")
            shape = column.get("shape", [] if column.get("rank", 0) == 0 else None)
            self.add_column(column["name"], column["type"], shape)

    def from_json(self, json_obj):
        """What to_json gives, as a dict; its columns take the place of those that were there."""
        if not isinstance(json_obj, dict) or "columns" not in json_obj:
            raise _checks.RowError(f"Schema: from_json takes a dict with 'columns', not {json_obj!r}")
        for name in json_obj:
            if name not in ("datasetType", "numRows", "columns"):
                raise RuntimeError(f"Unknown field {name}")
        self.dataset_type = json_obj.get("datasetType", "")
        self.num_rows = json_obj.get("numRows", 0)
        if self.num_rows < 0:
            raise _checks.PipelineError("numRows must be at least 0")
        self.columns = []
        self.parse_columns(json_obj["columns"])

    def to_json(self):
        """The schema as JSON."""
        described = {"columns": self.columns}
        if self.dataset_type:
            described["datasetType"] = self.dataset_type
        if self.num_rows:
            described["numRows"] = self.num_rows
        import json

        return json.dumps(described, indent=2, sort_keys=True)

    def __str__(self):
        return self.to_json()
