"""mindspore.numpy: functions of tensors by numpy's names, as MindSpore 2.7.0 has them."""

from mindspore import _names
from mindspore.numpy import array_creations, array_ops, dtypes, logic_ops, math_ops
from mindspore.numpy.array_creations import *  # noqa: F403
from mindspore.numpy.array_creations import asarray_const as asarray_const
from mindspore.numpy.array_creations import copy as copy
from mindspore.numpy.array_ops import *  # noqa: F403
from mindspore.numpy.dtypes import *  # noqa: F403
from mindspore.numpy.dtypes import NINF as NINF
from mindspore.numpy.dtypes import PINF as PINF
from mindspore.numpy.dtypes import inf as inf
from mindspore.numpy.dtypes import nan as nan
from mindspore.numpy.dtypes import numeric_types as numeric_types
from mindspore.numpy.dtypes import pi as pi
from mindspore.numpy.logic_ops import *  # noqa: F403
from mindspore.numpy.math_ops import *  # noqa: F403
from mindspore.numpy.math_ops import around as around
from mindspore.numpy.math_ops import round as round

__all__ = sorted(
    {name for part in (array_creations, array_ops, dtypes, logic_ops, math_ops) for name in part.__all__}
)
__getattr__ = _names.missing(__name__)
