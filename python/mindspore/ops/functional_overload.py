"""mindspore.ops.functional_overload: functions of mindspore.mint by another path."""

from mindspore import _names

_OF_MINT = """
    add addcdiv any bitwise_not clamp clip div divide einsum empty empty_like floor_divide fmod ge
    greater_equal index_add kthvalue lerp max min nansum remainder repeat_interleave sub where xlogy
"""
_HOLDERS = dict.fromkeys(_OF_MINT.split(), "mindspore.mint")
__all__ = sorted(_HOLDERS)
__getattr__ = _names.missing(__name__, holders=_HOLDERS)
