"""mindspore.ops: other names of functions, and functions of tuples, numbers and dtypes."""

import copy
import functools
import operator

import muster
from mindspore.ops import _array, _numbers
from mindspore.ops._primitive import Primitive, without_settings
from muster import ops

# ---- Tensors -----------------------------------------------------------------------------------------------

tensor_add, tensor_sub, tensor_mul, tensor_div = ops.add, ops.sub, ops.mul, ops.div
tensor_floordiv, tensor_mod = ops.floor_div, ops.mod
tensor_pow = pows = ops.pow
tensor_exp, tensor_expm1 = ops.exp, ops.expm1
tensor_lt, tensor_le, tensor_gt, tensor_ge = ops.less, ops.less_equal, ops.greater, ops.greater_equal
floordiv, floormod = ops.floor_div, ops.mod
tensor_slice = ops.slice
stop_gradient_ = ops.stop_gradient
top_k = ops.topk
reshape_, tanh_ = ops.reshape, ops.tanh
tensor_range = _array.range
erfinv_ = ops.erfinv
i0 = ops.bessel_i0


def stop_gradient(value):
    """The value as a constant; what is no tensor stays as it is."""
    if isinstance(value, (tuple, list)):
        return type(value)(stop_gradient(each) for each in value)
    return ops.stop_gradient(value) if isinstance(value, muster.Tensor) else value


def isnan_ext(tensor):
    """ops.isnan."""
    return ops.isnan(tensor)


def diff_ext(input, n=1, dim=-1, prepend=None, append=None):
    """ops.diff."""
    return _numbers.diff(input, n, dim, prepend, append)


def float_power_ext(input, exponent):
    """ops.float_power."""
    return _numbers.float_power(input, exponent)


def bmm_ext(input, mat2):
    """ops.bmm."""
    return ops.matmul(input, mat2)


def amax_ext(input, dim=(), keepdim=False):
    """mint.amax."""
    from mindspore import mint

    return mint.amax(input, dim, keepdim)


def amin_ext(input, dim=(), keepdim=False):
    """mint.amin."""
    from mindspore import mint

    return mint.amin(input, dim, keepdim)


def softmax_ext(input, dim=None, dtype=None):
    """mint.nn.functional.softmax."""
    from mindspore import mint

    return mint.nn.functional.softmax(input, dim, dtype)


def glu_ext(input, dim=-1):
    """mint.nn.functional.glu."""
    from mindspore import mint

    return mint.nn.functional.glu(input, dim)


def gather_ext(input, dim, index):
    """mint.gather."""
    from mindspore import mint

    return mint.gather(input, dim, index)


def chunk_ext(input, chunks, dim=0):
    """ops.chunk."""
    return _array.chunk(input, chunks, dim)


def einsum_ext(equation, operands):
    """ops.einsum."""
    from mindspore.ops import _matrices

    return _matrices.einsum(equation, *operands)


def baddbmm_ext(input, batch1, batch2, *, beta=1, alpha=1):
    """ops.baddbmm."""
    from mindspore.ops import _matrices

    return _matrices.baddbmm(input, batch1, batch2, beta, alpha)


def adaptive_avg_pool2d_ext(input, output_size):
    """ops.adaptive_avg_pool2d."""
    return ops.adaptive_avg_pool2d(input, output_size)


def shape_(input_x):
    """The sizes, as a tuple."""
    return tuple(input_x.shape)


def dyn_shape(input_x):
    """The sizes as a tensor, int64."""
    return muster.Tensor(list(input_x.shape), muster.int64)


def dtype(x):
    """The dtype of a tensor."""
    return x.dtype


class DType(Primitive):
    """The dtype of a tensor."""

    def compute(self, input_x):
        """It."""
        return input_x.dtype

    def __call__(self, input_x):
        return input_x.dtype


def mixed_precision_cast(dst_dtype, x):
    """Fractions in another dtype; tuples and lists of tensors too."""
    if isinstance(x, (tuple, list)):
        return type(x)(mixed_precision_cast(dst_dtype, each) for each in x)
    is_number = isinstance(x, muster.Tensor) and _numbers.is_floating_point(x)
    return ops.cast(x, dst_dtype) if is_number else x


# ---- Tuples ------------------------------------------------------------------------------------------------


def _whole(values):
    return all(isinstance(each, int) and not isinstance(each, bool) for each in values)


def tuple_to_array(input_x):
    """Numbers as a tensor, whole ones int32 and others float32."""
    return muster.Tensor(list(input_x), muster.int32 if _whole(input_x) else muster.float32)


def scalar_to_array(input_x):
    """A number as a tensor, a whole one int64 and another float32."""
    return muster.Tensor(input_x, muster.int64 if _whole([input_x]) else muster.float32)


def array_to_scalar(input_x):
    """A tensor of one element as a number."""
    return input_x.item()


def scalar_cast(input_x, input_y):
    """A number as one of another dtype."""
    name = str(input_y).lower().rsplit(".", 1)[-1]
    value = _numbers.scalar_number(input_x)
    return bool(value) if name.startswith("bool") else float(value) if "float" in name else int(value)


def make_range(*args):
    """The numbers of range(...) as a tuple."""
    return tuple(range(*args))


def make_tuple(*args):
    """The arguments as a tuple."""
    return args


def make_list(*args):
    """The arguments as a list."""
    return list(args)


def make_dict(keys, values):
    """A dict of keys and values."""
    return dict(zip(keys, values, strict=True))


def make_slice(start, stop, step):
    """slice(start, stop, step)."""
    return slice(start, stop, step)


def _setitem(sequence, index, value):
    made = list(sequence)
    made[index] = value
    return type(sequence)(made)


def tuple_setitem(x, index, value):
    """The tuple with another entry."""
    return _setitem(x, index, value)


def list_setitem(x, index, value):
    """The list with another entry."""
    return _setitem(x, index, value)


def dict_setitem(x, key, value):
    """The dict with another entry."""
    return {**x, key: value}


tuple_getitem = list_getitem = dict_getitem = operator.getitem


def tuple_len(x):
    """How many entries there are."""
    return len(x)


list_len = tuple_len


def tuple_reversed(x):
    """The entries from the last to the first."""
    return tuple(reversed(x))


def are_equal(one, other):
    """Whether two entries are of one type and equal; tensors are where all of their elements are."""
    if isinstance(one, muster.Tensor) and isinstance(other, muster.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    return type(one) is type(other) and one == other


def tuple_equal(x, y):
    """Whether two sequences have equal entries of equal types."""
    return len(x) == len(y) and all(map(are_equal, x, y))


list_equal = tuple_equal


def list_append(x, value):
    """A list, or tuple, of the entries and one behind them."""
    return type(x)([*x, value])


def list_insert(x, index, value):
    """A list of the entries and one before the place `index`."""
    return [*x[:index], value, *x[index:]]


def is_sequence_value_unknown(shape):
    """False: where Python runs the sizes are known."""
    return False


def is_sequence_shape_unknown(shape):
    """False: where Python runs the number of axes is known."""
    return False


def tuple_div(x, y):
    """Each entry of x over that of y, whole."""
    return tuple(a // b for a, b in zip(x, y, strict=True))


def shape_mul(shape):
    """The product of sizes."""
    made = 1
    for size in shape:
        made *= size
    return made


def tail(x):
    """The entries but the first."""
    return x[1:]


def in_dict(x, y):
    """Whether y has the key x."""
    return x in y


def not_in_dict(x, y):
    """Whether y has no key x."""
    return x not in y


def zip_operation(*args):
    """The first entries, the second ones, and so on, as tuples."""
    return tuple(zip(*args, strict=False))


def hyper_add(x, y):
    """x + y, of tuples entry by entry."""
    if isinstance(x, (tuple, list)):
        return type(x)(hyper_add(a, b) for a, b in zip(x, y, strict=True))
    return ops.add(x, y) if isinstance(x, muster.Tensor) or isinstance(y, muster.Tensor) else x + y


# ---- Numbers -----------------------------------------------------------------------------------------------

scalar_add, scalar_sub, scalar_mul, scalar_div = operator.add, operator.sub, operator.mul, operator.truediv
scalar_floordiv, scalar_mod, scalar_pow = operator.floordiv, operator.mod, operator.pow
scalar_eq, scalar_ne = operator.eq, operator.ne
scalar_lt, scalar_le, scalar_gt, scalar_ge = operator.lt, operator.le, operator.gt, operator.ge
scalar_usub, scalar_uadd = operator.neg, operator.pos
scalar_max, scalar_min = max, min
string_eq, string_concat = operator.eq, operator.add
is_, is_not = operator.is_, operator.is_not
bool_eq = operator.eq


def scalar_log(x):
    """The natural logarithm of a number."""
    import math

    return math.log(x)


def bool_not(x):
    """not x."""
    return not x


def bool_and(x, y):
    """x and y."""
    return x and y


def bool_or(x, y):
    """x or y."""
    return x or y


def deepcopy(input_x):
    """A copy, with tensors of their own."""
    return ops.mul(input_x, 1) if isinstance(input_x, muster.Tensor) else copy.deepcopy(input_x)


def isconstant(x):
    """Whether the value is known while a graph is made."""
    return not isinstance(x, muster.Tensor)


def typeof(x):
    """The dtype of a tensor, the type of anything else."""
    return x.dtype if isinstance(x, muster.Tensor) else type(x)


# ---- Classes of these --------------------------------------------------------------------------------------

ScalarCast = without_settings("ScalarCast", scalar_cast)
TupleToArray = without_settings("TupleToArray", tuple_to_array)
Partial = without_settings("Partial", functools.partial)
DynamicShape = type(
    "DynamicShape",
    (Primitive,),
    {
        "__init__": lambda self, dtype=9: Primitive.__init__(self),
        "compute": lambda self, x: dyn_shape(x),
        "__doc__": dyn_shape.__doc__,
    },
)

_OWN = {"Primitive", "are_equal", "without_settings"}
__all__ = [
    name
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_") and name not in _OWN
]
