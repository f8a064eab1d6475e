"""Dataset.save: rows as files of MindRecord."""

import numpy

from mindspore.mindrecord._files import FileWriter

_KINDS = {
    "bool": "int32",
    "int8": "int32",
    "uint8": "int32",
    "int16": "int32",
    "uint16": "int32",
    "int32": "int32",
}
_KINDS |= {
    "uint32": "int64",
    "int64": "int64",
    "float16": "float32",
    "float32": "float32",
    "float64": "float64",
}


def save(dataset, file_name, num_files):
    """Writes the rows of a pass."""
    writer, schema = FileWriter(file_name, num_files, overwrite=True), None
    names = dataset.get_col_names()
    for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
        if schema is None:
            schema = {name: _field(name, value) for name, value in zip(names, row, strict=True)}
            writer.add_schema(schema)
        writer.write_raw_data(
            [{name: _value(schema[name], value) for name, value in zip(names, row, strict=True)}]
        )
    if schema is None:
        raise RuntimeError("save: the dataset has no rows")
    writer.commit()


def _field(name, value):
    if value.dtype.kind == "U":
        return {"type": "string"}
    if value.dtype.kind == "S":
        return {"type": "bytes"}
    if value.dtype.name not in _KINDS:
        raise RuntimeError(
            f"save: column '{name}' is {value.dtype}, which MindRecord has not: use transforms.TypeCast"
        )
    kind = {"type": _KINDS[value.dtype.name]}
    return kind if value.ndim == 0 else {**kind, "shape": [-1, *value.shape[1:]]}


def _value(field, value):
    if field["type"] == "string":
        return str(value)
    if field["type"] == "bytes":
        return value.tobytes()
    return value.astype(field["type"]) if "shape" in field else numpy.asarray(value).item()
