"""Operations on images, for Dataset.map."""

from muster import _core
from muster._core import Border, Inter  # noqa: F401 - listed from globals() below

globals().update(_core._vision)  # those that the rows of operations describe (muster/data)
__all__ = sorted(name for name in globals() if not name.startswith("_"))
