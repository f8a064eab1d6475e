"""Datasets: from IDX files to tensors, with Python functions on the way."""

import threading

import numpy
import pytest
from digits import write_digits
from muster.dataset import MnistDataset, transforms, vision

import muster


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, rows=50)
    return str(folder)


def test_a_pass_gives_a_tuple_of_tensors_for_each_row(folder):
    rows = list(MnistDataset(folder))
    assert len(rows) == 50
    image, label = rows[0]
    assert (image.shape, image.dtype) == ((28, 28, 1), muster.uint8)
    assert (label.shape, label.dtype) == ((), muster.uint32)


def test_rows_hold_what_the_files_hold(folder, tmp_path):
    images, labels = write_digits(tmp_path, rows=20)
    rows = list(MnistDataset(str(tmp_path), shuffle=False))
    assert [label.item() for _, label in rows] == labels.tolist()
    assert all((image.asnumpy()[..., 0] == images[i]).all() for i, (image, _) in enumerate(rows))


def test_the_last_batch_is_smaller_unless_it_is_dropped(folder):
    dataset = MnistDataset(folder)
    assert [label.shape for _, label in dataset.batch(20)] == [(20,), (20,), (10,)]
    assert len(dataset.batch(20, drop_remainder=True)) == 2


def test_transforms_compute_what_they_say(folder):
    plain = MnistDataset(folder, shuffle=False)
    operations = [vision.Rescale(1 / 255.0, 0), vision.Normalize((0.13,), (0.3,)), vision.HWC2CHW()]
    mapped = plain.map(operations, "image").map(transforms.TypeCast(muster.int32), ["label"])
    for (image, label), (raw_image, raw_label) in zip(mapped, plain, strict=True):
        expected = (raw_image.asnumpy().transpose(2, 0, 1) / 255 - 0.13) / 0.3
        numpy.testing.assert_allclose(image.asnumpy(), expected, rtol=1e-4, atol=1e-6)
        assert label.dtype is muster.int32 and label.item() == raw_label.item()


def test_a_transform_can_be_called_on_its_own():
    image = numpy.arange(6, dtype=numpy.uint8).reshape(1, 2, 3)
    assert vision.HWC2CHW()(image).shape == (3, 1, 2)
    assert vision.Rescale(2, 1)(image).tolist() == (image * 2.0 + 1).tolist()


def test_each_pass_has_a_shuffle_of_its_own_and_the_same_seed_the_same_shuffles(folder):
    def passes():
        muster.set_seed(11)
        dataset = MnistDataset(folder)
        return [[label.item() for _, label in dataset] for _ in range(2)]

    first, second = passes()
    assert sorted(first) == sorted(second) and first != second
    assert passes() == [first, second]


def test_shards_are_of_equal_length_and_cover_all_rows(folder):
    shards = [MnistDataset(folder, num_shards=4, shard_id=i, shuffle=False) for i in range(4)]
    assert [len(shard) for shard in shards] == [13] * 4


def test_dict_items_and_numpy_items(folder):
    dataset = MnistDataset(folder).batch(25)
    items = dataset.create_dict_iterator(num_epochs=2, output_numpy=True)
    for _ in range(2):
        for item in items:
            assert set(item) == {"image", "label"}
            assert isinstance(item["label"], numpy.ndarray)
    with pytest.raises(ValueError, match="num_epochs"):
        iter(items)
    assert isinstance(next(iter(dataset.create_tuple_iterator(output_numpy=True)))[0], numpy.ndarray)


def test_a_python_function_is_an_operation_like_any_other(folder):
    threads = set()

    def invert(image):
        threads.add(threading.get_ident())
        return 255 - image

    plain = MnistDataset(folder, shuffle=False)
    for (image, _), (raw, _) in zip(plain.map(invert, "image"), plain, strict=True):
        assert (image.asnumpy() == 255 - raw.asnumpy()).all()
    assert threads


def test_an_exception_of_a_python_function_comes_out_of_the_loop(folder):
    def fails(image):
        raise KeyError("not this one")

    with pytest.raises(KeyError, match="not this one"):
        list(MnistDataset(folder).map(fails, "image"))


def test_a_pass_that_is_left_early_ends_its_thread(folder):
    def slow(image):
        return image * 2

    for _ in range(20):
        for _item in MnistDataset(folder).map(slow, "image").batch(2):
            break


def test_mistakes_are_reported_where_they_are_made(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        MnistDataset(str(tmp_path))
    with pytest.raises(ValueError, match="batch"):
        MnistDataset(folder).batch(0)
    with pytest.raises(ValueError, match="picture"):
        MnistDataset(folder).map(vision.HWC2CHW(), "picture")
    with pytest.raises(TypeError, match=r"transforms.*functions"):
        MnistDataset(folder).map(3)
    with pytest.raises(ValueError, match="shard"):
        MnistDataset(folder, num_shards=2)


def test_a_damaged_file_is_named(tmp_path):
    write_digits(tmp_path, rows=10)
    images = tmp_path / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:100])
    with pytest.raises(muster.CorruptDataError, match="train-images-idx3-ubyte"):
        MnistDataset(str(tmp_path))


def test_repeat_take_and_skip(folder):
    dataset = MnistDataset(folder, shuffle=False).batch(10)
    assert len(dataset.repeat(3)) == 15
    assert len(dataset.skip(2).take(2)) == 2
    with pytest.raises(TypeError, match="without end"):
        len(dataset.repeat())
    assert dataset.get_col_names() == ["image", "label"]
