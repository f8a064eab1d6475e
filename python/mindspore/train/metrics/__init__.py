"""mindspore.train.metrics."""

from mindspore import _names
from mindspore.train._metrics import (
    F1,
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

__all__ = [
    "F1",
    "MAE",
    "MSE",
    "Accuracy",
    "ConfusionMatrix",
    "Fbeta",
    "Loss",
    "Metric",
    "Precision",
    "Recall",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "get_metric_fn",
    "names",
    "rearrange_inputs",
]
__getattr__ = _names.missing(__name__)
