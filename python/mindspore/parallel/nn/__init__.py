"""mindspore.parallel.nn: cells that take a batch in equal parts."""

from mindspore import _names
from mindspore.nn import GradAccumulationCell as GradAccumulation
from mindspore.nn import MicroBatchInterleaved
from mindspore.nn import PipelineCell as Pipeline
from mindspore.parallel._pipeline import PipelineGradReducer

__all__ = ["GradAccumulation", "MicroBatchInterleaved", "Pipeline", "PipelineGradReducer"]
__getattr__ = _names.missing(__name__)
