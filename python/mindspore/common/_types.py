"""The kinds of types that scripts ask for by name, and what they are in Python and numpy."""

from muster import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)


class _Kind(type):
    """Of the classes of types: isinstance(mindspore.int32, Int) asks which dtypes belong to one."""

    def __instancecheck__(cls, instance) -> bool:
        return type.__instancecheck__(cls, instance) or (isinstance(instance, DType) and cls._has(instance))

    def __setattr__(cls, name: str, value) -> None:
        """What a library sets on Type, the dtypes have, too, as those of MindSpore: they are Types there."""
        if cls.__bases__ == (object,):
            own = next((key for key, known in vars(cls).items() if known is value), None)
            setattr(DType, name, value if own is None else getattr(DType, own))
        super().__setattr__(name, value)


class Type(metaclass=_Kind):
    """What is no dtype of tensors, but has a name in MindSpore: `number`, `tensor_type`, `string`."""

    def __init__(self, name: str = "type", text: str = "Type", dtypes: tuple[DType, ...] = ()):
        self._name, self._text, self._dtypes = name, text, dtypes

    @classmethod
    def _has(cls, dtype: DType) -> bool:
        return cls is Type

    def __contains__(self, dtype) -> bool:
        return dtype is self or any(dtype is each for each in self._dtypes)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"mindspore.{self._name}"


class Int(Type):
    """Whole numbers with a sign."""

    @classmethod
    def _has(cls, dtype: DType) -> bool:
        return dtype in int_type


class UInt(Type):
    """Whole numbers without a sign."""

    @classmethod
    def _has(cls, dtype: DType) -> bool:
        return dtype in uint_type


class Float(Type):
    """Floating numbers, without bfloat16."""

    @classmethod
    def _has(cls, dtype: DType) -> bool:
        return dtype in (float16, float32, float64)


class BFloat(Type):
    """bfloat16."""

    @classmethod
    def _has(cls, dtype: DType) -> bool:
        return dtype is bfloat16


class Bool(Type):
    """Truth values."""

    @classmethod
    def _has(cls, dtype: DType) -> bool:
        return dtype is bool_


class Complex(Type):
    """Complex numbers: names that tables of dtypes and comparisons have; no tensor has such elements."""

    @classmethod
    def _has(cls, dtype: DType) -> bool:
        return False


class Number(Type):
    """Any numbers, truth values among them."""

    @classmethod
    def _has(cls, dtype: DType) -> bool:
        return True


class List(Type):
    """Python's lists."""

    @classmethod
    def _has(cls, dtype: DType) -> bool:
        return False


class Tuple(List):
    """Python's tuples."""


class String(List):
    """Python's strings."""


class _Small(List):
    """Elements of few bits, which accelerators alone compute with."""


class NoneType(List):
    """Python's None."""


class TensorType(Type):
    """Tensors, with elements of any dtype or of `element`."""

    def __init__(self, element: DType | None = None):
        name = "tensor" if element is None else f"tensor[{element.name}]"
        super().__init__(name, "Tensor" if element is None else f"Tensor[{element}]")
        self._element = element

    @classmethod
    def _has(cls, dtype: DType) -> bool:
        return False

    def element_type(self) -> DType | None:
        """The dtype of the elements; None: any."""
        return self._element


int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64, bfloat16)
number_type = int_type + uint_type + float_type
signed_type = int_type + float_type
all_types = (bool_, *number_type)

int_ = Int("int", "Int", int_type)
int_.name = "int32"  # a cast to it gives this dtype
uint = UInt("uint", "UInt", uint_type)
float_ = Float("float", "Float", (float16, float32, float64))
float_.name = "float32"
number = Number("number", "Number", (bool_, *number_type))
list_ = List("list_", "List")
tuple_ = Tuple("tuple_", "Tuple")
string = String("string_", "String")
type_none = NoneType("type_none", "None")
_null = NoneType("Null", "Null")
tensor_type = TensorType()
complex64, complex128 = Complex("complex64", "Complex64"), Complex("complex128", "Complex128")
complex_type = (complex64, complex128)
qint4x2 = _Small("int4", "Int4")
float8_e4m3fn = _Small("float8_e4m3fn", "Float8E4M3FN")
float8_e5m2 = _Small("float8_e5m2", "Float8E5M2")
hifloat8 = _Small("hifloat8", "HiFloat8")

_OF_PYTHON = {
    bool: bool_,
    int: int64,
    float: float64,
    str: string,
    list: list_,
    tuple: tuple_,
    type(None): type_none,
    complex: complex128,
}


def dtype_to_nptype(type_):
    """The type of numpy for a dtype; that of bfloat16 comes from the package ml_dtypes."""
    import numpy

    if type_ in complex_type:
        return numpy.dtype(type_._name).type
    if not isinstance(type_, DType):
        raise KeyError(type_)
    if type_ is bfloat16:
        import ml_dtypes

        return ml_dtypes.bfloat16
    return numpy.dtype(type_.name).type


def dtype_to_pytype(type_) -> type:
    """The type of Python's numbers for a dtype."""
    for each, python in ((bool_, bool), *((mine, python) for python, mine in _OF_PYTHON.items())):
        if type_ is each:
            return python
    if type_ in complex_type:
        return complex
    if type_ in (int_, *int_type, *uint_type):
        return int
    if type_ in (float_, *float_type):
        return float
    raise KeyError(type_)


def pytype_to_dtype(obj: type):
    """The dtype for a type of Python or numpy."""
    if isinstance(obj, (DType, Type)):
        return obj
    if not isinstance(obj, type):
        raise TypeError(
            f"pytype_to_dtype: {obj!r} is no type, such as int or str (get_py_obj_dtype takes values)"
        )
    if obj in _OF_PYTHON:
        return _OF_PYTHON[obj]
    found = [
        each
        for each in (*all_types, *complex_type)
        if obj.__module__ == "numpy" and obj.__name__.rstrip("_") == getattr(each, "name", str(each).lower())
    ]
    if not found:
        raise NotImplementedError(f"pytype_to_dtype: no dtype is that of {obj}")
    return found[0]


def get_py_obj_dtype(obj):
    """The dtype for a value, or for a type, of Python."""
    return pytype_to_dtype(obj if isinstance(obj, (type, DType, Type)) else type(obj))


def _issubclass_(type_, dtype) -> bool:
    """Whether `type_` is `dtype`, or one of its dtypes: issubclass_(float32, number)."""
    return type_ is dtype or (isinstance(dtype, Type) and type_ in dtype)


issubclass_ = _issubclass_


def type_size_in_bytes(dtype: DType) -> int:
    """The bytes of one element."""
    return dtype.itemsize
