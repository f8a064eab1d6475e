"""mindspore.ops.auto_generate: where MindSpore has the functions and classes that are made from tables."""

import sys

from mindspore import _names
from mindspore.ops.auto_generate import _classes


def named_like(module: str, *endings: str):
    """A module's __getattr__: names of mindspore.ops and mindspore.mint, with another ending."""
    missing = _names.missing(module)

    def get(name: str):
        if name == "__all__":
            return sorted(_classes.NAMES)
        if name.startswith("__"):
            return missing(name)
        from mindspore import _refused, mint, ops
        from mindspore.ops import _ext_primitives, _gradient_primitives, _primitive

        if name in _ext_primitives.NAMES:
            return getattr(_ext_primitives, name)
        plain = next((name.removesuffix(each) for each in endings if name.endswith(each)), name)
        own = (mint, mint.nn.functional)
        if name.endswith(("_ext", "_ext_view")):  # they have mint's arguments
            places = (*own, mint.linalg, ops)
        else:
            places = (ops, ops.operations, _gradient_primitives, *own)
        found = next((each for place in places if (each := getattr(place, plain, None)) is not None), None)
        if plain != name and isinstance(found, type) and _primitive.settings_of(found):
            found = None  # its namesake takes as inputs what the class is made with
        if found is None:
            found = _refused.find(f"mindspore.ops.auto_generate.{name}")
        if found is None and name in _classes.NAMES:
            found = _refused.op_of_accelerators(f"{module}.{name}")
            setattr(sys.modules[module], name, found)
        return missing(name) if found is None else found

    return get


__all__: list = []
__getattr__ = named_like(__name__, "_ext_op", "_op", "_impl", "_ext_view", "_ext")
