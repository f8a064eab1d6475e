"""Operations on any values, for Dataset.map."""

from muster import _core
from muster._core import Compose  # noqa: F401 - listed from globals() below

globals().update(_core._transforms)  # those that the rows of operations describe (muster/data)
__all__ = sorted(name for name in globals() if not name.startswith("_"))
