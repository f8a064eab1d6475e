"""Small IDX files with digits that a linear net can tell apart."""

import struct

import numpy


def write_idx(path, values):
    header = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    path.write_bytes(header + values.astype(numpy.uint8).tobytes())


def write_digits(folder, rows, seed=7, prefix="train"):
    """Each digit is a bright bar at its own place, under noise."""
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(seed)
    labels = numpy.arange(rows) % 10
    images = random.integers(0, 60, (rows, 28, 28))
    for image, label in zip(images, labels, strict=True):
        image[4:24, 2 * label + 4 : 2 * label + 7] += 190
    write_idx(folder / f"{prefix}-images-idx3-ubyte", images)
    write_idx(folder / f"{prefix}-labels-idx1-ubyte", labels)
    return images.astype(numpy.uint8), labels
