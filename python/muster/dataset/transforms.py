"""Operations on any values, for Dataset.map."""

from muster._core import TypeCast

__all__ = ["TypeCast"]
