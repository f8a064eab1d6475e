"""What most pipelines of images need: scaled numbers, channels first."""

import muster.dataset.vision as ours

from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks
from mindspore.dataset.vision._base import LibraryOperation, check_mean_and_std, is_picture


class HWC2CHW(LibraryOperation, ours.HWC2CHW):
    """Channels first."""

    def _picture(self, image):
        return self(numpy.asarray(image))


class Normalize(LibraryOperation, ours.Normalize):
    """(value - mean) / std by channel."""

    def __init__(self, mean, std, is_hwc=True):
        for name, values in (("mean", mean), ("std", std)):
            _checks.of_type(name, values, list, tuple)
        check_mean_and_std(mean, std)
        _checks.of_type("is_hwc", is_hwc, bool)
        super().__init__(mean, std, is_hwc)

    def _picture(self, image):
        return self(numpy.asarray(image))


class Rescale(_calls.Recorded, ours.Rescale):
    """value * rescale + shift."""

    def __init__(self, rescale, shift):
        super().__init__(_checks.number("rescale", rescale), _checks.number("shift", shift))

    def __call__(self, image):
        if is_picture(image):
            image = numpy.asarray(image)
        if not isinstance(image, numpy.ndarray):
            raise TypeError(f"Input should be NumPy image, got {type(image)}.")
        return super().__call__(image)
