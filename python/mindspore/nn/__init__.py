"""mindspore.nn: cells, losses, optimizers."""

import muster
from mindspore import _names
from muster.nn import (
    SGD,
    Cell,
    CrossEntropyLoss,
    DistributedGradReducer,
    Flatten,
    Momentum,
    Optimizer,
    ReLU,
    SequentialCell,
    Tanh,
)
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
    WithEvalCell,
)


class Dense(muster.nn.Dense):
    """muster.nn.Dense; `dtype` is float32."""

    def __init__(
        self,
        in_channels,
        out_channels,
        weight_init=None,
        bias_init=None,
        has_bias=True,
        activation=None,
        dtype=muster.float32,
    ):
        if muster.dtype(dtype) is not muster.float32:
            raise NotImplementedError(_names.sentence(f"mindspore.nn.Dense(dtype={dtype})"))
        super().__init__(in_channels, out_channels, weight_init, bias_init, has_bias, activation)


__all__ = [
    "F1",
    "MAE",
    "MSE",
    "SGD",
    "Accuracy",
    "Cell",
    "ConfusionMatrix",
    "CrossEntropyLoss",
    "Dense",
    "DistributedGradReducer",
    "Fbeta",
    "Flatten",
    "Loss",
    "Metric",
    "Momentum",
    "Optimizer",
    "Precision",
    "ReLU",
    "Recall",
    "SequentialCell",
    "Tanh",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "WithEvalCell",
]
__getattr__ = _names.missing(__name__)
