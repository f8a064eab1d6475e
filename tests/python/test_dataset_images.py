"""Image datasets and the operations on images, as Python sees them."""

import numpy
import pytest
from digits import write_digits
from muster.dataset import (
    Cifar10Dataset,
    Cifar100Dataset,
    FashionMnistDataset,
    ImageFolderDataset,
    PKSampler,
    SubsetSampler,
    transforms,
    vision,
)

import muster

PNG = bytes.fromhex(  # 2 x 1 pixels: red, then green
    "89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd000000"
    "0f49444154789c63f8cfc0c0f09f010007ff01ff017f89a70000000049454e44ae426082"
)


def write_records(path, rows, labels=1):
    records = numpy.empty((rows, labels + 3072), numpy.uint8)
    for row in range(rows):
        records[row, :labels] = row % 10
        records[row, labels:] = (numpy.arange(3072) * 7 + row) % 256
    path.write_bytes(records.tobytes())
    return records[:, labels:].reshape(rows, 3, 32, 32).transpose(0, 2, 3, 1)


@pytest.fixture(scope="module")
def cifar(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cifar")
    images = write_records(folder / "data_batch_1.bin", 20)
    return str(folder), images


def test_cifar10_holds_what_the_files_hold(cifar):
    folder, images = cifar
    rows = list(Cifar10Dataset(folder, shuffle=False).create_tuple_iterator(output_numpy=True))
    assert [int(label) for _, label in rows] == [row % 10 for row in range(20)]
    assert all((image == images[row]).all() for row, (image, _) in enumerate(rows))
    assert len(Cifar10Dataset(folder, num_shards=3, shard_id=0)) == 7


def test_cifar100_has_both_labels(tmp_path):
    write_records(tmp_path / "train.bin", 3, labels=2)
    dataset = Cifar100Dataset(str(tmp_path), "train", shuffle=False)
    assert dataset.get_col_names() == ["image", "coarse_label", "fine_label"]
    assert [fine.item() for _, _, fine in dataset] == [0, 1, 2]


def test_fashion_mnist_reads_the_files_of_mnist(tmp_path):
    write_digits(tmp_path, rows=10)
    assert len(FashionMnistDataset(str(tmp_path), "train")) == 10


def test_a_damaged_file_is_named_with_the_byte(tmp_path):
    write_records(tmp_path / "data_batch_2.bin", 2)
    path = tmp_path / "data_batch_2.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(muster.CorruptDataError, match=r"data_batch_2.bin.*byte 3073"):
        Cifar10Dataset(str(tmp_path))


def test_the_pipeline_of_the_second_seed(cifar):
    folder, _ = cifar
    muster.set_seed(5)
    operations = [
        vision.RandomCrop((32, 32), (4, 4, 4, 4)),
        vision.RandomHorizontalFlip(),
        vision.Resize((224, 224)),
        vision.Rescale(1.0 / 255.0, 0.0),
        vision.Normalize((0.4465, 0.4822, 0.4914), (0.2010, 0.1994, 0.2023)),
        vision.HWC2CHW(),
    ]

    def passes():
        rows = Cifar10Dataset(folder).map(transforms.TypeCast(muster.int32), "label").map(operations, "image")
        batches = rows.shuffle(buffer_size=10).batch(batch_size=8, drop_remainder=True).repeat(1)
        return [[image for image, _ in batches.create_tuple_iterator(output_numpy=True)] for _ in range(2)]

    first, second = passes()
    assert [image.shape for image in first] == [(8, 3, 224, 224)] * 2
    assert first[0].dtype == numpy.float32
    assert not (first[0] == second[0]).all()
    again = passes()
    assert all((a == b).all() for a, b in zip(first + second, again[0] + again[1], strict=True))


def test_operations_can_be_called_on_their_own(cifar):
    _, images = cifar
    image = images[3]
    assert vision.Resize((64, 48), vision.Inter.CUBIC)(image).shape == (64, 48, 3)
    assert vision.Resize(16, vision.Inter.AREA)(image).shape == (16, 16, 3)
    assert vision.CenterCrop(20)(image).tolist() == image[6:26, 6:26].tolist()
    assert vision.Pad((1, 2), fill_value=(1, 2, 3))(image).shape == (36, 34, 3)
    assert vision.RandomVerticalFlip(1.0)(image).tolist() == image[::-1].tolist()
    crops = {vision.RandomCrop(8)(image).tobytes() for _ in range(20)}
    assert len(crops) > 10
    padded = vision.Pad(3, padding_mode=vision.Border.REFLECT)(image)
    assert padded.tolist() == numpy.pad(image, ((3, 3), (3, 3), (0, 0)), "reflect").tolist()
    numpy.testing.assert_array_equal(
        vision.ToTensor()(image), image.transpose(2, 0, 1) * numpy.float32(1 / 255)
    )
    assert vision.RandomResizedCrop(10, scale=(0.5, 1), ratio=(1, 1))(image).shape == (10, 10, 3)
    assert transforms.OneHot(4)(2).tolist() == [0, 0, 1, 0]
    both = transforms.Compose([vision.CenterCrop(4), lambda part: part + 1])
    assert both(image).tolist() == (image[14:18, 14:18] + 1).tolist()


def test_compose_is_one_operation_of_map(cifar):
    folder, images = cifar
    composed = transforms.Compose([vision.CenterCrop(4), vision.HWC2CHW()])
    image, _ = next(iter(Cifar10Dataset(folder, shuffle=False).map(composed, "image")))
    assert image.asnumpy().tolist() == images[0][14:18, 14:18].transpose(2, 0, 1).tolist()


def test_samplers_choose_the_rows(cifar):
    folder, _ = cifar
    labels = [label.item() for _, label in Cifar10Dataset(folder, sampler=SubsetSampler([13, 2]))]
    assert labels == [3, 2]
    assert [label.item() for _, label in Cifar10Dataset(folder, sampler=[7, 7])] == [7, 7]
    assert len(Cifar10Dataset(folder, sampler=PKSampler(1))) == 10
    with pytest.raises(ValueError, match="a sampler says which rows"):
        Cifar10Dataset(folder, sampler=SubsetSampler([1]), shuffle=True)
    with pytest.raises(TypeError, match="not dict"):
        Cifar10Dataset(folder, sampler={})


def test_mistakes_are_reported_before_the_first_item(cifar):
    folder, _ = cifar
    rows = Cifar10Dataset(folder)
    with pytest.raises(ValueError, match="cannot be cut"):
        rows.map(vision.RandomCrop(40), "image")
    with pytest.raises(ValueError, match="a side of 0"):
        rows.map(vision.Resize((0, 1)), "image")
    with pytest.raises(ValueError, match=r"padding.*a number"):
        vision.Pad((1, 2, 3))
    with pytest.raises(ValueError, match="fill_value"):
        vision.Pad(1, fill_value=256)


def test_pictures_in_folders(tmp_path):
    for name in ("cats", "dogs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.png").write_bytes(PNG)
    rows = list(ImageFolderDataset(str(tmp_path), shuffle=False, decode=True))
    assert [label.item() for _, label in rows] == [0, 1]
    assert rows[0][0].asnumpy().tolist() == [[[255, 0, 0], [0, 255, 0]]]
    raw = ImageFolderDataset(str(tmp_path), shuffle=False, class_indexing={"dogs": 7})
    image, label = next(iter(raw))
    assert image.asnumpy().tobytes() == PNG and label.item() == 7
    decoded = raw.map([vision.Decode(), vision.Resize((2, 2), vision.Inter.NEAREST)], "image").batch(1)
    assert next(iter(decoded))[0].shape == (1, 2, 2, 3)
    (tmp_path / "dogs" / "b.png").write_bytes(PNG[:50])
    with pytest.raises(muster.CorruptDataError, match=r"dogs/b.png.*PNG"):
        list(ImageFolderDataset(str(tmp_path), shuffle=False, decode=True))
    with pytest.raises(FileNotFoundError, match="no class 'birds'"):
        ImageFolderDataset(str(tmp_path), class_indexing={"birds": 0})
