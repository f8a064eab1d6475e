"""Functions for training by MindSpore's names."""

from muster.ops import assign, assign_add, clip_by_global_norm, clip_by_norm

from mindspore import _names

__all__ = ["assign", "assign_add", "clip_by_global_norm", "clip_by_norm"]
__getattr__ = _names.missing(__name__)
