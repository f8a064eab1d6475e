"""Files of rows in the ways of scripts that test them: shards of files, schemas, MindRecord's errors."""

import gzip
import itertools
import json
import struct
import sys
from pathlib import Path

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import transforms
from mindspore.mindrecord import FileWriter
from mindspore.mindrecord.common import exceptions

ROWS = (3, 3, 2, 4)  # of each of the files below


def _varint(value):
    value &= (1 << 64) - 1
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def _field(number, data):
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _feature(values):
    if isinstance(values[0], bytes):
        return _field(1, b"".join(_field(1, each) for each in values))
    return _field(3, _field(1, b"".join(map(_varint, values))))


def _masked_crc32c(data):
    """By the bit, as TensorFlow's format says it."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _record(content):
    length = struct.pack("<Q", len(content))
    sums = [struct.pack("<I", _masked_crc32c(part)) for part in (length, content)]
    return length + sums[0] + content + sums[1]


def _tfrecord(path, rows):
    data = b""
    for row in rows:
        entries = [_field(1, name.encode()) + _field(2, _feature(values)) for name, values in row.items()]
        example = _field(1, b"".join(_field(1, entry) for entry in entries))
        data += _record(example)
    path.write_bytes(data)
    return str(path)


@pytest.fixture
def tfrecords(tmp_path):
    return [
        _tfrecord(tmp_path / f"{at}.tfrecord", [{"i": [10 * at + row]} for row in range(count)])
        for at, count in enumerate(ROWS)
    ]


@pytest.fixture
def texts(tmp_path):
    paths = [tmp_path / f"{at}.txt" for at in range(len(ROWS))]
    for at, (path, count) in enumerate(zip(paths, ROWS, strict=True)):
        path.write_text("".join(f"{10 * at + row},1\n" for row in range(count)))
    return [str(path) for path in paths]


def _numbers(data):
    rows = [row[0] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert data.get_dataset_size() == len(rows)
    return [int(str(row.reshape(-1)[0]).partition(",")[0]) for row in rows]


def _joined(lists):
    return list(itertools.chain(*lists))


def _csv(files, **how):
    return ds.CSVDataset(files, column_defaults=[0, 0], column_names=["a", "b"], **how)


ALL = [10 * at + row for at, count in enumerate(ROWS) for row in range(count)]
IN_BLOCKS = {
    2: [ALL[:6], ALL[6:]],
    3: [ALL[:4], ALL[4:8], ALL[8:]],
    5: [ALL[:3], ALL[3:6], ALL[6:9], ALL[9:], ALL[:3]],
}


@pytest.mark.parametrize("source", [ds.TextFileDataset, _csv])
@pytest.mark.parametrize("shards", IN_BLOCKS)
def test_shards_of_files_are_blocks(texts, source, shards):
    found = [_numbers(source(texts, shuffle=False, num_shards=shards, shard_id=at)) for at in range(shards)]
    assert found == IN_BLOCKS[shards]
    mixed = [_numbers(source(texts, shuffle=True, num_shards=2, shard_id=at)) for at in range(2)]
    assert [len(each) for each in mixed] == [6, 6]
    assert sorted(_joined(mixed)) == ALL


def test_shards_of_tfrecords_are_files(tfrecords):
    def read(shards, **how):
        how.setdefault("shuffle", False)
        return [
            _numbers(ds.TFRecordDataset(tfrecords, num_shards=shards, shard_id=at, **how))
            for at in range(shards)
        ]

    assert read(2) == [[0, 1, 2, 20, 21], [10, 11, 12, 30, 31, 32, 33]]
    assert read(3) == [[0, 1, 2, 30, 31, 32, 33], [10, 11, 12], [20, 21]]
    assert read(2, shard_equal_rows=True) == IN_BLOCKS[2]
    assert [len(each) for each in read(2, num_samples=4)] == [4, 4]
    with pytest.raises(RuntimeError, match="4 files for 5 shards"):
        read(5)
    assert sorted(_joined(read(5, shard_equal_rows=True)[:4])) == ALL


def test_each_shard_has_all_files_after_some_passes(tfrecords):
    def passes(at):
        data = ds.TFRecordDataset(tfrecords, shuffle=ds.Shuffle.FILES, num_shards=2, shard_id=at)
        return [[int(row[0][0]) for row in data.create_tuple_iterator(None, 1, True)] for _ in range(12)]

    first, second = passes(0), passes(1)
    for a, b in zip(first, second, strict=True):
        assert sorted(a + b) == ALL
    assert set(_joined(first)) == set(_joined(second)) == set(ALL)


def test_bytes_of_tfrecords_are_numbers_and_strings_text(tmp_path):
    file = _tfrecord(tmp_path / "s.tfrecord", [{"s": [b"ab"], "i": [7]}])
    row = next(ds.TFRecordDataset(file).create_dict_iterator(1, True))
    assert (row["s"].dtype, row["s"].tolist()) == (np.uint8, [97, 98])
    schema = ds.Schema()
    schema.add_column("s", ms.string, [])
    schema.add_column("i", ms.int32, [1])
    data = ds.TFRecordDataset(file, schema)
    row = next(data.create_dict_iterator(1, True))
    assert (row["s"].dtype.kind, row["s"].shape, str(row["s"])) == ("U", (), "ab")
    assert data.get_col_names() == ["s", "i"]  # of a schema that was made here in its order


def _schema(dtype, shape):
    schema = ds.Schema()
    schema.add_column("i", dtype, shape)
    return schema


@pytest.mark.parametrize(
    "rows,schema,error",
    [
        ([{"i": [7, 8, 9]}], _schema(ms.int32, [2]), "feature 'i' of record 0 .*cannot reshape"),
        ([{"i": [7]}, {"j": [7]}], None, r"record 1 of .*a.tfrecord has no feature 'i'; it has \['j'\]"),
        ([{"i": [2**40]}], _schema(ms.int32, [1]), "1099511627776 does not fit into int32"),
        ([{"i": [7]}], _schema(ms.string, [1]), "it has numbers"),
    ],
)
def test_a_feature_that_is_not_as_the_schema_says_is_named(tmp_path, rows, schema, error):
    data = ds.TFRecordDataset(_tfrecord(tmp_path / "a.tfrecord", rows), schema, shuffle=False)
    with pytest.raises(RuntimeError, match=error):
        list(data.create_tuple_iterator(None, 1, True))


def _compressed(file):
    Path(file).write_bytes(gzip.compress(Path(file).read_bytes())[:-9])


def _of_other_bytes(file):
    Path(file).write_bytes(_record(b"\x0a\x05abc"))


def _with_a_flipped_bit(at):
    def damage(file):
        data = bytearray(Path(file).read_bytes())
        data[at] ^= 1
        Path(file).write_bytes(data)

    return damage


@pytest.mark.parametrize(
    "damage,compression,error",
    [
        (_compressed, "GZIP", "a.tfrecord is not compressed as GZIP, or damaged"),
        (lambda file: None, "GZIP", "a.tfrecord is not compressed as GZIP"),
        (lambda file: None, "ZLIB", "a.tfrecord is not compressed as ZLIB"),
        (_of_other_bytes, None, "record 0 of .*a.tfrecord is no tf.train.Example"),
        (_with_a_flipped_bit(-5), None, "a.tfrecord is .* damaged: record 0, at byte 0, does not have"),
        (_with_a_flipped_bit(8), None, "a.tfrecord is .* damaged: record 0"),
        (lambda file: Path(file).write_bytes(b""), None, "there are no records in .*a.tfrecord"),
    ],
)
def test_a_file_of_other_bytes_than_tfrecords_is_named(tmp_path, damage, compression, error):
    file = _tfrecord(tmp_path / "a.tfrecord", [{"i": [7]}])
    damage(file)
    with pytest.raises(RuntimeError, match=error):
        list(ds.TFRecordDataset(file, compression_type=compression).create_tuple_iterator(None, 1, True))


@pytest.mark.parametrize(
    "contents,defaults,error",
    [
        (["a,b\n1,2\n", "b,a\n3,4\n"], [0, 0], r"1.csv has the columns \['b', 'a'\], the first file"),
        (["a,a\n1,2\n"], [0, 0], "0.csv names a column twice"),
        (["a,b\n1,2\n"], [0], "column_defaults has 1 values for 2 columns"),
        ([""], [0, 0], "0.csv is empty"),
        (["a,b\n1,\udcff\n"], [0, ""], "0.csv is no table in UTF-8"),
    ],
)
def test_tables_whose_columns_are_not_known_are_named(tmp_path, contents, defaults, error):
    """Those of a second file with another header came under the names of the first."""
    files = [tmp_path / f"{at}.csv" for at in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(RuntimeError, match=error):
        ds.CSVDataset([str(file) for file in files], column_defaults=defaults, shuffle=False)


def test_the_mark_that_spreadsheets_write_is_no_part_of_a_name(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")
    assert ds.CSVDataset(str(file), column_defaults=[0, 0]).get_col_names() == ["a", "b"]


def test_a_schema_file_has_ranks_and_rows(tmp_path):
    file = _tfrecord(tmp_path / "r.tfrecord", [{"z": [n], "a": [n, n]} for n in range(5)])
    path = tmp_path / "schema.json"
    columns = {"z": {"type": "int64", "rank": 0}, "a": {"type": "int64", "rank": 1}}
    path.write_text(json.dumps({"datasetType": "TF", "numRows": 3, "columns": columns}))
    data = ds.TFRecordDataset(file, str(path), shuffle=False)
    assert data.get_dataset_size() == 3
    assert data.get_col_names() == ["a", "z"]
    assert data.output_shapes() == [[2], []]
    assert ds.TFRecordDataset(file, str(path), num_samples=4).get_dataset_size() == 4
    described = json.loads(ds.Schema(str(path)).to_json())["columns"]
    assert [each["name"] for each in described] == ["a", "z"]


@pytest.mark.parametrize(
    "call,error",
    [
        (lambda schema: schema.parse_columns(3), RuntimeError),
        (lambda schema: schema.from_json(3), RuntimeError),
        (lambda schema: schema.from_json({}), RuntimeError),
        (lambda schema: schema.from_json({"columns": {"i": {"type": "int8"}}, "numRows": -1}), RuntimeError),
        (lambda schema: ds.Schema("nowhere"), ValueError),
    ],
)
def test_errors_of_schemas(call, error):
    with pytest.raises(error):
        call(ds.Schema())


def _write(path, rows, schema, index=()):
    writer = FileWriter(str(path), 1, overwrite=True)
    writer.add_schema(schema, "s")
    if index:
        writer.add_index(list(index))
    writer.write_raw_data(rows)
    writer.commit()
    return str(path)


@pytest.fixture
def record(tmp_path):
    rows = [{"label": at % 2, "data": bytes([at])} for at in range(6)]
    return _write(tmp_path / "a.mr", rows, {"label": {"type": "int32"}, "data": {"type": "bytes"}})


def test_pk_sampler_of_mindrecord(record):
    data = ds.MindDataset(record, ["label"], sampler=ds.PKSampler(2))
    assert _numbers(data) == [0, 0, 1, 1]
    assert sorted(_numbers(ds.MindDataset(record, ["label"], sampler=ds.PKSampler(2, None, True)))) == [
        0,
        0,
        1,
        1,
    ]
    with pytest.raises(RuntimeError, match="'no_column'"):
        _numbers(ds.MindDataset(record, sampler=ds.PKSampler(2, None, True, "no_column")))


@pytest.mark.parametrize(
    "make,error",
    [
        (lambda path: ds.MindDataset("nowhere.mr"), ValueError),
        (lambda path: ds.MindDataset(""), ValueError),
        (lambda path: ds.MindDataset([]), RuntimeError),
        (lambda path: ds.MindDataset(path, "label"), TypeError),
        (lambda path: ds.MindDataset(path, sampler=ds.PKSampler(2), shuffle=False), RuntimeError),
        (lambda path: ds.MindDataset(path, sampler=3), ValueError),
        (lambda path: ds.MindDataset(path, ["label"], padded_sample={"x": 1}, num_padded=1), ValueError),
    ],
)
def test_errors_of_mindrecord_datasets(record, make, error):
    with pytest.raises(error):
        make(record)


def test_files_of_several_schemas_are_an_error(record, tmp_path):
    other = _write(tmp_path / "b.mr", [{"x": 1}], {"x": {"type": "int32"}})
    with pytest.raises(RuntimeError, match=r"b\.mr has the schema"):
        ds.MindDataset([record, other], ["label"])


INT = {"a": {"type": "int32"}}


@pytest.mark.parametrize(
    "make,error",
    [
        (lambda path: FileWriter(3), exceptions.ParamValueError),
        (lambda path: FileWriter(path, "a"), exceptions.ParamValueError),
        (lambda path: FileWriter("a*b"), exceptions.ParamValueError),
        (lambda path: _write(path, [{"a": 1}], {}), exceptions.MRMInvalidSchemaError),
        (lambda path: _write(path, [{"a": 1}], []), exceptions.MRMInvalidSchemaError),
        (lambda path: _write(path, [{"a": 1}], {"a": {"type": "int31"}}), exceptions.MRMInvalidSchemaError),
        (lambda path: _write(path, [{"a b": 1}], {"a b": INT["a"]}), exceptions.MRMInvalidSchemaError),
        (lambda path: _write(path, [{"1a": 1}], {"1a": INT["a"]}), RuntimeError),
        (
            lambda path: _write(path, [{"a": b"1"}], {"a": {"type": "bytes"}}, ["a"]),
            exceptions.MRMDefineIndexError,
        ),
        (lambda path: _write(path, [], INT), RuntimeError),
        (lambda path: _write(path, [{"a": 1.5}], INT), RuntimeError),
        (lambda path: _write(path, [{"a": 1}], {"a": {"type": "float32"}}), RuntimeError),
        (lambda path: FileWriter(path).set_header_size(1000), RuntimeError),
        (lambda path: FileWriter(path).set_page_size(1 << 14), RuntimeError),
        (lambda path: FileWriter(path).set_page_size("a"), TypeError),
    ],
)
def test_errors_of_writers(tmp_path, make, error):
    with pytest.raises(error) as raised:
        make(str(tmp_path / "w.mr"))
    assert error is not exceptions.ParamValueError or isinstance(raised.value, exceptions.MindRecordException)


@pytest.mark.parametrize("shape,size", [([2], 3), ([2, -1], 3), ([-1, -1], 4), ([], 2)])
def test_arrays_that_no_shape_fits_are_an_error(tmp_path, shape, size):
    rows = [{"a": np.arange(size, dtype=np.int32)}]
    with pytest.raises(RuntimeError, match="shape"):
        _write(tmp_path / "w.mr", rows, {"a": {"type": "int32", "shape": shape}})


def test_rows_are_shared_among_files_evenly(tmp_path):
    writer = FileWriter(str(tmp_path / "m.mr"), 4)
    writer.add_schema(INT)
    writer.write_raw_data([{"a": at} for at in range(9)])
    writer.commit()
    found = [_numbers(ds.MindDataset([str(tmp_path / f"m.mr{at}")], shuffle=False)) for at in range(4)]
    assert _joined(found) == list(range(9))
    assert sorted(map(len, found)) == [2, 2, 2, 3]


def test_shuffle_behind_sync_wait_is_an_error():
    data = ds.NumpySlicesDataset([1, 2, 3]).sync_wait("policy").map(lambda x: x)
    with pytest.raises(RuntimeError, match="'policy'"):
        data.shuffle(2)
    with pytest.raises(RuntimeError):
        data.sync_update("policy", num_batch=-1)


def test_padded_batch_pads_what_it_is_told():
    def rows():
        return ds.GeneratorDataset(lambda: ((np.arange(at + 1),) for at in range(3)), ["x"])

    with pytest.raises(RuntimeError):
        list(rows().padded_batch(3))
    assert next(iter(rows().padded_batch(3, pad_info={})))[0].shape == (3, 3)
    with pytest.raises(RuntimeError, match="'x' cannot fill"):
        list(rows().padded_batch(3, pad_info={"x": ([5], "x")}))


@pytest.mark.parametrize(
    "operation,value",
    [
        (transforms.Slice([]), np.array([1])),
        (transforms.Concatenate(0, np.array(["p"])), np.array([1])),
        (transforms.Concatenate(0, np.array([1])), np.array(["p"])),
    ],
)
def test_operations_refuse_what_has_no_array(operation, value):
    with pytest.raises(RuntimeError):
        operation(value)
