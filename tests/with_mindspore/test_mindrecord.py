"""MindRecord files: those of MindSpore 2.7.0 are read, and ours are."""

import sys
from pathlib import Path

import numpy
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore.dataset as ds
from mindspore.mindrecord import FileReader, FileWriter, _format

SCHEMA = {
    "label": {"type": "int32"},
    "name": {"type": "string"},
    "data": {"type": "bytes"},
    "vector": {"type": "float32", "shape": [2]},
    "share": {"type": "float64"},
    "words": {"type": "int64", "shape": [-1]},
}


def rows(count):
    return [
        {
            "label": number - 1,
            "name": f"n{number}",
            "data": bytes([number]) * (number + 3),
            "vector": numpy.array([number, 0.5], numpy.float32),
            "share": number * 0.1,
            "words": numpy.array([1, -2, 300, -70000, 2**40][: number + 1], numpy.int64),
        }
        for number in range(count)
    ]


def write(path, count, files=1):
    writer = FileWriter(str(path), files)
    writer.add_schema(SCHEMA, "test")
    writer.add_index(["label", "name"])
    writer.write_raw_data(rows(count))
    writer.commit()


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert numpy.array_equal(found[name], value), name


@pytest.mark.parametrize("files", [1, 3])
def test_rows_come_back(tmp_path, files):
    write(tmp_path / "a.mindrecord", 7, files)
    first = tmp_path / ("a.mindrecord" if files == 1 else "a.mindrecord0")
    reader = FileReader(str(first))
    assert reader.len() == 7 and reader.schema() == dict(sorted(SCHEMA.items()))
    for found, expected in zip(reader.get_next(), rows(7), strict=True):
        same(found, expected)
    dataset = ds.MindDataset(str(first), ["label", "vector", "name"], shuffle=False)
    assert [row["label"].item() for row in dataset.create_dict_iterator(output_numpy=True)] == [*range(-1, 6)]
    assert next(iter(ds.MindDataset(str(first), ["vector"]).batch(7)))[0].shape == (7, 2)


def test_bytes_are_those_that_mindspore_writes():
    assert _format.pack_whole([1, -2, 300]).hex() == "000000030401fe2c01"
    assert _format.pack_whole([100000, -70000, 2]).hex() == "00000003a0a086010090eefeff02"
    assert _format.pack_whole([1, 2**40]).hex() == "0000000230010000000000010000"
    assert (
        _format.pack({"label": 0, "name": "n0", "s": 0.25}).hex()
        == "83a56c6162656c00a46e616d65a26e30a173ca3e800000"
    )
    assert _format.pack({"f": 0.1}).hex() == "81a166cb3fb999999999999a"
    blobs = _format.pack_blobs(
        {"data": b"\0\0\0", "w": [0]}, ["data", "w"], {"data": SCHEMA["data"], "w": SCHEMA["words"]}
    )
    assert blobs.hex() == "0000000000000003000000" + "0000000000000006" + "000000010000"


def test_rows_are_added_and_datasets_saved(tmp_path):
    write(tmp_path / "a", 3)
    writer = FileWriter.open_for_append(str(tmp_path / "a"))
    writer.write_raw_data(rows(1))
    writer.commit()
    assert FileReader(str(tmp_path / "a")).len() == 4
    saved = ds.NumpySlicesDataset(
        {"a": [1, 2], "s": ["x", "y"], "m": [[1.0, 2.0], [3.0, 4.0]]}, shuffle=False
    )
    saved.save(str(tmp_path / "b"))
    found = list(ds.MindDataset(str(tmp_path / "b"), shuffle=False).create_dict_iterator(output_numpy=True))
    assert [(row["a"].item(), row["s"].item(), row["m"].tolist()) for row in found] == [
        (1, "x", [1.0, 2.0]),
        (2, "y", [3.0, 4.0]),
    ]


def test_mistakes_are_named(tmp_path):
    write(tmp_path / "a", 1)
    with pytest.raises(RuntimeError, match="already exists"):
        FileWriter(str(tmp_path / "a"))
    with pytest.raises(RuntimeError, match="type of field 'x' must be one of"):
        FileWriter(str(tmp_path / "b")).add_schema({"x": {"type": "uint8"}})
    writer = FileWriter(str(tmp_path / "b"))
    writer.add_schema({"x": {"type": "int32"}})
    with pytest.raises(RuntimeError, match="no field 'x'"):
        writer.write_raw_data([{"y": 1}])
    Path(tmp_path / "c").write_bytes(b"\1" * 99)
    with pytest.raises(RuntimeError, match="header is damaged"):
        FileReader(str(tmp_path / "c"))
    Path(tmp_path / "a.db").unlink()
    with pytest.raises(RuntimeError, match=r"index .* is missing"):
        FileReader(str(tmp_path / "a"))
