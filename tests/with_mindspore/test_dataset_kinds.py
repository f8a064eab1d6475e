"""Classes that scripts tell datasets apart by, with isinstance; schemas as JSON."""

import numpy
import pytest
from mindspore import dataset as ds
from mindspore.dataset.engine import datasets

ROWS = {"x": numpy.arange(6)}


def _source():
    return ds.NumpySlicesDataset(ROWS, shuffle=False)


STEPS = {
    "BatchDataset": lambda source: source.batch(2),
    "BucketBatchByLengthDataset": lambda source: source.bucket_batch_by_length(["x"], [2], [2, 2], len),
    "ConcatDataset": lambda source: source + _source(),
    "FilterDataset": lambda source: source.filter(lambda x: True, ["x"]),
    "MapDataset": lambda source: source.map(lambda x: x, ["x"]),
    "PaddedBatchDataset": lambda source: source.padded_batch(2, pad_info={}),
    "RepeatDataset": lambda source: source.repeat(2),
    "ShuffleDataset": lambda source: source.shuffle(2),
    "SkipDataset": lambda source: source.skip(2),
    "TakeDataset": lambda source: source.take(2),
    "ZipDataset": lambda source: source.zip(_source().rename(["x"], ["y"])),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_of_its_class_and_of_no_other(name):
    made = STEPS[name](_source())
    assert [each for each in STEPS if isinstance(made, getattr(datasets, each))] == [name]
    assert not isinstance(made, ds.SourceDataset)
    assert isinstance(made, ds.UnionBaseDataset)


def test_sources_are_of_what_they_hold(tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("a\nb\n")
    lines = ds.TextFileDataset(str(text))
    pictures = ds.FakeImageDataset(2, (4, 4, 3), 2)
    kinds = ("SourceDataset", "TextBaseDataset", "AudioBaseDataset", "VisionBaseDataset")

    def of(dataset):
        return [kind for kind in kinds if isinstance(dataset, getattr(ds, kind))]

    assert of(lines) == ["SourceDataset", "TextBaseDataset"]
    assert of(pictures) == ["SourceDataset", "VisionBaseDataset"]
    assert of(_source()) == [*kinds]
    own = type("OwnDataset", (ds.GeneratorDataset,), {})
    assert of(own(lambda: iter([(1,)]), ["x"])) == [*kinds]
    assert of(lines.batch(2)) == [*kinds[1:]]
    assert not isinstance(3, ds.BatchDataset)


def test_a_schema_is_written_in_order_and_read_in_the_place_of_another():
    schema = ds.Schema()
    schema.add_column("a", "int32", [2])
    assert schema.to_json().split() == [
        *("{", '"columns":', "[", "{", '"name":', '"a",', '"rank":', "1,", '"shape":', "[", "2", "],"),
        *('"type":', '"int32"', "}", "]", "}"),
    ]
    schema.from_json({"columns": {"b": {"type": "float32", "shape": [1]}}})
    assert [column["name"] for column in schema.columns] == ["b"]
