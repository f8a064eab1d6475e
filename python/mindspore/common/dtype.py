"""mindspore.common.dtype: the dtypes that tensors have, and kinds of types."""

from mindspore import _names
from mindspore.common._types import (
    BFloat,  # noqa: F401 - of mindspore._c_expression.typing
    Bool,
    Complex,
    Float,
    Int,
    List,
    NoneType,
    Number,
    String,
    TensorType,
    Tuple,
    Type,
    UInt,
    _issubclass_,  # noqa: F401
    _null,  # noqa: F401
    all_types,
    complex64,
    complex128,
    complex_type,
    dtype_to_nptype,
    dtype_to_pytype,
    float8_e4m3fn,
    float8_e5m2,
    float_,
    float_type,
    get_py_obj_dtype,
    hifloat8,
    int_,
    int_type,
    issubclass_,
    list_,
    number,
    number_type,
    pytype_to_dtype,
    qint4x2,
    signed_type,
    string,
    tensor_type,
    tuple_,
    type_none,
    type_size_in_bytes,
    uint,
    uint_type,
)
from muster import (
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

bool = bool_
int = int32
float = float32
byte = int8
short = int16
intc = int32
long = intp = int64
ubyte = uint8
ushort = uint16
uintc = uint32
uintp = uint64
half = float16
single = float32
double = float64
cfloat = complex64
cdouble = complex128

_HOLDERS = {"QuantDtype": "mindspore.common._quantized"}

# Without bool, float and int: a star would hide those of Python.
__all__ = [
    "Bool",
    "Complex",
    "Float",
    "Int",
    "List",
    "NoneType",
    "Number",
    "String",
    "TensorType",
    "Tuple",
    "Type",
    "UInt",
    "all_types",
    "bfloat16",
    "bool_",
    "byte",
    "cdouble",
    "cfloat",
    "complex64",
    "complex128",
    "complex_type",
    "double",
    "dtype_to_nptype",
    "dtype_to_pytype",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "float_",
    "float_type",
    "get_py_obj_dtype",
    "half",
    "hifloat8",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "int_type",
    "intc",
    "intp",
    "issubclass_",
    "list_",
    "long",
    "number",
    "number_type",
    "pytype_to_dtype",
    "qint4x2",
    "short",
    "signed_type",
    "single",
    "string",
    "tensor_type",
    "tuple_",
    "type_none",
    "type_size_in_bytes",
    "ubyte",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint_type",
    "uintc",
    "uintp",
    "ushort",
    *_HOLDERS,
]
__getattr__ = _names.missing(__name__, holders=_HOLDERS)
