"""mindspore.ops: functions of Python and C as ops, printing, and what watches overflow."""

import ctypes
import inspect
import itertools

import muster
from mindspore import _names, _summaries
from mindspore.ops._primitive import Primitive
from muster import _core, ops

_kept = {}  # key: number of a host function


def _number(key, function) -> int:
    """Of a function that the program keeps; one for each key."""
    if key not in _kept:
        _kept[key] = _core._keep_host_function(function)
    return _kept[key]


def _of_arrays(function):
    """A function of arrays as one of tensors."""
    import numpy

    def call(*tensors):
        made = function(*[each.asnumpy() for each in tensors])
        many = isinstance(made, (tuple, list))
        made = tuple(numpy.array(each, order="C") for each in (made if many else (made,)))
        return tuple(muster.Tensor(each) for each in made)

    return call


def _called(key, function, inputs, types, always=False):
    made = _core._call_host_function(_number(key, function), list(inputs), list(types), always)
    return made[0] if len(made) == 1 else made


def without_gradient(key, function, inputs, shapes, dtypes=None):
    """A function of arrays for tensors, in graphs too; outputs of these shapes."""
    dtypes = dtypes or [inputs[0].dtype] * len(shapes)
    inputs = [ops.stop_gradient(each) for each in inputs]
    return _called(key, _of_arrays(function), inputs, zip(dtypes, shapes, strict=True))


def with_gradient(key, function, inputs, shapes, rule):
    """The same of one input, whose gradient `rule` gives: rule(dy, y)."""

    class Host(muster.Cell):
        """The function as a cell, which may give its gradient itself."""

        def construct(self, x):
            """The results."""
            return _called(key, _of_arrays(function), [x], [(x.dtype, shape) for shape in shapes])

        def bprop(self, x, out, dout):
            """The gradient of x."""
            return (rule(dout, out),)

    return Host()(*inputs)


# ---- ops.Custom --------------------------------------------------------------------------------------------


class Custom(Primitive):
    """A function of the script as an op.

    func_type is 'pyfunc' (a function of arrays), 'hybrid' (one of ops.kernel) or 'aot' ("lib.so:name").
    out_shape and out_dtype are those of the output, or functions of those of the inputs; several outputs have
    tuples; of 'hybrid' they may be None: the function is run on zeros to know them. `bprop(*inputs, out,
    dout)` gives the gradients.
    """

    def __init__(self, func, out_shape=None, out_dtype=None, func_type="pyfunc", bprop=None, reg_info=None):
        super().__init__()
        if func_type not in ("pyfunc", "hybrid", "aot"):
            raise NotImplementedError(_names.sentence(f"mindspore.ops.Custom(func_type={func_type!r})"))
        self.func = func
        self.out_shape = out_shape
        self.out_dtype = out_dtype
        self.func_type = func_type
        self.bprop = bprop
        self._function = _of_library(func, self._types) if func_type == "aot" else _of_arrays(func)

    def _types(self, *inputs):
        shapes, dtypes = self.out_shape, self.out_dtype
        if callable(shapes):
            shapes = shapes(*[tuple(each.shape) for each in inputs])
        if callable(dtypes):
            dtypes = dtypes(*[each.dtype for each in inputs])
        if self.func_type == "hybrid" and (shapes is None or dtypes is None):
            tried = self._function(*[ops.zeros(each.shape, each.dtype) for each in inputs])
            return [(each.dtype, each.shape) for each in tried]
        if shapes is None or dtypes is None:
            raise ValueError(f"Custom({self.func!r}): out_shape and out_dtype say what the function gives")
        if isinstance(dtypes, (tuple, list)):
            return list(zip(dtypes, shapes, strict=True))
        return [(dtypes, tuple(shapes))]

    def compute(self, *inputs):
        """What the function makes of the inputs."""
        custom = self

        class Call(muster.Cell):
            """The call as a cell, which may give its gradient itself."""

            def construct(self, *given):
                """The results."""
                return _called(custom, custom._function, given, custom._types(*given))

        if self.bprop is None:
            return Call().construct(*[ops.stop_gradient(each) for each in inputs])

        def gradients(self, *given):
            made = custom.bprop(*given)
            return made if isinstance(made, tuple) else (made,)

        Call.bprop = gradients
        return Call()(*inputs)


def _of_library(place, types):
    """The function of a library: int f(nparam, params, ndims, shapes, dtypes, stream, extra)."""
    path, _, name = place.rpartition(":")
    function = getattr(ctypes.CDLL(path), name)

    def call(*inputs):
        import numpy

        made = [numpy.empty(tuple(shape), _array_dtype(dtype)) for dtype, shape in types(*inputs)]
        arrays = [numpy.ascontiguousarray(each.asnumpy()) for each in inputs] + made
        count = len(arrays)
        sizes = [(ctypes.c_int64 * each.ndim)(*each.shape) for each in arrays]
        failed = function(
            ctypes.c_int(count),
            (ctypes.c_void_p * count)(*[each.ctypes.data for each in arrays]),
            (ctypes.c_int * count)(*[each.ndim for each in arrays]),
            (ctypes.c_void_p * count)(*[ctypes.cast(each, ctypes.c_void_p) for each in sizes]),
            (ctypes.c_char_p * count)(*[str(each.dtype).encode() for each in arrays]),
            None,
            None,
        )
        if failed:
            raise RuntimeError(f"Custom: {place} returned {failed}")
        return tuple(muster.Tensor(each) for each in made)

    return call


def _array_dtype(dtype):
    return muster.Tensor(0, dtype).asnumpy().dtype


class PyFunc(Primitive):
    """A function of arrays as an op: outputs of out_types and out_shapes."""

    def __init__(self, fn, in_types, in_shapes, out_types, out_shapes, stateful=True):
        super().__init__()
        self.fn = fn
        self.out_types = out_types
        self.out_shapes = out_shapes

    def compute(self, *inputs):
        """What fn makes of the inputs, as a tuple."""
        inputs = [ops.stop_gradient(each) for each in inputs]
        types = zip(self.out_types, self.out_shapes, strict=True)
        made = _called(self, _of_arrays(self.fn), inputs, types)
        return made if isinstance(made, tuple) else (made,)


# ---- Printing ----------------------------------------------------------------------------------------------


def print_(*input_x):
    """Prints numbers, texts and tensors, in graphs in each run; gives the first tensor."""
    tensors = [each for each in input_x if isinstance(each, muster.Tensor)]
    texts = tuple(None if isinstance(each, muster.Tensor) else each for each in input_x)

    def show(*found):
        rest = iter(found)
        for each in texts:
            print(repr(next(rest)) if each is None else each, flush=True)
        return ()

    if not tensors:
        show()
        return None
    key = ("print", repr(texts))
    _core._call_host_function(_number(key, show), [ops.stop_gradient(x) for x in tensors], [], True)
    return tensors[0]


class Print(Primitive):
    """Prints what it is called with: ops.print_."""

    def compute(self, *input_x):
        """The first tensor."""
        return print_(*input_x)


_dumps = itertools.count()


def tensordump(file_name, tensor, mode="out"):
    """Writes the tensor to a file "<file_name>_<dtype>_<number>.npy", in graphs in each run. Numbers count
    all files of the process; bfloat16 is written as float32."""
    import numpy

    if not isinstance(file_name, str) or not isinstance(tensor, muster.Tensor):
        raise TypeError(
            "tensordump takes the name of a file and a tensor, not "
            f"{type(file_name).__name__} and {type(tensor).__name__}"
        )
    if not file_name or mode not in ("in", "out"):
        raise ValueError(f"tensordump: a name of a file and mode 'in' or 'out', not {file_name!r}, {mode!r}")
    stem = file_name.removesuffix(".npy")

    def write(x):
        wide = ops.cast(x, muster.float32) if x.dtype is muster.bfloat16 else x
        numpy.save(f"{stem}_{x.dtype.name}_{next(_dumps)}.npy", wide.asnumpy())
        return ()

    _core._call_host_function(_number(("dump", stem), write), [ops.stop_gradient(tensor)], [], True)


class TensorDump(Primitive):
    """Writes the tensors that it is called with to files: ops.tensordump."""

    def __init__(self, input_output="out"):
        super().__init__()
        if input_output not in ("in", "out"):
            raise ValueError(f"TensorDump: input_output is 'in' or 'out', not {input_output!r}")
        self.input_output = input_output

    def compute(self, file, input_x):
        """Nothing."""
        tensordump(file, input_x, self.input_output)


class DumpGradient(Primitive):
    """The tensor itself; what flows back to it is written to a file: ops.tensordump."""

    def compute(self, path, x, input_output):
        """x."""

        def written(gradient):
            tensordump(path, gradient, input_output)
            return gradient

        return InsertGradientOf(written)(x)


class Assert(Primitive):
    """Raises a RuntimeError where the condition is false, with the data."""

    def __init__(self, summarize=3):
        super().__init__()
        self.summarize = summarize

    def compute(self, condition, input_data):
        """Nothing."""

        def check(held, *data):
            if not held.asnumpy().all():
                raise RuntimeError("Assert: the condition is false: " + ", ".join(str(each) for each in data))
            return ()

        tensors = [ops.stop_gradient(each) for each in (condition, *input_data)]
        _core._call_host_function(_number("assert", check), tensors, [], True)


def _check_numerics(x):
    import numpy

    found = x.asnumpy()
    if not numpy.isfinite(found).all():
        raise RuntimeError(f"CheckNumerics: there is NaN or an infinity in {found}")
    return (x,)


class CheckNumerics(Primitive):
    """The tensor itself; an error where it has NaN or an infinity."""

    def compute(self, x):
        """x."""
        _called("check_numerics", _check_numerics, [ops.stop_gradient(x)], [(x.dtype, x.shape)], always=True)
        return x


# ---- Summaries ---------------------------------------------------------------------------------------------


def _summary(kind, is_shape, shapes):
    """The op of a plugin: what it is called with goes to the SummaryRecord that is open, in each run."""

    def compute(self, name, value):
        if not isinstance(name, str):
            raise TypeError(f"{kind}: name is a text, not {type(name).__name__}")
        if not name:
            raise ValueError(f"{kind}: name is empty")
        if not isinstance(value, muster.Tensor):
            raise TypeError(f"{kind}: the value of '{name}' is a Tensor, not {type(value).__name__}")
        if not is_shape(tuple(value.shape)):
            raise ValueError(f"{kind}: the value of '{name}' has the shape {value.shape}: {shapes}")
        plugin = kind.removesuffix("Summary").lower()

        def put(found):
            _summaries.put(plugin, name, found)
            return ()

        _core._call_host_function(_number((kind, name), put), [ops.stop_gradient(value)], [], True)

    doc = f"Records a value under a name at this step: {shapes}. SummaryRecord and SummaryCollector write it."
    return type(kind, (Primitive,), {"compute": compute, "__doc__": doc})


ScalarSummary = _summary("ScalarSummary", lambda shape: len(shape) <= 1, "at most one axis, with one element")
ImageSummary = _summary("ImageSummary", lambda shape: len(shape) == 4, "(batch, 1 or 3, height, width)")
TensorSummary = _summary("TensorSummary", lambda shape: len(shape) >= 1, "at least one axis")
HistogramSummary = _summary("HistogramSummary", lambda shape: len(shape) >= 1, "at least one axis")

# ---- Overflow ----------------------------------------------------------------------------------------------


class FloatStatus(Primitive):
    """1 in a tensor of one element where x has NaN or an infinity, else 0."""

    def compute(self, x):
        """float32 (1,)."""
        bad = ops.logical_not(ops.reduce_all(ops.isfinite(x)))
        return ops.reshape(ops.cast(bad, muster.float32), (1,))


class NPUAllocFloatStatus(Primitive):
    """Eight zeros: the processor keeps no status of its own, and gradients are checked as they are."""

    def compute(self):
        """float32 (8,)."""
        return ops.zeros((8,), muster.float32)


class NPUGetFloatStatus(Primitive):
    """What it is called with: no overflow was noted by the processor."""

    def compute(self, x):
        """x."""
        return x


class NPUClearFloatStatus(NPUGetFloatStatus):
    """What it is called with."""


# ---- Functions that are only marked ------------------------------------------------------------------------


def constexpr(fn=None, get_instance=True, name=None, reuse_result=True, check=True):
    """The function, called while the graph is made: its arguments are numbers, shapes and other constants."""
    return fn if fn is not None else (lambda function: function)


def add_flags(fn=None, **flags):
    """The function or cell; what flags ask of MindSpore's compiler has no meaning here."""
    return fn if fn is not None else (lambda function: function)


def _primexpr(fn=None, get_instance=True, name=None, reuse_result=True):
    return constexpr(fn)


class HookBackward(Primitive):
    """The tensor itself; hook_fn(cell_id, gradient, gradient) may replace its gradient."""

    def __init__(self, hook_fn, cell_id=""):
        super().__init__()
        if not callable(hook_fn):
            raise TypeError(f"HookBackward: hook_fn is a function, not {hook_fn!r}")
        self.hook_fn = hook_fn
        self.cell_id = cell_id
        self._counts_one = len(inspect.signature(hook_fn).parameters) == 1

    def compute(self, *inputs):
        """The inputs."""
        made = tuple(_hooked(self)(each) for each in inputs)
        return made[0] if len(made) == 1 else made


def _hooked(primitive):
    class Hooked(muster.Cell):
        """x, with another gradient."""

        def construct(self, x):
            """x."""
            return ops.mul(x, 1)

        def bprop(self, x, out, dout):
            """What the hook makes of the gradient."""
            given = (dout,)
            if primitive._counts_one:
                made = primitive.hook_fn(given)
            else:
                made = primitive.hook_fn(primitive.cell_id, given, given)
            made = dout if made is None else made
            return (made[0] if isinstance(made, tuple) else made,)

    return Hooked()


class InsertGradientOf(Primitive):
    """The tensor itself; f replaces its gradient."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def compute(self, x):
        """x."""
        function = self.f

        class Inserted(muster.Cell):
            """x, with another gradient."""

            def construct(self, x):
                """x."""
                return ops.mul(x, 1)

            def bprop(self, x, out, dout):
                """f of the gradient."""
                return (function(dout),)

        return Inserted()(x)


__all__ = [
    "Assert",
    "CheckNumerics",
    "Custom",
    "DumpGradient",
    "FloatStatus",
    "HistogramSummary",
    "HookBackward",
    "ImageSummary",
    "InsertGradientOf",
    "NPUAllocFloatStatus",
    "NPUClearFloatStatus",
    "NPUGetFloatStatus",
    "Print",
    "PyFunc",
    "ScalarSummary",
    "TensorDump",
    "TensorSummary",
    "add_flags",
    "constexpr",
    "print_",
    "tensordump",
]
