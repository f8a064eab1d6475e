"""Cells: layers, losses, optimizers, initializers, and the base class of networks."""

from muster._core import (
    SGD,
    Cell,
    CrossEntropyLoss,
    Dense,
    DistributedGradReducer,
    Flatten,
    Initializer,
    Momentum,
    Optimizer,
    ReLU,
    SequentialCell,
    Tanh,
    initializer,
)

__all__ = [
    "SGD",
    "Cell",
    "CrossEntropyLoss",
    "Dense",
    "DistributedGradReducer",
    "Flatten",
    "Initializer",
    "Momentum",
    "Optimizer",
    "ReLU",
    "SequentialCell",
    "Tanh",
    "initializer",
]
