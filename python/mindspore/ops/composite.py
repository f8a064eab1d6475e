"""mindspore.ops.composite, often imported as C: functions of functions."""

import functools

import muster
from mindspore import _errors, _names
from mindspore._gradient import GradOperation
from mindspore.ops._math import clip_by_value
from mindspore.ops._training import clip_by_global_norm

partial = functools.partial

# What the type names of MultitypeFuncGraph.register mean here. Of the last kinds there are no values.
_KINDS = {
    "Tensor": muster.Tensor,
    "Bool": bool,
    **dict.fromkeys(("Int", "Int64"), int),
    **dict.fromkeys(("Float", "Float32", "Float64"), float),
    "Number": (int, float),
    "String": str,
    "Tuple": tuple,
    "List": list,
    "Dictionary": dict,
    "Slice": slice,
    "Ellipsis": type(...),
    "NoneType": type(None),
    "None": type(None),
    "Function": (type(lambda: None), functools.partial, muster.Cell),
    **dict.fromkeys(("RowTensor", "RowTensorInner", "MapTensor", "CSRTensor", "COOTensor"), ()),
    **dict.fromkeys(
        ("Int8", "Int16", "Int32", "UInt8", "UInt16", "UInt32", "UInt64", "Float16", "BFloat16"), ()
    ),
}


def _kind(given):
    """The name of a type, and that of its elements' dtype where it is a tensor of some, or None."""
    name, _, dtype = str(given).partition("[")
    if name not in _KINDS or (dtype and name != "Tensor"):
        raise NotImplementedError(_names.sentence(f"mindspore.ops.MultitypeFuncGraph.register({given!r})"))
    return name, dtype.removesuffix("]") or None


class MultitypeFuncGraph:
    """One of several functions, by the types of its arguments: those that `register` names."""

    def __init__(self, name, read_value=False):
        _names.refuse("mindspore.ops.MultitypeFuncGraph", read_value=(read_value, False))
        self.name = name
        self._functions = []  # (kinds, function)

    def register(self, *type_names):
        """A decorator: the function is for arguments of these types, which are names or dtypes."""
        kinds = tuple(map(_kind, type_names))

        def keep(function):
            self._functions.append((kinds, function))
            return function

        return keep

    def __call__(self, *args):
        if len(self._functions) == 1:  # which takes what it is given, as in MindSpore
            return self._functions[0][1](*args)
        for with_bools in (False, True):  # a bool is a number where no function is for bools
            for kinds, function in self._functions:
                if len(kinds) == len(args) and all(map(_is_a, args, kinds, [with_bools] * len(args))):
                    return function(*args)
        given = ", ".join(type(arg).__name__ for arg in args)
        raise _errors.ArgumentError(f"{self.name}: no function is registered for ({given})")


def _is_a(value, kind, with_bools):
    name, dtype = kind
    if isinstance(value, bool) and name in ("Int", "Int64", *(() if with_bools else ("Number",))):
        return False
    return isinstance(value, _KINDS[name]) and dtype in (None, str(getattr(value, "dtype", None)))


class Map:
    """A function of the first entries of some tuples or lists, of the second ones, and so on, as a tuple."""

    def __init__(self, ops=None, reverse=False):
        self._function = ops
        self._reverse = reverse

    def __call__(self, *args):
        function, *sequences = args if self._function is None else (self._function, *args)
        return self._mapped(function, sequences)

    def _mapped(self, function, sequences):
        first = sequences[0]
        if any(len(sequence) != len(first) for sequence in sequences):
            raise ValueError("Map: the tuples or lists must have one length")
        columns = list(zip(*sequences, strict=True))
        results = [
            self._entry(function, column) for column in (reversed(columns) if self._reverse else columns)
        ]
        return tuple(reversed(results) if self._reverse else results)

    def _entry(self, function, column):
        return function(*column)


class HyperMap(Map):
    """Map that goes into tuples and lists inside of those."""

    def __call__(self, *args):
        function, *sequences = args if self._function is None else (self._function, *args)
        return self._entry(function, sequences)

    def _entry(self, function, column):
        if all(isinstance(entry, (tuple, list)) for entry in column):
            return self._mapped(function, column)
        return function(*column)


def _of_each(name):
    def like(x):
        if isinstance(x, (tuple, list)):
            return tuple(like(each) for each in x)
        return getattr(muster.ops, name)(x)

    like.__name__ = name
    like.__doc__ = f"muster.ops.{name} of a tensor, or of each in a tuple."
    return like


ones_like, zeros_like = _of_each("ones_like"), _of_each("zeros_like")

__all__ = [
    "GradOperation",
    "HyperMap",
    "Map",
    "MultitypeFuncGraph",
    "clip_by_global_norm",
    "clip_by_value",
    "partial",
]
__path__ = []  # older paths lie below
__getattr__ = _names.missing(__name__)
