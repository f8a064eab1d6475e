"""The image pipeline of seed 002 in MindSpore: prints pictures a second.

python mindspore_data.py FOLDER [BATCHES [WORKERS]]
"""

import sys
import time

import mindspore.dataset as ds
import numpy
from mindspore.dataset import transforms, vision


def pipeline(folder, workers):
    rows = ds.Cifar10Dataset(folder, usage="train")
    operations = [
        vision.RandomCrop((32, 32), (4, 4, 4, 4)),
        vision.RandomHorizontalFlip(),
        vision.Resize((224, 224)),
        vision.Rescale(1.0 / 255.0, 0.0),
        vision.Normalize((0.4465, 0.4822, 0.4914), (0.2010, 0.1994, 0.2023)),
        vision.HWC2CHW(),
    ]
    rows = rows.map(transforms.TypeCast(numpy.int32), "label")
    rows = rows.map(operations, "image", num_parallel_workers=workers)
    return rows.shuffle(buffer_size=10).batch(32, drop_remainder=True).repeat(1000)


def main(folder, batches=100, workers=2):
    items = pipeline(folder, workers).create_tuple_iterator(num_epochs=1, output_numpy=True)
    iterator = iter(items)
    for _ in range(16):
        images, _ = next(iterator)
        assert images.shape == (32, 3, 224, 224) and abs(images.mean()) < 3
    begin = time.perf_counter()
    for _ in range(batches):
        next(iterator)
    print(f"pictures/s {32 * batches / (time.perf_counter() - begin):.1f}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
