"""Ops as classes: made once with their settings, called with tensors. `P.ReduceSum(keep_dims=True)(x, 1)`."""

from mindspore import _names


class Primitive:
    """An op and its settings. A subclass keeps them as attributes and computes in `compute`."""

    def __init__(self, name: str | None = None):
        self.name = name or type(self).__name__

    def compute(self, *inputs):
        """What the op gives for these inputs."""
        raise NotImplementedError(_names.sentence(f"mindspore.ops.{self.name}"))

    def __call__(self, *inputs):
        return self.compute(*inputs)

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
