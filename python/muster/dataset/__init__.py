"""From files to batches, made ahead of the training on other threads."""

from muster._core import (
    Cifar10Dataset,
    Cifar100Dataset,
    Dataset,
    DistributedSampler,
    FashionMnistDataset,
    GeneratorDataset,
    ImageFolderDataset,
    MnistDataset,
    NumpySlicesDataset,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    TokenFileDataset,
    WeightedRandomSampler,
)
from muster._core import zip_datasets as zip
from muster.dataset import config, transforms, vision

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
    "SubsetRandomSampler",
    "SubsetSampler",
    "TokenFileDataset",
    "WeightedRandomSampler",
    "config",
    "transforms",
    "vision",
    "zip",
]
