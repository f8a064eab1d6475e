"""Errors inside of a pass over a dataset: of MindSpore's type, and naming where the rows were read."""

import pickle

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn, train
from mindspore.dataset import vision
from PIL import Image


@pytest.fixture
def pictures(tmp_path):
    (tmp_path / "a").mkdir()
    Image.new("RGB", (4, 3)).save(tmp_path / "a" / "0.png")
    return tmp_path


def play(dataset):
    return list(dataset.create_dict_iterator(num_epochs=1, output_numpy=True))


class OwnError(LookupError):
    pass


@pytest.mark.parametrize("kind", [Exception, RuntimeError, ValueError, OwnError])
def test_an_error_of_a_function_is_of_its_type_and_a_runtime_error(pictures, kind):
    def fail(image):
        raise kind("Error occur!")

    dataset = ds.ImageFolderDataset(str(pictures)).map(fail, "image", num_parallel_workers=1)
    with pytest.raises(RuntimeError, match=r"map operation: \[PyFunc\] failed") as told:
        play(dataset)
    assert isinstance(told.value, kind)
    assert "Error occur!" in str(told.value)
    assert f"The corresponding data file is: {pictures}" in str(told.value)


def test_an_error_of_rows_that_have_no_file_names_none():
    dataset = ds.NumpySlicesDataset([1, 2]).map(lambda x: 1 / 0)
    with pytest.raises(RuntimeError, match="Error description") as told:
        play(dataset)
    assert "data file" not in str(told.value)


def test_an_error_behind_other_steps_names_the_files_of_all_sources(tmp_path):
    paths = [tmp_path / name for name in ("one.txt", "two.txt")]
    for path in paths:
        path.write_text("hello\n")
    one, other = (ds.TextFileDataset(str(path)) for path in paths)
    dataset = ds.zip((one, other.rename("text", "words"))).repeat(2).map(lambda text: 1 / 0, "text")
    with pytest.raises(RuntimeError, match=f"{paths[0]}, {paths[1]}"):
        play(dataset)


def test_a_damaged_picture_is_a_runtime_error(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.jpg").write_bytes(b"\xff\xd8\xff no picture")
    with pytest.raises(RuntimeError):
        play(ds.ImageFolderDataset(str(tmp_path)).map(vision.Decode(), "image"))
    with pytest.raises(RuntimeError, match=r"0\.jpg"):
        play(ds.ImageFolderDataset(str(tmp_path), decode=True))


def test_an_error_comes_back_from_another_process(pictures):
    def fail(image):
        raise Exception("Error occur!")

    dataset = ds.ImageFolderDataset(str(pictures)).map(fail, "image", python_multiprocessing=True)
    with pytest.raises(RuntimeError, match="Error occur!") as told:
        play(dataset)
    again = pickle.loads(pickle.dumps(told.value))
    assert isinstance(again, RuntimeError)
    assert str(again) == str(told.value)


def test_a_row_of_a_source_fails_like_a_function():
    class Rows:
        def __getitem__(self, number):
            raise Exception("no row")

        def __len__(self):
            return 3

    with pytest.raises(RuntimeError, match="no row"):
        play(ds.GeneratorDataset(Rows(), ["a"]))


def test_a_row_with_other_columns_than_its_source_says_is_told_with_both_numbers():
    words = "column_names, the size of column_names is:1 and number of returned NumPy array is:2"
    with pytest.raises(RuntimeError, match=words):
        play(ds.GeneratorDataset([(1, 2)], ["a"]))


def test_rows_that_can_be_asked_for_without_an_end_are_refused():
    class Endless:
        def __getitem__(self, number):
            return number

    with pytest.raises(RuntimeError, match=r"Endless has '__getitem__' alone.*'__len__'"):
        ds.GeneratorDataset(Endless(), ["a"])


def test_a_schema_counts_before_names():
    schema = ds.Schema()
    schema.add_column("number", "int64", [])
    (row,) = play(ds.GeneratorDataset([(3,)], ["a"], schema=schema))
    assert row["number"] == 3


def test_dicts_with_different_keys_are_no_batch():
    rows = ds.GeneratorDataset(lambda: iter([({"a": 1},), ({"b": 1},)]), ["dict"])
    with pytest.raises(RuntimeError, match=r"column 'dict' have different keys, \['a'\] and \['b'\]"):
        play(rows.batch(2))


def test_a_network_that_is_given_a_dict_says_the_way_out():
    rows = ds.GeneratorDataset(lambda: iter([({"a": np.float32(1)},)]), ["dict"])
    network = nn.Dense(1, 1)
    model = train.Model(network, optimizer=nn.SGD(network.trainable_params(), 0.1))
    with pytest.raises(Exception, match=r"dict.*columns of numbers of it by map\(\)"):
        model.train(1, rows, dataset_sink_mode=False)


def test_a_tuple_in_a_dict_stays_one():
    (row,) = play(ds.GeneratorDataset(lambda: iter([({"a": (1, [2])},)]), ["dict"]))
    assert row["dict"] == {"a": (1, [2])}
    assert type(row["dict"]["a"]) is tuple


def test_the_names_of_columns_are_strings():
    with pytest.raises(TypeError, match=r"column_names\[0\] with value 1"):
        ds.NumpySlicesDataset({1: [1, 2]})


def test_a_class_of_a_dataset_that_defines_too_much_is_refused_when_one_is_made():
    class Keys(ds.Dataset):  # as libraries have them beside what a script uses
        def __len__(self):
            return 3

    with pytest.raises(NotImplementedError, match=r"Keys defines __len__, .* would be ignored: "):
        Keys()


def test_functions_say_that_they_take_a_batch_info():
    def size(info: ds.BatchInfo):
        return 2 + info.get_batch_num()

    rows = ds.NumpySlicesDataset(np.arange(5), ["x"], shuffle=False).batch(size)
    assert [row["x"].tolist() for row in play(rows)] == [[0, 1], [2, 3, 4]]


class _Own:
    """An object of a script's own, which no array holds."""


def test_none_and_own_objects_in_a_dict_are_passed_on():
    own = _Own()

    def rows():
        yield {"text": "a", "list": [1, None], "none": None, "own": own, "of": {"own": own}}, 3

    data = ds.GeneratorDataset(rows, ["named", "number"])
    for as_numpy in (True, False):
        (row,) = data.create_dict_iterator(1, as_numpy)
        named = row["named"]
        assert named["none"] is None and named["own"] is own and named["of"]["own"] is own
        assert (int(named["list"][0]), named["list"][1], str(named["text"])) == (1, None, "a")
    with pytest.raises(RuntimeError, match="dicts of column 'named' hold NoneType"):
        list(data.batch(1))


def test_numbers_in_a_dict_of_a_batch_are_arrays():
    def told(column, info):
        return ({"rows": column, "number": info.get_batch_num()},)

    data = ds.GeneratorDataset(lambda: iter(range(4)), ["x"]).batch(2, per_batch_map=told)
    found = [row["x"]["number"] for row in data.create_dict_iterator(1, True)]
    assert [(type(each), int(each)) for each in found] == [(np.ndarray, 0), (np.ndarray, 1)]
    assert all(isinstance(row["x"]["number"], ms.Tensor) for row in data.create_dict_iterator(1))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
def test_the_hue_of_what_is_no_bytes_is_an_error(kind):
    image = np.full((2, 3, 3), 0.5, np.float32).astype(kind)
    with pytest.raises(RuntimeError, match=f"AdjustHue: the image is {np.dtype(kind)}: .*uint8"):
        vision.AdjustHue(0.2)(image)
