"""mindspore.parallel.nn: cells that take a batch in equal parts."""

from mindspore import _names
from mindspore.nn import GradAccumulationCell as GradAccumulation
from mindspore.nn import MicroBatchInterleaved, PipelineCell
from mindspore.parallel._pipeline import PipelineGradReducer

Pipeline = PipelineCell

__all__ = ["GradAccumulation", "MicroBatchInterleaved", "Pipeline", "PipelineCell", "PipelineGradReducer"]
__getattr__ = _names.missing(__name__)
