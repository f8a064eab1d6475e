"""mindspore.dataset: pipelines with MindSpore's arguments."""

from muster.dataset import (
    DistributedSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)

from mindspore import _names
from mindspore.dataset import config, transforms, vision
from mindspore.dataset._dataset import Dataset, Shuffle, zip
from mindspore.dataset._sources import (
    Cifar10Dataset,
    Cifar100Dataset,
    FashionMnistDataset,
    GeneratorDataset,
    ImageFolderDataset,
    MnistDataset,
    NumpySlicesDataset,
)

__all__ = [
    "Cifar10Dataset",
    "Cifar100Dataset",
    "Dataset",
    "DistributedSampler",
    "FashionMnistDataset",
    "GeneratorDataset",
    "ImageFolderDataset",
    "MnistDataset",
    "NumpySlicesDataset",
    "PKSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Shuffle",
    "SubsetRandomSampler",
    "SubsetSampler",
    "WeightedRandomSampler",
    "config",
    "transforms",
    "vision",
    "zip",
]
__getattr__ = _names.missing(__name__)
