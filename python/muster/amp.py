"""Mixed precision: networks that compute in bfloat16 over parameters in float32."""

from muster._core import auto_mixed_precision, custom_mixed_precision
from muster.nn import (
    BatchNorm1d,
    BatchNorm2d,
    Cell,
    Conv2d,
    Dense,
    LayerNorm,
    Optimizer,
    TrainOneStepCell,
    WithLossCell,
)

__all__ = [
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
]


def build_train_network(
    network: Cell, optimizer: Optimizer, loss_fn: Cell | None = None, level: str = "O0"
) -> TrainOneStepCell:
    """A cell whose call is a training step of `network` in mixed precision; its loss is float32."""
    network = auto_mixed_precision(network, level)
    if loss_fn is not None:
        network = WithLossCell(network, loss_fn, level != "O0")
    return TrainOneStepCell(network, optimizer).set_train()


def get_white_list() -> list[type[Cell]]:
    """The classes of cells that compute in bfloat16 at level 'O1'; a list of one's own."""
    return [Conv2d, Dense]


def get_black_list() -> list[type[Cell]]:
    """The classes of cells that compute in float32 at level 'O2'; a list of one's own."""
    return [BatchNorm1d, BatchNorm2d, LayerNorm]
