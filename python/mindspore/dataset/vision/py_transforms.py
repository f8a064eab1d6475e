"""mindspore.dataset.vision.py_transforms: an older path to the same names."""

from mindspore.dataset.vision import (
    HWC2CHW,
    Border,
    CenterCrop,
    Decode,
    Inter,
    Normalize,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Rescale,
    Resize,
    ToTensor,
)

__all__ = [
    "HWC2CHW",
    "Border",
    "CenterCrop",
    "Decode",
    "Inter",
    "Normalize",
    "Pad",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Rescale",
    "Resize",
    "ToTensor",
]
