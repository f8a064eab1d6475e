"""mindspore.experimental.optim: optimizers with param_groups, and learning rates that follow a schedule."""

from mindspore import _names
from mindspore.experimental.optim import lr_scheduler
from mindspore.experimental.optim._adaptive import (
    ASGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
)
from mindspore.experimental.optim.optimizer import SGD, Optimizer

__all__ = [
    "ASGD",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]
__getattr__ = _names.missing(__name__)
