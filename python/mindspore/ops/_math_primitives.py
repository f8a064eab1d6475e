"""Functions of numbers as classes."""

import muster
from mindspore import _names
from mindspore.ops import _array, _math
from mindspore.ops._primitive import Primitive, without_settings
from muster import ops

Mod = without_settings("Mod", _math.fmod)
RealDiv = without_settings("RealDiv", _math.real_div)
AddN = without_settings("AddN", _math.addn)
LogicalXor = without_settings("LogicalXor", _math.logical_xor)
SquaredDifference = without_settings("SquaredDifference", _math.squared_difference)
Tan = without_settings("Tan", _math.tan)
Trunc = without_settings("Trunc", _math.trunc)

HSigmoid = without_settings("HSigmoid", _math.hardsigmoid)
HSwish = without_settings("HSwish", _math.hardswish)
SeLU = without_settings("SeLU", _math.selu)
Softsign = without_settings("Softsign", _math.softsign)
PReLU = without_settings("PReLU", _math.prelu)
LogSigmoid = without_settings("LogSigmoid", _math.logsigmoid)
Mish = without_settings("Mish", _math.mish)
ScalarToTensor = without_settings("ScalarToTensor", _array.scalar_to_tensor)


class BiasAdd(Primitive):
    """input_x with bias (C,) added to each channel: axis 1, or the last with data_format "NHWC"."""

    def __init__(self, data_format="NCHW"):
        super().__init__()
        if data_format is not None and not isinstance(data_format, str):
            raise TypeError(f"BiasAdd: data_format is a string, not {data_format!r}")
        if data_format not in ("NCHW", "NCDHW", "NHWC", None):
            raise ValueError(f"BiasAdd: data_format is 'NCHW', 'NCDHW' or 'NHWC', not {data_format!r}")
        self.data_format = data_format

    def compute(self, input_x, bias):
        if self.data_format == "NHWC":
            return ops.add(input_x, bias)
        return _math.bias_add(input_x, bias)


class GeLU(Primitive):
    """GELU by its approximation with tanh."""

    def compute(self, x):
        """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
        return ops.gelu(x, True)


class ReduceSum(Primitive):
    """The sum over axes, in the dtype of x: whole numbers wrap around."""

    def __init__(self, keep_dims=False, skip_mode=False):
        super().__init__()
        _names.refuse("mindspore.ops.ReduceSum", skip_mode=(skip_mode or None, None))
        self.keep_dims = keep_dims

    def compute(self, x, axis=()):
        """reduce_sum(x)."""
        return _math.reduce_sum(x, None if axis == () or axis == [] else axis, self.keep_dims)


class _Argument(Primitive):
    def __init__(self, axis=-1, output_type=muster.int32):
        super().__init__()
        self.axis = axis
        self.output_type = output_type


class Argmax(_Argument):
    """The first index of the greatest element along `axis`."""

    def compute(self, x):
        """argmax(x) as output_type."""
        return ops.cast(ops.argmax(x, self.axis), self.output_type)


class Argmin(_Argument):
    """The first index of the smallest element along `axis`."""

    def compute(self, x):
        """argmin(x) as output_type."""
        return ops.cast(ops.argmin(x, self.axis), self.output_type)


class _WithValue(Primitive):
    def __init__(self, axis=0, keep_dims=False):
        super().__init__()
        self.axis = axis
        self.keep_dims = keep_dims


class ArgMaxWithValue(_WithValue):
    """(index int64, value) of the greatest elements along `axis`."""

    def compute(self, x):
        """argmax(x) and max(x)."""
        value, index = _math.max(x, self.axis, self.keep_dims)
        return index, value


class ArgMinWithValue(_WithValue):
    """(index int64, value) of the smallest elements along `axis`."""

    def compute(self, x):
        """argmin(x) and min(x)."""
        value, index = _math.min(x, self.axis, self.keep_dims)
        return index, value


class _Reduction(Primitive):
    """A reduction over the axes that it is called with, all by default."""

    function = None

    def __init__(self, keep_dims=False):
        super().__init__()
        self.keep_dims = keep_dims

    def compute(self, x, axis=()):
        """The elements over `axis` as one."""
        return type(self).function(x, axis, self.keep_dims)


def _reduction(name: str, function) -> type[Primitive]:
    return type(name, (_Reduction,), {"function": staticmethod(function), "__doc__": function.__doc__})


ReduceAll = _reduction("ReduceAll", ops.reduce_all)
ReduceAny = _reduction("ReduceAny", ops.reduce_any)


class LayerNorm(Primitive):
    """(y, mean, variance): normalized over the axes from begin_norm_axis on, times gamma, plus beta.

    gamma and beta have the shape of the axes from begin_params_axis on.
    """

    def __init__(self, begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7):
        super().__init__()
        self.begin_norm_axis = begin_norm_axis
        self.begin_params_axis = begin_params_axis
        self.epsilon = epsilon

    def compute(self, x, gamma, beta):
        """layer_norm(x), and the statistics with the axes as 1, float32."""
        begin = self.begin_norm_axis % x.ndim
        axes = tuple(range(begin, x.ndim))
        wide = ops.cast(x, muster.float32) if x.dtype in (muster.float16, muster.bfloat16) else x
        mean, variance = ops.reduce_mean(wide, axes, True), _math.var(wide, axes, keepdims=True)
        if self.begin_params_axis % x.ndim < begin:
            scale = ops.mul(ops.rsqrt(ops.add(variance, self.epsilon)), gamma)
            y = ops.cast(ops.add(ops.mul(ops.sub(wide, mean), scale), beta), x.dtype)
        else:
            whole = [ops.cast(ops.broadcast_to(part, x.shape[begin:]), wide.dtype) for part in (gamma, beta)]
            y = ops.layer_norm(x, *whole, begin, self.epsilon)
        return y, ops.cast(mean, muster.float32), ops.cast(variance, muster.float32)


class Dropout(Primitive):
    """(y, mask): each element stays with probability keep_prob."""

    def __init__(self, keep_prob=0.5, Seed0=0, Seed1=0):  # noqa: N803 - these are MindSpore's names
        super().__init__()
        self.keep_prob, self.Seed0, self.Seed1 = keep_prob, Seed0, Seed1

    def compute(self, x):
        """x / keep_prob or 0, and 1 or 0: which stay."""
        if self.Seed0 or self.Seed1:
            seed = self.Seed0 * 1000003 + self.Seed1
            drawn = muster._core._random_numbers("random_uniform", tuple(x.shape), muster.float32, seed)
            mask = ops.cast(ops.less(drawn, self.keep_prob), x.dtype)
            return ops.mul(x, ops.div(mask, self.keep_prob)), mask
        y, mask = muster._core.dropout_and_mask(x, self.keep_prob)
        return y, ops.cast(mask, x.dtype)


__all__ = [
    name
    for name, value in list(globals().items())
    if isinstance(value, type) and issubclass(value, Primitive) and not name.startswith("_")
]
