"""Images of dtypes other than bytes: sums of what MindSpore 2.7.0 gives for them."""

import sys

import numpy as np
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore.dataset as ds
from mindspore.dataset import vision
from mindspore.dataset.vision import Inter

# Of the images below at (4, 4), by dtype, for each of these; None: MindSpore refuses it.
_WAYS = (Inter.LINEAR, Inter.NEAREST, Inter.BICUBIC, Inter.AREA)
_SUMS = {
    "uint8": (4580, 4610, 4533, 4564),
    "int8": (None, 1437, None, None),
    "int16": (1928, 1926, 1950, 1883),
    "uint16": (4430, 4606, 4494, 4449),
    "int32": (None, 2266, None, None),
    "uint32": (None, None, None, None),
    "int64": (None, None, None, None),
    "float16": (None, 1479.8, None, None),
    "float32": (1846.26, 2333.87, 1873.13, 1975.0),
    "float64": (2024.94, 1787.16, 2041.94, 1952.44),
    "bool": (48, 48, 48, 48),
}


def _images():
    random = np.random.RandomState(0)
    for dtype in _SUMS:
        shift = 0 if dtype in ("uint8", "uint16", "uint32", "bool") else 60
        yield dtype, (random.rand(5, 7, 3) * 200 - shift).astype(dtype)


def test_images_of_the_dtypes_that_mindspore_takes_are_resized():
    for dtype, image in _images():
        for way, wanted in zip(_WAYS, _SUMS[dtype], strict=True):
            operation = vision.Resize((4, 4), way)
            if wanted is None:
                with pytest.raises(RuntimeError, match="Resize takes images of"):
                    operation(image)
                continue
            rows = ds.NumpySlicesDataset([image], ["image"]).map(operation, ["image"])
            (row,) = rows.create_tuple_iterator(num_epochs=1, output_numpy=True)
            for made in (operation(image), row[0]):
                assert made.dtype == image.dtype
                assert made.shape == (4, 4, 3)
                assert float(made.astype(np.float64).sum()) == pytest.approx(wanted, abs=0.1), (dtype, way)
