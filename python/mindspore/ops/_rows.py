"""Functions of mindspore.ops that the op rows name (muster/graph/ops): nothing here is written by hand."""

from muster import _core

globals().update(_core._mindspore_functions)
__all__ = sorted(_core._mindspore_functions)
