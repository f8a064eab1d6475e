"""mindspore.amp: mixed precision, in bfloat16."""

import muster.amp
from muster.amp import auto_mixed_precision, custom_mixed_precision, get_black_list, get_white_list

from mindspore import _names


def build_train_network(network, optimizer, loss_fn=None, level="O0", boost_level="O0", **settings):
    """muster.amp.build_train_network; `keep_batchnorm_fp32` is True, and bfloat16 needs no loss scale."""
    neutral = {"keep_batchnorm_fp32": (None, True), "loss_scale_manager": (None,)}
    others = {name: (value, *neutral.get(name, ())) for name, value in settings.items()}
    _names.refuse("mindspore.amp.build_train_network", boost_level=(boost_level, "O0"), **others)
    return muster.amp.build_train_network(network, optimizer, loss_fn, level)


__all__ = [
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
]
__getattr__ = _names.missing(__name__)
