"""mindspore.parallel.nn: cells that take a batch in equal parts."""

from mindspore import _names
from mindspore.nn import GradAccumulationCell as GradAccumulation
from mindspore.nn import MicroBatchInterleaved
from mindspore.nn import PipelineCell as Pipeline

__all__ = ["GradAccumulation", "MicroBatchInterleaved", "Pipeline"]
__getattr__ = _names.missing(__name__)
