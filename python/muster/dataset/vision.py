"""Operations on images, for Dataset.map."""

from muster._core import HWC2CHW, Normalize, Rescale

__all__ = ["HWC2CHW", "Normalize", "Rescale"]
