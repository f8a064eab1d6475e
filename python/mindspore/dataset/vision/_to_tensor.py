"""ToTensor, alone: its signature names a dtype of numpy, which the others of its kind do without."""

import muster.dataset.vision as ours

from mindspore._lazy import numpy
from mindspore.dataset import _types
from mindspore.dataset.vision._base import LibraryOperation, is_picture


class ToTensor(LibraryOperation, ours.ToTensor):
    """Values of 0 to 1, channels first."""

    def __init__(self, output_type=numpy.float32):
        self._dtype = _types.numpy_dtype(output_type)
        super().__init__("float32" if self._dtype.char not in "fdbBilqI?" else self._dtype.name)

    def __call__(self, image):
        if is_picture(image):
            image = numpy.asarray(image)
        made = super().__call__(image)
        return made if made.dtype == self._dtype else made.astype(self._dtype)

    def _picture(self, image):
        return self(numpy.asarray(image))
