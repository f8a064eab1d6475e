"""mindspore.mint.nn: cells with the arguments of PyTorch's modules."""

from mindspore import _names, nn
from mindspore.mint.nn import _layers, _losses, _weights
from mindspore.mint.nn import functional as functional
from mindspore.mint.nn._layers import *  # noqa: F403
from mindspore.mint.nn._losses import *  # noqa: F403
from mindspore.mint.nn._weights import *  # noqa: F403

Hardsigmoid, Hardswish, LogSigmoid, SELU = nn.HSigmoid, nn.HSwish, nn.LogSigmoid, nn.SeLU
Identity, Mish, ReLU, Sigmoid, Tanh = nn.Identity, nn.Mish, nn.ReLU, nn.Sigmoid, nn.Tanh

_SAME = ["Hardsigmoid", "Hardswish", "Identity", "LogSigmoid", "Mish", "ReLU", "SELU", "Sigmoid", "Tanh"]
__all__ = sorted({"functional", *_SAME, *_layers.__all__, *_losses.__all__, *_weights.__all__})
__getattr__ = _names.missing(__name__, holders={"Cell": "mindspore.nn"})  # which MindSpore imports there
