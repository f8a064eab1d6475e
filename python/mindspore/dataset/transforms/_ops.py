"""Operations on any values, and mixtures of operations."""

import enum
import numbers

import muster.dataset.transforms as ours

from mindspore._lazy import numpy
from mindspore.dataset import _calls, _checks, _random, _types
from mindspore.dataset._checks import PipelineError


class TensorOperation:
    """Base class of operations of one's own: define __call__."""

    def __init__(self):
        self.random = False

    def __call__(self, *values):
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


class PyTensorOperation(TensorOperation):
    """The same."""


def _array(value, name):
    if not isinstance(value, numpy.ndarray | numpy.generic | list | tuple | int | float | str | bytes):
        raise TypeError(f"{name}: Input should be a NumPy array, got {type(value)}.")
    array = numpy.asarray(value)
    if array.dtype.hasobject:
        raise TypeError(f"{name}: the input holds Python objects")
    return array


class _Operation(_calls.Recorded, TensorOperation):
    def __init__(self):
        super().__init__()

    def __call__(self, *values):
        name = type(self).__name__
        return self._made(*[_array(value, name) for value in values])

    def __repr__(self):
        return type(self).__name__


def _listed(transforms, name="transforms"):
    _checks.of_type(f"{name} list", transforms, list)
    if not transforms:
        raise ValueError(f"{name} list can not be empty.")
    for at, each in enumerate(transforms):
        if not callable(each):
            raise TypeError(
                f"{name}[{at}] is neither a transforms op (TensorOperation) nor a callable pyfunc."
            )
    return list(transforms)


def _in_turn(operations, values):
    for operation in operations:
        answer = operation(*values)
        values = answer if isinstance(answer, tuple) else (answer,)
    return values[0] if len(values) == 1 else values


# Operations that MindSpore runs in Python.
_OF_PYTHON = frozenset(
    (
        *("FiveCrop", "Grayscale", "HsvToRgb", "LinearTransformation", "MixUp", "RandomErasing"),
        *("RandomGrayscale", "RandomOrder", "RandomPerspective", "RgbToHsv", "TenCrop", "ToPIL"),
    )
)


def _is_of_python(operation) -> bool:
    if isinstance(operation, Compose):
        return any(map(_is_of_python, operation.transforms))
    return type(operation).__name__ in _OF_PYTHON or bool(getattr(operation, "_gives_pictures", False))


class Compose(_calls.Recorded):
    """Operations one after the other. Called with one of MindSpore's in Python among them, it gives a tuple:
    `image = Compose([ToPIL(), ToTensor()])(image)[0]`."""

    _gives_tuple = False

    def __init__(self, transforms):
        self.transforms = _listed(transforms)
        self.random = False

    @property
    def _parts(self):
        return self.transforms

    def __call__(self, *values):
        answer = _in_turn(self.transforms, values)
        is_tuple = isinstance(answer, tuple) or not (self._gives_tuple or _is_of_python(self))
        return answer if is_tuple else (answer,)


class RandomApply(_calls.Recorded):
    """All operations, with a probability."""

    def __init__(self, transforms, prob=0.5):
        self.transforms, self._prob = _listed(transforms), _checks.probability("prob", prob)

    @property
    def _gives_objects(self):
        return any(getattr(each, "_gives_objects", False) for each in self.transforms)

    def __call__(self, *values):
        if _random.generator().random() < self._prob:
            return _in_turn(self.transforms, values)
        return values[0] if len(values) == 1 else values


class RandomChoice(RandomApply):
    """One of the operations."""

    def __init__(self, transforms):
        super().__init__(transforms)

    def __call__(self, *values):
        chosen = self.transforms[int(_random.generator().integers(len(self.transforms)))]
        return _in_turn([chosen], values)


class RandomOrder(RandomApply):
    """All operations in random order."""

    def __init__(self, transforms):
        super().__init__(transforms)

    def __call__(self, *values):
        order = _random.generator().permutation(len(self.transforms))
        return _in_turn([self.transforms[at] for at in order], values)


class Concatenate(_Operation):
    """The values one after the other along an axis, with `prepend` before and `append` behind them."""

    def __init__(self, axis=0, prepend=None, append=None):
        super().__init__()
        _checks.of_type("axis", axis, int)
        if axis not in (0, -1):
            raise ValueError("only 1D concatenation supported: axis is 0 or -1.")
        for name, value in (("prepend", prepend), ("append", append)):
            if value is not None:
                _checks.of_type(name, value, numpy.ndarray)
                if value.ndim != 1:
                    raise ValueError(f"can only {name} 1D arrays.")
        self._axis, self._before, self._behind = axis, prepend, append

    def _made(self, *values):
        parts = [each for each in (self._before, *values, self._behind) if each is not None]
        if any(each.ndim != 1 for each in parts):
            raise PipelineError("Concatenate: all inputs should be 1D")
        kinds = {each.dtype for each in values if each.dtype.kind not in "US"}
        if len(kinds) > 1:
            raise PipelineError(f"Concatenate: the inputs have different types: {sorted(map(str, kinds))}")
        if len({each.dtype.kind in "US" for each in parts}) > 1:
            raise PipelineError("Concatenate: text and numbers have no array together")
        dtype = values[0].dtype if values[0].dtype.kind not in "US" else None
        return numpy.concatenate([each.astype(dtype) if dtype is not None else each for each in parts])


class Duplicate(_Operation):
    """The value twice."""

    def _made(self, value):
        return value, value.copy()


class Fill(_Operation):
    """The value's shape and type, filled with one number or text."""

    def __init__(self, fill_value):
        super().__init__()
        if not isinstance(fill_value, numbers.Real | str | bytes | numpy.generic):
            raise TypeError(
                f"Argument fill_value with value {fill_value} is not of type [str, float, bool, int, bytes], "
                f"but got {type(fill_value)}."
            )
        self._value = fill_value

    def _made(self, value):
        is_text = isinstance(self._value, str | bytes)
        if is_text != (value.dtype.kind in "US"):
            raise PipelineError("Fill: text fills text only, and numbers numbers")
        dtype = numpy.asarray(self._value).dtype if is_text else value.dtype
        return numpy.full(value.shape, numpy.asarray(self._value).astype(dtype), dtype)


class Relational(enum.IntEnum):
    """How Mask compares."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


_COMPARES = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")  # numpy's names


class Mask(_Operation):
    """Where a comparison with a constant holds."""

    def __init__(self, operator, constant, dtype="bool"):
        super().__init__()
        if not isinstance(operator, Relational):
            raise TypeError(
                f"Argument operator with value {operator} is not of type [<enum 'Relational'>], but got "
                f"{type(operator)}."
            )
        if not isinstance(constant, numbers.Real | str | bytes):
            raise TypeError(
                f"Argument constant with value {constant} is not of type [str, float, bool, int, bytes], "
                f"but got "
                f"{type(constant)}."
            )
        self._compare, self._constant, self._dtype = (
            getattr(numpy, _COMPARES[operator]),
            constant,
            _types.numpy_dtype(dtype),
        )
        if self._dtype.kind in "US":
            raise TypeError("Only supports bool or numeric datatype for generated mask type.")

    def _made(self, value):
        constant = self._constant
        if isinstance(constant, str | bytes) != (value.dtype.kind in "US"):
            raise PipelineError(
                "Mask: input datatype does not match the value datatype, both should be numeric or "
                "non-numerical in the same time."
            )
        if value.dtype.kind in "iub" and isinstance(constant, float):
            constant = value.dtype.type(constant)
        return self._compare(value, constant).astype(self._dtype)


class PadEnd(_Operation):
    """The value filled up at its ends to a shape; None: as it is."""

    def __init__(self, pad_shape, pad_value=None):
        super().__init__()
        _checks.of_type("pad_shape", pad_shape, list)
        for each in pad_shape:
            if each is not None:
                _checks.of_type("dim in pad_shape", each, int)
                if each <= 0:
                    raise ValueError("pad shape must be positive integers")
        if pad_value is not None:
            _checks.of_type("pad_value", pad_value, str, float, bool, int, bytes)
        self._shape, self._value = pad_shape, pad_value

    def _made(self, value):
        from mindspore.dataset import _rows

        if len(self._shape) != value.ndim:
            raise PipelineError(
                f"PadEnd: pad_shape has {len(self._shape)} sizes, and the value {value.ndim} axes"
            )
        is_text = value.dtype.kind in "US"
        if self._value is not None and isinstance(self._value, str | bytes) != is_text:
            raise PipelineError("PadEnd: pad_value must be text for text, and a number for numbers")
        filler = ("" if is_text else 0) if self._value is None else self._value
        return _rows._filled(
            value,
            [have if want is None else want for have, want in zip(value.shape, self._shape, strict=True)],
            filler,
        )


class Slice(_Operation):
    """Parts along axes: numbers, lists of numbers, slices, None or `...` for all."""

    def __init__(self, *slices):
        super().__init__()
        for each in slices:
            if each is None or each is Ellipsis or isinstance(each, bool | slice) or _checks.is_whole(each):
                continue
            if isinstance(each, list) and all(_checks.is_whole(at) for at in each):
                continue
            raise TypeError(
                f"slice_option[{slices.index(each)}] with value {each} is not of type int, list of int, "
                f"slice, "
                "None or Ellipsis"
            )
        self._slices = slices

    def _made(self, value):
        if [] in self._slices or not self._slices:
            raise PipelineError(
                "Slice: a list of indices is empty: give those that are wanted, or None for all"
            )
        if Ellipsis in [each for each in self._slices if not isinstance(each, list)]:
            return value
        if len(self._slices) > value.ndim:
            raise PipelineError(f"Slice: {len(self._slices)} slices for {value.ndim} axes")
        for axis, each in enumerate(self._slices):
            size = value.shape[axis]
            if isinstance(each, slice):
                value = value[(slice(None),) * axis + (each,)]
            elif each is not None and each is not True:
                chosen = [each] if _checks.is_whole(each) else each
                if any(not -size <= at < size for at in chosen):
                    raise PipelineError(f"Slice: index {each} is out of bounds of an axis of {size}")
                value = value.take(chosen, axis)
        return value


class Unique(_Operation):
    """(distinct values, where each value is among them, how often each comes), of the flattened value."""

    def _made(self, value):
        if value.dtype.kind in "US":
            raise PipelineError("Unique: only support numeric datatype of input, got string.")
        if value.ndim < 2:
            raise PipelineError(
                f"Unique: input must be at least 2-D in order to do unique op, got rank:{value.ndim}"
            )
        found, first, inverse, counts = numpy.unique(
            value.ravel(), return_index=True, return_inverse=True, return_counts=True
        )
        order = numpy.argsort(first)
        places = numpy.empty_like(order)
        places[order] = numpy.arange(len(order))
        return found[order], places[inverse.ravel()].astype(numpy.int32), counts[order].astype(numpy.int32)


class TypeCast(_calls.Recorded, ours.TypeCast):
    """Another dtype."""

    def __init__(self, data_type):
        self._given = data_type
        held = _types.held_name(data_type)
        self._is_held = held is not None
        super().__init__(held or "float32")

    @property
    def _gives_objects(self):
        return not self._is_held

    def __call__(self, value):
        value = _array(value, "TypeCast")
        if self._is_held and value.dtype.char in "fd?bBilqI" and value.size:
            return super().__call__(value)
        dtype = _types.numpy_dtype(self._given)
        if dtype.kind in "US":
            return value.astype(str)
        try:
            return value.astype(dtype)
        except ValueError as error:
            raise PipelineError(f"TypeCast: {error}") from None


class OneHot(_calls.Recorded, ours.OneHot):
    """A label as num_classes numbers: 1 at its place, else 0; several labels as rows of them."""

    def __init__(self, num_classes, smoothing_rate=0.0):
        self._classes = _checks.whole("num_classes", num_classes, 1)
        self._rate = _checks.number("smoothing_rate", smoothing_rate, 0, 1)
        super().__init__(num_classes, self._rate)

    def __call__(self, label):
        label = _array(label, "OneHot")
        if label.dtype.kind not in "iu":
            raise PipelineError(f"OneHot: Only support input of int type, but got: {label.dtype}")
        if label.ndim <= 1 and label.dtype.kind in "iu":
            if numpy.any(label >= self._classes) or numpy.any(label < 0):
                raise PipelineError(
                    f"OneHot: index values should not be bigger than num_classes: {self._classes}, or "
                    f"below 0: "
                    f"{label}"
                )
            if label.ndim == 1:
                return numpy.stack([super(OneHot, self).__call__(each) for each in label])
        return super().__call__(label)


class Plugin:
    """Refused: a function in C of one's own is called by a Python function (ctypes)."""

    def __init__(self, lib_path, func_name, user_args=None):
        raise NotImplementedError(
            "transforms.Plugin is not provided: give map() a Python function that calls the library"
        )


def not_random(function):
    """Marks a function that draws nothing."""
    function.random = False
    return function
