"""What the primitives of a MindIR file compute, by those of mindspore.ops.

A primitive is named like a class of mindspore.ops. Where it is a PRIMITIVE, its attributes are what the class
is made with; where it is a PRIMITIVE_FUNCTION, the last inputs are. Those behind mint and methods of tensors
have names of their own there, and stand in `_functions`.
"""

import muster
from mindspore import ops
from mindspore.ops._primitive import Primitive, settings_of
from mindspore.train._mindir import _wire
from muster import _core

# The numbers that dtypes have as inputs of primitives.
_TYPE_IDS = {
    30: "bool_",
    32: "int8",
    33: "int16",
    34: "int32",
    35: "int64",
    37: "uint8",
    38: "uint16",
    39: "uint32",
    40: "uint64",
    42: "float16",
    43: "float32",
    44: "float64",
    45: "bfloat16",
}
# The numbers that strings have there, by the name of the setting.
_CHOICES = {
    "data_format": {0: "NCHW", 1: "NHWC", 14: "NCDHW", 20: "ND"},
    "reduction": {0: "sum", 1: "mean", 2: "none"},
    "interpolation_mode": {0: "bilinear", 1: "nearest"},
    "padding_mode": {0: "zeros", 1: "border", 2: "reflection"},
    "reduce": {0: "none", 1: "add"},
    "pad_mode": {0: "pad", 1: "same", 2: "valid"},
    "padding": {1: "same", 2: "valid"},
    "coordinate_transformation_mode": {0: "asymmetric", 1: "align_corners", 2: "half_pixel"},
    "approximate": {0: "none", 1: "tanh"},
    "rounding_mode": {0: None, 1: "trunc", 2: "floor"},
    "indexing": {0: "ij", 1: "xy"},
}
# Numbers of another kind, by primitive and setting.
_OWN_CHOICES = {
    ("TensorScatterElements", "reduction"): _CHOICES["reduce"],
    ("MaxPoolWithArgmaxV2", "argmax_type"): {3: muster.int32, 4: muster.int64},
}
_DTYPES = ("dtype", "output_type", "argmax_type")
# Where classes here have another name for a setting than attributes of files.
_OTHER_NAMES = {"data_format": ("format",), "reduction": ("reduce",)}
# Files have sizes of all four or five axes; these classes take those of the axes behind the channels.
_OF_PLACES = ("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmaxV2")
_SIZES = ("kernel_size", "strides", "pads", "dilation")


class UnknownError(Exception):
    """A primitive that is not provided."""


def dtype_of(number):
    """The dtype that a number means as an input of a primitive; None stays."""
    if number is None or isinstance(number, muster.DType):
        return number
    if number not in _TYPE_IDS:
        raise UnknownError(f"a dtype with the number {number}")
    return getattr(muster, _TYPE_IDS[number])


def _chosen(primitive: str, name: str, value):
    own = _OWN_CHOICES.get((primitive, name))
    if own is not None:
        return own.get(value, value)
    if name == "axis" and primitive in ("Softmax", "LogSoftmax") and isinstance(value, tuple):
        return value[0] if len(value) == 1 else value
    if name == "pad_mode" and isinstance(value, str):
        return value.lower()  # some files have it in capitals
    if name in _DTYPES:
        return dtype_of(value)
    if name in _CHOICES and isinstance(value, int) and not isinstance(value, bool):
        return _CHOICES[name].get(value, value)
    return value


def operator(primitive: _wire.Message, value_of):
    """What computes the primitive: a function of the inputs of its nodes. UnknownError: nothing here does."""
    name = primitive.op_type
    if name.startswith(_wire.OWN):
        return _row(name.removeprefix(_wire.OWN), primitive, value_of)
    if primitive.prim_type != _wire.PRIMITIVE_FUNCTION:
        return _of_attributes(name, {each.name: each for each in primitive.attribute}, value_of)
    if name in _functions():
        return _functions()[name]
    kind = _class(name)
    names = [each for each in settings_of(kind) if each != "name"]
    made = {}

    def call(*inputs):
        settings = inputs[len(inputs) - len(names) :]
        key = repr(settings)
        if key not in made:
            made[key] = kind(*(_chosen(name, *each) for each in zip(names, settings, strict=True)))
        return made[key](*inputs[: len(inputs) - len(names)])

    return call


def _row(name: str, primitive: _wire.Message, value_of):
    """A row of Muster's, as _writer._own writes it."""
    if name not in _core._op_names():
        raise UnknownError(f"{_wire.OWN}{name} (of another version)")
    settings = {}
    for key, kind, value in value_of(primitive.attribute[0]):
        if kind == "dtype":
            value = getattr(muster, "bool_" if value == "bool" else value)
        settings[key] = float.fromhex(value) if kind == "float" else value

    def call(*inputs):
        outputs = _core._apply_row(name, list(inputs), settings)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    return call


def _class(name: str) -> type[Primitive]:
    try:
        found = getattr(ops, name)
    except (AttributeError, ImportError):
        found = None
    # Those that are refused at their use have a class too (mindspore/_refused.py).
    if not isinstance(found, type) or not issubclass(found, Primitive):
        raise UnknownError(name)
    return found


def _of_attributes(name: str, attributes: dict, value_of):
    kind = _class(name)
    settings = {}
    for setting in settings_of(kind):
        names = (setting, *_OTHER_NAMES.get(setting, ()))
        found = next((attributes[each] for each in names if each in attributes), None)
        if setting == "name" or found is None:
            continue
        value = _chosen(name, setting, value_of(found))
        if name in _OF_PLACES and setting in _SIZES and isinstance(value, tuple):
            value = value[2:] if len(value) > 3 else value
        if setting in ("pad", "pad_list") and settings.get("pad_mode") in ("same", "valid"):
            continue  # what they come to for one size
        settings[setting] = value
    return kind(**settings)


_FOUND = {}


def _functions() -> dict:
    """Primitives without a class here, made with the first use."""
    if not _FOUND:
        from mindspore.train._mindir._functions import FUNCTIONS

        _FOUND.update(FUNCTIONS)
    return _FOUND
