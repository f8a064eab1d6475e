"""Operations on any values, for Dataset.map."""

from muster._core import Compose, OneHot, TypeCast

__all__ = ["Compose", "OneHot", "TypeCast"]
