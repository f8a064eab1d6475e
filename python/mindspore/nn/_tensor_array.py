"""nn.TensorArray: a list of tensors of one shape that grows as it is written."""

import muster
from mindspore import ops
from mindspore.common import dtype as mstype
from muster import _core


class TensorArray(muster.Cell):
    """Tensors of one dtype and shape by their places; a cell that uses one runs op by op.

    Args:
        dtype: Of the elements.
        element_shape: Their shape, a tuple or list.
        dynamic_size: Whether it grows with what is written; else it has `size` places.
        size: How many places it begins with, filled with zeros.
        name: Of the array, for errors.

    Raises:
        TypeError: dtype is none of tensors, or another argument is of another type.
        ValueError: size is below 0.
    """

    def __init__(self, dtype, element_shape, dynamic_size=True, size=0, name="TA"):
        super().__init__()
        if dtype not in (*mstype.number_type, muster.bool_):
            raise TypeError(f"TensorArray: dtype is one of numbers or bool, not {dtype!r}")
        if not isinstance(element_shape, tuple | list):
            raise TypeError(f"TensorArray: element_shape is a tuple or a list, not {element_shape!r}")
        if not isinstance(dynamic_size, bool):
            raise TypeError(f"TensorArray: dynamic_size is True or False, not {dynamic_size!r}")
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(f"TensorArray: size is a whole number, not {size!r}")
        if not isinstance(name, str):
            raise TypeError(f"TensorArray: name is a string, not {name!r}")
        if size < 0:
            raise ValueError(f"TensorArray: size is 0 or more, not {size}")
        self.__dict__["_elements"] = [None] * size  # of a place that was not written: None
        self._dtype = dtype
        self._element_shape = tuple(element_shape)
        self._grows = dynamic_size
        self._name = name

    def _now(self):
        """The elements, of a call and not of a graph, which would keep those of its first call."""
        if _core._is_tracing():
            ops.zeros((), muster.float32).asnumpy()  # from here on the cell runs op by op
        return self.__dict__["_elements"]

    def _index(self, index):
        at = int(index)
        if at < 0:
            raise RuntimeError(f"TensorArray {self._name}: a place is 0 or more, not {at}")
        return at

    def _zeros(self):
        return ops.zeros(self._element_shape, self._dtype)

    def write(self, index, value):
        """Puts a tensor or a number at a place; places before it that were not written are zeros. Gives True.

        Raises:
            RuntimeError: The tensor has another dtype or shape, or there is no such place.
        """
        elements, at = self._now(), self._index(index)
        value = muster.Tensor(value) if isinstance(value, bool | int | float) else value
        if value.dtype != self._dtype or value.shape != self._element_shape:
            raise RuntimeError(
                f"TensorArray {self._name} holds {self._dtype} of shape {self._element_shape}, "
                f"not {value.dtype} of shape {value.shape}"
            )
        if at >= len(elements):
            if not self._grows:
                raise RuntimeError(f"TensorArray {self._name} has {len(elements)} places: there is no {at}")
            elements.extend([None] * (at + 1 - len(elements)))
        elements[at] = ops.identity(value)
        return True

    def read(self, index):
        """The tensor at a place.

        Raises:
            RuntimeError: There is no such place.
        """
        elements, at = self._now(), self._index(index)
        if at >= len(elements):
            raise RuntimeError(f"TensorArray {self._name} has {len(elements)} places: there is no {at}")
        return self._zeros() if elements[at] is None else elements[at]

    def stack(self):
        """All tensors as one, along a new first axis."""
        elements = self._now()
        if not elements:
            return ops.zeros((0, *self._element_shape), self._dtype)
        return ops.stack([self._zeros() if each is None else each for each in elements])

    def size(self):
        """How many places there are, as an int64 tensor."""
        return muster.Tensor(len(self._now()), muster.int64)

    def clear(self):
        """Forgets what was written: no places if it grows, zeros otherwise. Gives True."""
        elements = self._now()
        elements[:] = [] if self._grows else [None] * len(elements)
        return True

    def close(self):
        """As clear(). Gives True."""
        return self.clear()


__all__ = ["TensorArray"]
