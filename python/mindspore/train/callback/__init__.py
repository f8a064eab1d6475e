"""mindspore.train.callback."""

from mindspore import _names
from mindspore.train._callbacks import (
    Callback,
    CheckpointConfig,
    EarlyStopping,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ModelCheckpoint,
    ProgressBar,
    ReduceLROnPlateau,
    RunContext,
    TimeMonitor,
)

__all__ = [
    "Callback",
    "CheckpointConfig",
    "EarlyStopping",
    "LambdaCallback",
    "LearningRateScheduler",
    "LossMonitor",
    "ModelCheckpoint",
    "ProgressBar",
    "ReduceLROnPlateau",
    "RunContext",
    "TimeMonitor",
]
__getattr__ = _names.missing(__name__)
