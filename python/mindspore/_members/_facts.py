"""Members of Tensor: its dtype and what it is."""

import builtins
import math

import muster
from mindspore import _tensors
from mindspore.numpy import _shared
from mindspore.numpy._shared import is_float
from muster import _core, ops

# ---- Dtypes and facts --------------------------------------------------------------------------------------


def _in(name, words):
    def method(self):
        dtype = muster.bool_ if name == "bool" else getattr(muster, name, None)
        if dtype is None:
            raise NotImplementedError(f"dtype {name} is not provided")
        return ops.cast(self, dtype)

    method.__doc__ = f"The elements as {words}."
    return method


def _named(function, name):
    function.__name__ = name
    function.__qualname__ = f"Tensor.{name}"
    return function


half = _named(_in("float16", "float16"), "half")
float = _named(_in("float32", "float32"), "float")
double = _named(_in("float64", "float64"), "double")
bfloat16 = _named(_in("bfloat16", "bfloat16"), "bfloat16")
short = _named(_in("int16", "int16"), "short")
int = _named(_in("int32", "int32"), "int")
long = _named(_in("int64", "int64"), "long")
byte = _named(_in("uint8", "uint8"), "byte")
bool = _named(_in("bool", "bool"), "bool")

_KINDS = {"bool": "Bool", "bfloat16": "BFloat16", "uint": "UInt"}


def type(self, dtype=None):
    """The elements in a dtype, or the name of their own, as 'Float32'."""
    if dtype is not None:
        return ops.cast(self, _shared.dtype_named(dtype))
    name = self.dtype.name
    return _KINDS.get(name) or (f"UInt{name[4:]}" if name.startswith("uint") else name.capitalize())


def is_floating_point(self):
    """Whether the elements are floats, as a bool of Python."""
    return is_float(self.dtype)


def is_signed(self):
    """Whether the dtype has negative numbers, as a bool of Python."""
    return is_float(self.dtype) or self.dtype.name.startswith("int")


def is_complex(self):
    """Whether the elements are complex numbers, as a bool of Python: none are."""
    return False


def is_contiguous(self):
    """Whether the elements lie one after the other in memory, as a bool of Python: they do."""
    return True


def dim(self):
    """The number of axes."""
    return self.ndim


def nelement(self):
    """The number of elements."""
    return self._size


def stride(self, dim=None):
    """How many elements lie between neighbours along each axis, or one, as a list or a number."""
    steps = [math.prod(self.shape[at + 1 :]) for at in builtins.range(self.ndim)]
    return steps if dim is None else steps[dim]


@property
def strides(self):
    """How many bytes lie between neighbours along each axis, as a tuple."""
    return tuple(step * self.itemsize for step in stride(self))


def storage_offset(self):
    """Where the elements begin in their memory: 0."""
    return 0


def data_ptr(self):
    """The address of the elements in memory, which from now on this object alone has.

    What is written there changes this tensor and no other: those that were made of it, or had the same
    elements, keep what they have. The address holds until the tensor gets another value.
    """
    if self.dtype == muster.bfloat16:
        raise NotImplementedError("data_ptr() of bfloat16 is not provided: cast the tensor to float32 first")
    if not isinstance(self, muster.Parameter):
        _core._set_value(self, self.__deepcopy__({}))
    return _tensors._view(self).ctypes.data


@property
def device(self):
    """Where the elements are: 'CPU'."""
    return "CPU"


@property
def mT(self):  # noqa: N802
    """The last two axes exchanged."""
    return ops.swapaxes(self, -1, -2)


@property
def mH(self):  # noqa: N802
    """The last two axes exchanged, of real numbers."""
    return ops.swapaxes(self, -1, -2)


@property
def H(self):  # noqa: N802
    """A matrix with its axes exchanged, of real numbers."""
    if self.ndim != 2:
        raise ValueError(f"H: a matrix is needed, not the shape {self.shape}")
    return ops.swapaxes(self, 0, 1)


# ---- What has a meaning on other devices only --------------------------------------------------------------


def move_to(self, to, blocking=True):
    """The tensor itself: there is one device."""
    if to not in ("CPU", "Ascend", "GPU"):
        raise ValueError(f"move_to: 'CPU', 'Ascend' or 'GPU' is needed, not {to!r}")
    return self


def data_sync(self, need_wait=False):
    """Nothing: the elements are where they are read."""


def wait_pipeline(self):
    """Nothing: each op is done when it returns."""


def flush_from_cache(self):
    """Nothing: there is no cache of embeddings."""


def is_persistent_data(self):
    """Whether the elements are in a file: False."""
    return False


def hooks(self):
    """The functions that register_hook() was given and nobody took away, in their order."""
    return _tensors.hooks_of(self)


def set_dtype(self, dtype):
    """The dtype from now on, which is returned. A Parameter keeps the one that it was made with."""
    dtype = _shared.dtype_named(dtype)
    if isinstance(self, muster.Parameter) and dtype != self.dtype:
        raise NotImplementedError(
            f"Parameter '{self.name}' keeps its dtype {self.dtype}: set_dtype({dtype}) is not provided. Put "
            f"another in its place, cell.{self.name.split('.')[-1]} = Parameter(parameter.astype({dtype}))"
        )
    _core._set_value(self, ops.cast(self, dtype))
    return self.dtype


def set_const_arg(self, const_arg=True):
    """The tensor itself, as a constant of graphs."""
    return self


@property
def const_arg(self):
    """Whether the tensor is a constant of graphs: False."""
    return False


@property
def virtual_flag(self):
    """Whether the tensor is only a shape of a compiler: False."""
    return False


# ---- What an initializer fills later -----------------------------------------------------------------------


@property
def init(self):
    """The initializer that has not filled the tensor yet: None."""
    return None


@property
def has_init(self):
    """Whether an initializer has not filled the tensor yet: False."""
    return False


@property
def init_finished(self):
    """Whether the elements are there: True."""
    return True


@property
def init_flag(self):
    """Whether a parameter was initialized by the parameter server: False."""
    return False


def is_init(self):
    """Whether a parameter was initialized by the parameter server: False."""
    return False


def init_data(self, slice_index=None, shape=None, opt_shard_group=None):
    """The tensor itself: its elements are there."""
    return self
