"""mindspore.dataset.transforms.py_transforms: an older path to the same names."""

from mindspore.dataset import transforms

__all__ = [*transforms.__all__, "OneHotOp"]


class Compose(transforms.Compose):
    """Operations one after the other; it gives a tuple."""

    _gives_tuple = True


class OneHotOp:
    """One-hot rows of float64: OneHot as it was in Python."""

    def __init__(self, num_classes, smoothing_rate=0.0):
        self._one_hot = transforms.OneHot(num_classes, smoothing_rate)

    def __call__(self, label):
        return self._one_hot(label).astype("float64")


def __getattr__(name: str):
    return getattr(transforms, name)
