"""mindspore.parallel: what scripts ask of the job that they are a part of."""

from mindspore import _names
from mindspore.parallel import _utils

__all__ = ["_utils"]
__getattr__ = _names.missing(__name__)
