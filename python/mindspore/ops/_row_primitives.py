"""Classes of mindspore.ops that the op rows name (muster/graph/ops): nothing here is written by hand."""

from mindspore.ops._primitive import of_row
from muster import _core

_classes = {each[0]: of_row(*each) for each in _core._mindspore_primitives}
globals().update(_classes)
__all__ = sorted(_classes)
