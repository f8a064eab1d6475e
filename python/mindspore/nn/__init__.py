"""mindspore.nn: cells, losses, optimizers."""

import muster
from mindspore import _names
from mindspore.communication import GlobalComm
from mindspore.nn._activations import (  # noqa: F401 - listed from globals() below
    CELU,
    Hardtanh,
    HSigmoid,
    HSwish,
    LogSigmoid,
    Mish,
    PReLU,
    SeLU,
    Softsign,
)
from muster.nn import *  # noqa: F403 - what it lists, and the optimizers of the rows with it
from muster.train import (  # noqa: F401
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


class DistributedGradReducer(muster.nn.DistributedGradReducer):
    """muster.nn.DistributedGradReducer; `degree` must be the world size."""

    def __init__(self, parameters, mean=None, degree=None, fusion_type=1, group=GlobalComm.WORLD_COMM_GROUP):
        workers = muster._core._context()["world_size"]
        _names.refuse(
            "mindspore.nn.DistributedGradReducer",
            degree=(degree, None, workers),
            fusion_type=(fusion_type, 1),
            group=(group, GlobalComm.WORLD_COMM_GROUP),
        )
        super().__init__(parameters, mean)


del Initializer, initializer  # noqa: F821 - MindSpore has them in mindspore.common.initializer
__all__ = sorted({name for name in globals() if not name.startswith("_")} - {"GlobalComm", "muster"})
__getattr__ = _names.missing(__name__)
