"""mindspore.scipy: linear algebra and optimization with the arguments of scipy's."""

from mindspore import _names

__all__ = ["linalg", "optimize"]
__getattr__ = _names.missing(__name__, later=("linalg", "optimize"))
