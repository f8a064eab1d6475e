"""Pipelines as dicts and files of JSON: mindspore.dataset.serialize, deserialize, show, compare."""

import json

import mindspore as ms
import mindspore.dataset as ds
import numpy
import pytest
from mindspore.dataset import text, transforms, vision

PIL_Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two classes of three pictures each, and a file of text."""
    made = tmp_path_factory.mktemp("pictures")
    for label, name in enumerate(("a", "b")):
        (made / "in" / name).mkdir(parents=True)
        for number in range(3):
            pixels = numpy.arange(10 * 8 * 3, dtype=numpy.uint8).reshape(10, 8, 3) + 40 * number + 9 * label
            PIL_Image.fromarray(pixels).save(made / "in" / name / f"{number}.png")
    (made / "lines.txt").write_text("a b\nc d e\nf\ng h\n")
    (made / "table.csv").write_text("1 2.5\n3 4.5\n5 6.5\n")
    return made


def pictures(folder, **given):
    return ds.ImageFolderDataset(str(folder / "in"), **{"shuffle": False} | given)


def mapped(folder, *operations):
    return pictures(folder).map([vision.Decode(), *operations], "image")


def lines(folder, **given):
    return ds.TextFileDataset(str(folder / "lines.txt"), **{"shuffle": False} | given)


def below(folder):
    sampler = ds.SequentialSampler(1, 2)
    sampler.add_child(ds.RandomSampler(replacement=True, num_samples=3))
    return pictures(folder, sampler=sampler, shuffle=None)


def sampled(sampler):
    return lambda folder: pictures(folder, sampler=sampler(), shuffle=None)


PIPELINES = {
    "a source": pictures,
    "a source in random order": lambda f: pictures(f, shuffle=True, decode=True),
    "chosen classes": lambda f: pictures(f, class_indexing={"a": 3, "b": 4}, extensions=[".png"]),
    "a shard": lambda f: pictures(f, num_shards=2, shard_id=1),
    "so many rows": lambda f: pictures(f, num_samples=4),
    "a distributed sampler": sampled(lambda: ds.DistributedSampler(2, 1, shuffle=True, offset=1)),
    "a subset": sampled(lambda: ds.SubsetSampler([4, 1])),
    "a random subset": sampled(lambda: ds.SubsetRandomSampler([4, 1, 2])),
    "so many of each class": sampled(lambda: ds.PKSampler(2)),
    "weights": sampled(lambda: ds.WeightedRandomSampler([0.1, 0.2, 0.3], 2)),
    "a sampler below another": below,
    "batch and repeat": lambda f: mapped(f).batch(4, drop_remainder=True).repeat(2),
    "shuffle, skip, take": lambda f: pictures(f).shuffle(4).skip(1).take(3),
    "take of all": lambda f: pictures(f).take(),
    "rename and project": lambda f: pictures(f).rename("image", "x").project(["label", "x"]),
    "zip": lambda f: pictures(f).zip(lines(f)),
    "concat": lambda f: pictures(f) + pictures(f, num_samples=1),
    "padded batch": lambda f: mapped(f).padded_batch(4, pad_info={"image": ([12, 9, 3], 7)}),
    "buckets": lambda f: pictures(f).bucket_batch_by_length(["image"], [3], [1, 2], pad_info={}),
    "lines": lambda f: lines(f, num_samples=2, shuffle=ds.Shuffle.FILES),
    "a shard of lines": lambda f: lines(f, num_shards=2, shard_id=1),
    "a table": lambda f: ds.CSVDataset(
        str(f / "table.csv"), " ", column_defaults=[0, 0.0], column_names=["p", "q"], shuffle=False
    ),
    "words": lambda f: lines(f).map(text.WhitespaceTokenizer(), "text").padded_batch(2, pad_info={}),
    "words with places": lambda f: lines(f).map(
        text.WhitespaceTokenizer(True), "text", ["word", "begin", "end"]
    ),
    "numbers of words": lambda f: lines(f).map(
        [text.WhitespaceTokenizer(), text.Lookup(text.Vocab.from_list(list("abcd?")), "?")], "text"
    ),
    "pairs of words": lambda f: lines(f).map(
        [text.UnicodeCharTokenizer(), text.Ngram(2, ("_", 1), ("_", 1), "-")], "text"
    ),
    "replaced text": lambda f: lines(f).map([text.CaseFold(), text.RegexReplace("a", "z")], "text"),
    "usual operations": lambda f: mapped(
        f,
        vision.RandomCrop(6, [1, 2, 3, 4], True, 3, vision.Border.REFLECT),
        vision.RandomHorizontalFlip(0.25),
        vision.Resize((8, 9), vision.Inter.NEAREST),
        vision.RandomColorAdjust(0.25, (0.5, 1.5)),
        vision.RandomRotation(20, expand=False),
        vision.Rescale(1 / 256, 0.5),
        vision.Normalize([1.0, 2, 3], [4.0, 5, 6]),
        vision.HWC2CHW(),
        transforms.TypeCast(ms.float32),
    ),
    "one that decodes and crops": lambda f: pictures(f).map(vision.RandomCropDecodeResize(5), "image"),
    "affine": lambda f: mapped(f, vision.RandomAffine(15, (0.25, 0.25), (0.5, 1.5), 5), vision.CenterCrop(6)),
    "fixed operations": lambda f: mapped(
        f,
        vision.Crop((1, 2), (6, 5)),
        vision.GaussianBlur(3, 2),
        vision.Erase(1, 2, 3, 2, 5),
        vision.Pad((1, 2), (4, 5, 6)),
        vision.PadToSize(14, 1, 2),
        vision.Rotate(20, vision.Inter.LINEAR),
        vision.Affine(10.0, [0.25, 0.5], 1.5, [1.0, 2.0], vision.Inter.NEAREST, 3),
        vision.ConvertColor(vision.ConvertMode.COLOR_RGB2BGR),
        vision.VerticalFlip(),
        vision.AdjustContrast(0.5),
        vision.Solarize((1, 200)),
    ),
    "pictures of PIL": lambda f: pictures(f).map(
        [vision.Decode(True), vision.RandomGrayscale(0.5), vision.ToTensor()], "image"
    ),
    "mixtures": lambda f: mapped(
        f,
        transforms.Compose([vision.Invert(), vision.Equalize()]),
        transforms.RandomApply([vision.Posterize(3)], 0.5),
        transforms.RandomChoice([vision.HorizontalFlip(), vision.AutoContrast(1.0)]),
        vision.RandomSelectSubpolicy([[(vision.RandomSharpness((0.5, 1.5)), 0.5)]]),
        vision.UniformAugment([vision.AdjustGamma(0.5), vision.RandomSolarize((3, 200))], 1),
    ),
    "labels": lambda f: pictures(f).map(
        [transforms.OneHot(5, 0.1), transforms.PadEnd([7], 2.0), transforms.Slice([0, 1])], "label"
    ),
    "a mask": lambda f: pictures(f).map(transforms.Mask(transforms.Relational.GT, 0), "label"),
}


def rows_of(dataset):
    return [
        [(value.dtype, value.shape, value.tolist()) for value in row]
        for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    ]


@pytest.mark.parametrize("name", PIPELINES)
def test_a_written_pipeline_yields_the_same_rows_again(name, folder, tmp_path):
    ds.config.set_seed(7)
    made = PIPELINES[name](folder)
    file = str(tmp_path / "pipeline.json")
    entry = ds.serialize(made, file)
    with open(file, encoding="utf-8") as stream:
        assert json.load(stream) == json.loads(json.dumps(entry))
    for again in (ds.deserialize(entry), ds.deserialize(json_filepath=file)):
        assert ds.compare(made, again)
        assert again.get_col_names() == made.get_col_names()
        assert rows_of(again) == rows_of(PIPELINES[name](folder))


def test_the_dict_is_that_of_mindspore(folder):
    operations = [vision.Decode(), vision.Resize((4, 4), vision.Inter.LINEAR), vision.HWC2CHW()]
    made = pictures(folder, num_samples=4).map(operations, "image").batch(2, drop_remainder=True).repeat(2)
    workers = {"connector_queue_size": 16, "num_parallel_workers": ds.config.get_num_parallel_workers()}
    source = {
        "op_type": "ImageFolderDataset",
        "dataset_dir": str(folder / "in"),
        "class_indexing": {},
        "decode": False,
        "extensions": [],
        "recursive": False,
        "sampler": {"sampler_name": "SequentialSampler", "num_samples": 4, "start_index": 0},
        "children": [],
    }
    mapping = {
        "op_type": "Map",
        "callback": [],
        "input_columns": ["image"],
        "output_columns": ["image"],
        "operations": [
            {"tensor_op_name": "Decode", "tensor_op_params": {"device_target": "CPU", "rgb": True}},
            {
                "tensor_op_name": "Resize",
                "tensor_op_params": {"device_target": "CPU", "interpolation": 0, "size": [4, 4]},
            },
            {"tensor_op_name": "HwcToChw", "tensor_op_params": None},
        ],
        "children": [source | workers],
    }
    batch = {"op_type": "Batch", "batch_size": 2, "drop_remainder": True, "input_columns": []}
    batch |= {"output_columns": [], "children": [mapping | workers]}
    assert ds.serialize(made) == {"op_type": "Repeat", "count": 2, "children": [batch | workers]}


@pytest.mark.parametrize(
    "make",
    [
        lambda f: ds.NumpySlicesDataset([1, 2], ["a"]),
        lambda f: ds.GeneratorDataset(lambda: iter([(1,)]), ["a"]),
        lambda f: mapped(f, lambda image: image),
        lambda f: pictures(f).filter(lambda image, label: True),
    ],
)
def test_python_code_is_written_by_its_name_and_refused_when_it_is_read(make, folder):
    entry = ds.serialize(make(folder))
    with pytest.raises(RuntimeError, match=r"Python.*make the pipeline by a function"):
        ds.deserialize(entry)


@pytest.mark.parametrize(
    "make",
    [
        lambda f: lines(f).batch(lambda info: 2),
        lambda f: pictures(f).split([2, 4])[0],
        lambda f: pictures(f, sampler=ds.IterSampler([1, 2]), shuffle=None),
    ],
)
def test_what_a_dict_would_lose_in_silence_is_refused_as_it_is_written(make, folder):
    with pytest.raises(TypeError, match="not written to JSON"):
        ds.serialize(make(folder))


def test_other_arguments_are_answered_as_mindspore_does(folder):
    assert ds.deserialize() is None and ds.deserialize({}) is None
    for call in (ds.serialize, ds.show):
        with pytest.raises(AttributeError, match="no Dataset"):
            call(3)
    with pytest.raises(FileNotFoundError):
        ds.deserialize(json_filepath=str(folder / "nothing.json"))
    for entry in ({"op_type": "Nope"}, {"op_type": "Take", "children": []}, {"children": []}):
        with pytest.raises(RuntimeError, match="deserialize"):
            ds.deserialize(entry)


def test_show_logs_the_pipeline(folder, monkeypatch):
    shown = []
    monkeypatch.setattr(ms.log, "info", shown.append)
    made = pictures(folder).take(2)
    ds.show(made, indentation=1)
    assert json.loads(shown[0]) == ds.serialize(made) and '\n "children"' in shown[0]
