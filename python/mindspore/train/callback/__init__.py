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

_LATER = {
    "BackupAndRestore": "_more_callbacks",
    "History": "_more_callbacks",
    "OnRequestExit": "_more_callbacks",
    "SummaryCollector": "_summary",
    "_InternalCallbackParam": "_more_callbacks",
}

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
    *(name for name in _LATER if not name.startswith("_")),
]
__getattr__ = _names.later("mindspore.train", _LATER)
