"""mindspore.train: Model, callbacks, metrics, checkpoints."""

from mindspore import _names, amp
from mindspore.amp import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
    build_train_network,
)
from mindspore.context import ParallelMode
from mindspore.train import callback, metrics, serialization
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
from mindspore.train._metrics import (
    F1,
    LATER_NAMES,
    MAE,
    MSE,
    Accuracy,
    ConfusionMatrix,
    Fbeta,
    Loss,
    Metric,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
    get_metric_fn,
    names,
    rearrange_inputs,
)
from mindspore.train.model import Model
from mindspore.train.serialization import export, load_checkpoint, load_param_into_net, save_checkpoint

# Names that load with their first use, by the module that has them.
_LATER = {
    **dict.fromkeys(("ckpt_to_safetensors", "load_checkpoint_async", "safetensors_to_ckpt"), "_conversions"),
    **dict.fromkeys(("convert_model", "load"), "_mindir._cells"),
    "check_checkpoint": "serialization._checksums",
    "BackupAndRestore": "_more_callbacks",
    "History": "_more_callbacks",
    "OnRequestExit": "_more_callbacks",
    "SummaryCollector": "_summary",
    "SummaryRecord": "_summary",
    "data_sink": "_more_callbacks",
    "DatasetHelper": "dataset_helper",
    "connect_network_with_dataset": "dataset_helper",
    **LATER_NAMES,
}


def async_ckpt_thread_status() -> bool:
    """False: a checkpoint that was asked for is written when the call returns."""
    return False


__all__ = [
    "F1",
    "MAE",
    "MSE",
    "Accuracy",
    "Callback",
    "CheckpointConfig",
    "ConfusionMatrix",
    "DynamicLossScaleManager",
    "EarlyStopping",
    "Fbeta",
    "FixedLossScaleManager",
    "LambdaCallback",
    "LearningRateScheduler",
    "Loss",
    "LossMonitor",
    "LossScaleManager",
    "Metric",
    "Model",
    "ModelCheckpoint",
    "ParallelMode",
    "Precision",
    "ProgressBar",
    "Recall",
    "ReduceLROnPlateau",
    "RunContext",
    "TimeMonitor",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "amp",
    "async_ckpt_thread_status",
    "build_train_network",
    "callback",
    "export",
    "get_metric_fn",
    "load_checkpoint",
    "load_param_into_net",
    "metrics",
    "names",
    "rearrange_inputs",
    "save_checkpoint",
    "serialization",
    *_LATER,
]
__getattr__ = _names.later(__name__, _LATER, ("dataset_helper",))
