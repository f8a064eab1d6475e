"""One contender of benchmarks/rows.py, and one line of JSON.

python_rows.py PyTorch|MindSpore|Muster|Limit COUNT SIDE CUT
"""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import sys
import time

import numpy
from PIL import Image

WORKERS, BATCH = 2, 32


class Pictures:
    """Row i: a JPEG picture, decoded, a square cut out of it, flipped every other time; and a label."""

    def __init__(self, count: int, side: int, cut: int) -> None:
        numbers = numpy.random.default_rng(1)
        self.count, self.cut = count, cut
        self.files = []
        for _ in range(32):
            coarse = numbers.integers(0, 256, (side // 8, side // 8, 3), dtype=numpy.uint8)
            file = io.BytesIO()
            Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC).save(
                file, "JPEG", quality=85
            )
            self.files.append(file.getvalue())
        self.places = numbers.integers(0, side - cut + 1, (count, 2)).tolist()
        self.flips = numbers.integers(0, 2, count).tolist()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int):
        picture = numpy.asarray(Image.open(io.BytesIO(self.files[i % 32])).convert("RGB"))
        top, left = self.places[i]
        picture = picture[top : top + self.cut, left : left + self.cut]
        if self.flips[i]:
            picture = picture[:, ::-1]
        return numpy.ascontiguousarray(picture), numpy.int32(i % 10)


def torch_batches(pictures: Pictures):
    from torch.utils.data import DataLoader

    loader = DataLoader(pictures, batch_size=BATCH, num_workers=WORKERS)
    return lambda: ((x.numpy(), y.numpy()) for x, y in loader)


def mindspore_batches(pictures: Pictures):
    import mindspore.dataset as ds

    rows = ds.GeneratorDataset(pictures, ["x", "y"], num_parallel_workers=WORKERS, shuffle=False).batch(BATCH)
    return lambda: rows.create_tuple_iterator(num_epochs=1, output_numpy=True)


def muster_batches(pictures: Pictures):
    import muster.dataset as ds

    rows = ds.GeneratorDataset(pictures, ["x", "y"], num_parallel_workers=WORKERS, shuffle=False).batch(BATCH)
    return lambda: rows.create_tuple_iterator(num_epochs=1, output_numpy=True)


def make_half(pictures: Pictures, worker: int) -> None:
    for i in range(worker, len(pictures), WORKERS):
        pictures[i]


def limit_of(pictures: Pictures) -> float:
    """Seconds a row that the class itself takes in as many processes, which keep and send nothing."""
    processes = [multiprocessing.Process(target=make_half, args=(pictures, i)) for i in range(WORKERS)]
    begin_time = time.perf_counter()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return (time.perf_counter() - begin_time) / len(pictures)


def measure(contender: str, count: int, side: int, cut: int) -> None:
    """In a process of the contender's own: one line of JSON."""
    pictures = Pictures(count, side, cut)
    if contender == "Limit":
        print(json.dumps({"right": True, "seconds": [limit_of(pictures) for _ in range(3)][1:]}))
        return
    makers = {"PyTorch": torch_batches, "MindSpore": mindspore_batches, "Muster": muster_batches}
    begin_pass = makers[contender](pictures)
    found = hashlib.sha256()
    for x, y in begin_pass():
        found.update(x.tobytes())
        found.update(y.astype("int32").tobytes())
    expected = hashlib.sha256()
    for begin in range(0, count, BATCH):
        rows = [pictures[i] for i in range(begin, min(begin + BATCH, count))]
        for column in range(2):
            for row in rows:
                expected.update(row[column].tobytes())
    seconds = []
    for _ in range(2):
        begin_time = time.perf_counter()
        batches = sum(1 for _ in begin_pass())
        seconds.append((time.perf_counter() - begin_time) / count)
        assert batches == -(-count // BATCH)
    print(json.dumps({"right": found.digest() == expected.digest(), "seconds": seconds}))


if __name__ == "__main__":
    measure(sys.argv[1], *map(int, sys.argv[2:]))
