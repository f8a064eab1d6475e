"""mindspore.train.amp: the names of mindspore.amp."""

from mindspore import _names
from mindspore.amp import (
    auto_mixed_precision,
    build_train_network,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
)

__all__ = [
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
]
__getattr__ = _names.missing(__name__)
