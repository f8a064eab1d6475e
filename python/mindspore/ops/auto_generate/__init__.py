"""mindspore.ops.auto_generate: where MindSpore has the functions and classes that are made from tables."""

from mindspore import _names


def named_like(module: str, *endings: str):
    """A module's __getattr__: names of mindspore.ops and mindspore.mint, with another ending."""
    missing = _names.missing(module)

    def get(name: str):
        if name.startswith("__"):
            return missing(name)
        from mindspore import mint, ops
        from mindspore.ops import _ext_primitives, _gradient_primitives

        if name in _ext_primitives.NAMES:
            return getattr(_ext_primitives, name)
        plain = next((name.removesuffix(each) for each in endings if name.endswith(each)), name)
        own = (mint, mint.nn.functional)
        if name.endswith(("_ext", "_ext_view")):  # they have mint's arguments
            places = (*own, mint.linalg, ops)
        else:
            places = (ops, ops.operations, _gradient_primitives, *own)
        found = next((each for place in places if (each := getattr(place, plain, None)) is not None), None)
        return missing(name) if found is None else found

    return get


__all__: list = []
__getattr__ = named_like(__name__, "_ext_op", "_op", "_impl", "_ext_view", "_ext")
