"""From files to batches, made ahead of the training on another thread."""

from muster._core import Dataset, MnistDataset
from muster.dataset import transforms, vision

__all__ = ["Dataset", "MnistDataset", "transforms", "vision"]
