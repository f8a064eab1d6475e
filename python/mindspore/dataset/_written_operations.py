"""Operations of map() as MindSpore writes them down, and made again of that.

One table says what a parameter is by its name, a second one where an operation means something else by it.
Parameters that stand in neither are written as they are.
"""

import enum
import importlib

from mindspore import log
from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks, _types

_WAY_OUT = "make the pipeline by a function, called where it is needed"


def refusal(what):
    """The error for what a file of a pipeline does not hold."""
    return _checks.PipelineError(f"deserialize: {what}; {_WAY_OUT}")


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, enum.StrEnum):
        return list(type(value)).index(value)
    if isinstance(value, enum.IntEnum | numpy.integer):
        return int(value)
    if isinstance(value, numpy.ndarray | numpy.floating | numpy.bool_):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"serialize: {value!r} ({type(value).__name__}) is not written to JSON; {_WAY_OUT}")


# ---- Kinds of parameters: how each is written, and read ---------------------------------------------------


def _same(value):
    return value


def _floats(value):
    """Numbers as MindSpore keeps them: float32."""
    if isinstance(value, list | tuple):
        return [_floats(each) for each in value]
    return float(numpy.float32(value))


def _tuple_of(value):
    return tuple(value) if isinstance(value, list) else value


def _spread(value, low, middle):
    """(least, most) of a factor about `middle`."""
    given = value if isinstance(value, list | tuple) else (max(low, middle - value), middle + value)
    return _floats(list(given))


_INTERS = ("BILINEAR", "NEAREST", "BICUBIC", "AREA", "PILCUBIC")  # as MindSpore's library numbers them


def _inter_number(value):
    from mindspore.dataset.vision import _enums

    name = _enums.inter("interpolation", value).name
    if name not in _INTERS:
        raise TypeError(f"serialize: Inter.{name} has no number in JSON; give one of {', '.join(_INTERS)}")
    return _INTERS.index(name)


def _inter(number):
    from mindspore.dataset.vision import Inter

    return Inter[_INTERS[number]]


def _choice(name, module):
    """A member of the enumeration of this name, by its place."""

    def read(number):
        members = getattr(importlib.import_module(f"mindspore.dataset.{module}"), name)
        return list(members)[number]

    return plain, read


def _sides(value):
    from mindspore.dataset.vision import _geometry

    return [0] * 4 if value is None else list(_geometry.padding_of(value))


def _as_list(value):
    return list(value) if isinstance(value, list | tuple) else [value]


def _alone(value):
    return value[0] if len(value) == 1 else tuple(value)


def _twice(value):
    return list(value) if isinstance(value, list | tuple) else [value, value]


def _colour(value):
    return list(value) if isinstance(value, tuple) else [value] * 3


def _scalar(value):
    """A number or a text as MindSpore writes tensors."""
    if value is None:
        return None
    array = numpy.asarray(value)
    kind = "string" if array.dtype.kind in "US" else array.dtype.name
    return {"data": [value], "shape": [], "type": kind}


def _vocab(ids):
    from mindspore.dataset import text

    return text.Vocab.from_dict(ids)


def _dtype_name(value):
    return _types.numpy_dtype(value).name


def _of_operations(values):
    return [written(each) for each in values]


def _policies(policy):
    return [[{"prob": prob, "tensor_op": written(each)} for each, prob in part] for part in policy]


def _read_policies(policy):
    return [[(read(each["tensor_op"]), each["prob"]) for each in part] for part in policy]


_SAME = (plain, _same)
_FLOATS = (_floats, _tuple_of)
_SIZE = (_twice, _tuple_of)
_SIDE = (_as_list, _alone)
_RANGE = (lambda value: _spread(value, 0, 1), _tuple_of)
_ANGLES = (lambda value: _spread(value, -numpy.inf, 0), _tuple_of)
_SHARES = (lambda value: _floats(value or [0] * 4), lambda value: tuple(value) if any(value) else None)
_DTYPE = (_dtype_name, _same)

_KINDS = {
    **dict.fromkeys(("interpolation", "resample"), (_inter_number, _inter)),
    **dict.fromkeys(
        (
            *("alpha", "brightness_factor", "contrast_factor", "cutoff", "degree", "gain", "gamma"),
            *("hue_factor", "mean", "prob", "ratio", "rescale", "saturation_factor", "scale"),
            *("sharpness_factor", "shift", "std"),
        ),
        _FLOATS,
    ),
    **dict.fromkeys(("brightness", "contrast", "saturation"), _RANGE),
    **dict.fromkeys(("dtype", "data_type", "output_type"), _DTYPE),
    "center": (lambda value: _floats(value or ()), lambda value: tuple(value) or None),
    "convert_mode": _choice("ConvertMode", "vision"),
    "coordinates": (lambda value: list(value)[::-1], lambda value: tuple(value)[::-1]),
    "fill_value": (_colour, _tuple_of),
    "hue": _ANGLES,
    "ignore": (lambda value: [] if value is None else _as_list(value), _same),
    "image_batch_format": _choice("ImageBatchFormat", "vision"),
    **dict.fromkeys(("constant", "pad_value"), (_scalar, lambda value: value and value["data"][0])),
    **dict.fromkeys(("left_pad", "right_pad"), (plain, _tuple_of)),
    **dict.fromkeys(
        ("append", "mean_vector", "prepend", "transformation_matrix"),
        (plain, lambda value: None if value is None else numpy.asarray(value)),
    ),
    **dict.fromkeys(("normalization_form", "normalize_form"), _choice("NormalizeForm", "text")),
    "operator": _choice("Relational", "transforms"),
    "padding": (_sides, _tuple_of),
    "padding_mode": _choice("Border", "vision"),
    "size": _SIZE,
    "slice_mode": _choice("SliceMode", "vision"),
    "transform": (lambda value: written(value), lambda value: read(value)),
    "transforms": (_of_operations, lambda values: [read(each) for each in values]),
    "vocab": (lambda value: dict(value._ids), _vocab),
}

# Where an operation means something else by the name of a parameter.
_OF_OPERATION = {
    "Affine": {"degrees": _FLOATS, "shear": (lambda value: _floats(_twice(value)), _tuple_of)}
    | {"translate": _FLOATS},
    "AutoAugment": {"policy": _choice("AutoAugmentPolicy", "vision")},
    "Erase": {
        "value": (lambda value: _floats(_as_list(value)), lambda value: _alone([int(v) for v in value]))
    },
    "Fill": {"fill_value": _SAME},
    "GaussianBlur": {
        "kernel_size": _SIDE,
        "sigma": (lambda value: _floats(_as_list(value or 0)), lambda v: _alone(v) if any(v) else None),
    },
    "PadToSize": {"offset": (lambda value: [] if value is None else _twice(value), lambda v: v or None)},
    "RandomAffine": {
        "degrees": _ANGLES,
        "scale": (lambda value: _floats(value or (1, 1)), _tuple_of),
        "shear": (
            lambda value: (
                _floats([*_spread(value or 0, -numpy.inf, 0), 0, 0][:4])
                if not isinstance(value, list | tuple)
                else _floats(value if len(value) == 4 else [*value, 0, 0])
            ),
            lambda value: tuple(value[: 4 if any(value[2:]) else 2]) if any(value) else None,
        ),
        "translate": _SHARES,
    },
    "RandomApply": {"prob": _SAME},
    "RandomColor": {"degrees": _FLOATS},
    "RandomPosterize": {"bits": _SIZE},
    "RandomResize": {"size": _SIDE},
    "RandomResizeWithBBox": {"size": _SIDE},
    "RandomRotation": {"degrees": _ANGLES},
    "RandomSelectSubpolicy": {"policy": (_policies, _read_policies)},
    "RandomSharpness": {"degrees": _FLOATS},
    "RandomSolarize": {"threshold": (list, _tuple_of)},
    "Resize": {"size": _SIDE},
    "ResizeWithBBox": {"size": _SIDE},
    "Rotate": {"degrees": _FLOATS},
    "SlicePatches": {"fill_value": _SAME},
    "Solarize": {"threshold": (lambda value: _floats(_twice(value)), _tuple_of)},
    "BoundingBoxAugment": {"ratio": _FLOATS},
}
_NAMES = {"HWC2CHW": "HwcToChw", "ToType": "TypeCast"}  # as MindSpore's library calls them
_PARAMETERS = {"Rotate": {"degrees": "degree"}, "Mask": {"operator": "op"}}  # likewise
# Those that MindSpore can run elsewhere, too, and writes where.
_PLACED = """
    AdjustBrightness AdjustContrast AdjustHue AdjustSaturation AdjustSharpness Affine AutoContrast
    ConvertColor Crop Decode Equalize Erase GaussianBlur HorizontalFlip Invert Normalize Pad Perspective
    Posterize Resize ResizedCrop Rotate Solarize VerticalFlip
    """
_PYTHON = "mindspore.dataset.vision.transforms"
# Those that MindSpore runs in Python: their arguments are written as they were given.
_OF_PYTHON = """
    FiveCrop Grayscale HsvToRgb LinearTransformation MixUp RandomErasing RandomGrayscale RandomPerspective
    RgbToHsv TenCrop ToNumpy ToPIL
    """


def _kind(operation, parameter):
    return _OF_OPERATION.get(operation, {}).get(parameter) or _KINDS.get(parameter) or _SAME


def written(operation) -> dict:
    """An operation as a dict; of a function only its name, as MindSpore does."""
    if not _calls.is_ours(operation) or type(operation).__name__ == "PythonTokenizer":
        return _function(operation)
    name = type(operation).__name__
    given = _calls.arguments(operation)
    if name in _OF_PYTHON.split() or given.get("to_pil"):
        return _python(name, given)
    if name == "Decode":
        given = {"rgb": True}
    called = _PARAMETERS.get(name, {})
    if type(operation).__module__.startswith("mindspore.dataset.text"):  # of these MindSpore writes the name
        defaults = _calls.parameters(type(operation))
        given = {each: value for each, value in given.items() if value is not defaults[each].default}
    parameters = {called.get(each, each): _kind(name, each)[0](value) for each, value in given.items()}
    if name in _PLACED.split():
        parameters["device_target"] = "CPU"
    return {"tensor_op_name": _NAMES.get(name, name), "tensor_op_params": parameters or None}


def _python(name, given):
    """One that MindSpore runs in Python, with the members that it has there."""
    members = {"implementation": 1, "output_type": "float64", "transforms": []}
    if not name.startswith("Random"):
        members |= {"device_target": "CPU"} if name == "Decode" else {"random": False}
    return {
        "python_module": _PYTHON,
        "tensor_op_name": name,
        "tensor_op_params": members | plain(given),
    }


def _function(operation):
    name = getattr(operation, "__name__", type(operation).__name__)
    log.warning(f"serialize: map runs {name}, which is Python: the file has its name only; {_WAY_OUT}")
    return {"python_module": "mindspore.dataset.transforms.py_transforms_util", "tensor_op_name": name}


def _class_of(name):
    from mindspore.dataset import text, transforms, vision

    name = next((ours for ours, theirs in _NAMES.items() if theirs == name and ours != "ToType"), name)
    for module in (vision, transforms, text):
        if name in module.__all__:
            return getattr(module, name)
    raise refusal(f"there is no operation {name}")


def read(entry: dict):
    """The operation that written() wrote."""
    name = entry["tensor_op_name"]
    module = entry.get("python_module")
    if module is not None and module != _PYTHON:
        raise refusal(f"map runs {name}, a function of Python, which no file holds")
    made = _class_of(name)
    theirs = {given: ours for ours, given in _PARAMETERS.get(made.__name__, {}).items()}
    wanted = _calls.parameters(made)
    parameters = {}
    for given, value in (entry.get("tensor_op_params") or {}).items():
        ours = theirs.get(given, given)
        if ours in wanted:  # others say where it runs: here it is always this process
            parameters[ours] = _of_python(ours, value) if module else _kind(made.__name__, ours)[1](value)
    try:
        return made(*parameters.pop("slices", ()), **parameters)
    except TypeError as error:
        raise refusal(f"{name} is not made of {entry.get('tensor_op_params')}: {error}") from None


def _of_python(parameter, value):
    from mindspore.dataset.vision import Inter

    if parameter == "interpolation":  # a number of Python's there
        return Inter(value)
    is_array = parameter in ("mean_vector", "transformation_matrix")
    return numpy.asarray(value) if is_array else _tuple_of(value)
