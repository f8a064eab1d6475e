"""mindspore.numpy.math_ops: functions of numbers, collected from the families."""

from mindspore import _names
from mindspore.numpy import _elementwise, _neighbours, _products, _reductions, _statistics
from mindspore.numpy._elementwise import *  # noqa: F403
from mindspore.numpy._elementwise import round as round
from mindspore.numpy._neighbours import *  # noqa: F403
from mindspore.numpy._products import *  # noqa: F403
from mindspore.numpy._reductions import *  # noqa: F403
from mindspore.numpy._statistics import *  # noqa: F403

_FAMILIES = (_elementwise, _neighbours, _products, _reductions, _statistics)
__all__ = sorted({name for family in _FAMILIES for name in family.__all__} - {"around"})
__getattr__ = _names.missing(__name__)
