"""value_and_grad with MindSpore's signature."""

import muster
from mindspore import _names


def value_and_grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False):
    """muster.value_and_grad."""
    if return_ids:
        raise NotImplementedError(_names.sentence("mindspore.value_and_grad(return_ids=True)"))
    return muster.value_and_grad(fn, grad_position, weights, has_aux)
