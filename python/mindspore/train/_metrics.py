"""Metrics by MindSpore's names."""

import functools

from muster.train import (
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
    metric_names,
)

_CLASSES = {
    "accuracy": Accuracy,
    "acc": Accuracy,
    "loss": Loss,
    "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy,
    "topk": TopKCategoricalAccuracy,
    "precision": Precision,
    "recall": Recall,
    "F1": F1,
    "mae": MAE,
    "mse": MSE,
    "confusion_matrix": ConfusionMatrix,
}


def names():
    """The names of metrics."""
    return list(_CLASSES)


def get_metric_fn(name, *args, **kwargs):
    """A metric by its name, made with the arguments."""
    if name not in _CLASSES:
        raise KeyError(f"there is no metric {name!r}; there are: {', '.join(_CLASSES)}")
    return _CLASSES[name](*args, **kwargs)


def rearrange_inputs(func):
    """A decorator of update: gives it the inputs that set_indexes has chosen."""

    @functools.wraps(func)
    def chosen(self, *inputs):
        indexes = self.indexes
        return func(self, *(inputs[i] for i in indexes)) if indexes else func(self, *inputs)

    return chosen


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
    "metric_names",
    "names",
    "rearrange_inputs",
]
