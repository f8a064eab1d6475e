"""Ops as classes: made once with their settings, called with tensors. `P.ReduceSum(keep_dims=True)(x, 1)`."""

import sys

from mindspore import _names
from muster import _core


class Primitive:
    """An op and its settings. A subclass keeps them as attributes and computes in `compute`."""

    _place = None

    def __init__(self, name: str | None = None):
        self.name = name or type(self).__name__

    def compute(self, *inputs):
        """What the op gives for these inputs."""
        raise NotImplementedError(_names.sentence(f"mindspore.ops.{self.name}"))

    def __call__(self, *inputs):
        return _core._call_primitive(self._place, self.compute, inputs)

    def place(self, role: str, rank: int) -> "Primitive":
        """Where its calls run in a job that divides its network over the workers: muster.nn.Cell.place."""
        caller = sys._getframe(1)
        name = getattr(self, "name", type(self).__name__)
        self._place = _core._place_primitive(name, role, rank, caller.f_code.co_filename, caller.f_lineno)
        return self

    def __repr__(self) -> str:
        settings = ", ".join(
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if name != "name" and not name.startswith("_")
        )
        return f"{self.name}({settings})"


def without_settings(name: str, function) -> type[Primitive]:
    """The class of an op that is just a function."""

    def compute(self, *inputs):
        return function(*inputs)

    return type(name, (Primitive,), {"compute": compute, "__doc__": function.__doc__})
