"""Rows that are another call in MindSpore than their alias says, or several.

A rule gives the names of the row's outputs, or None where MindSpore has no counterpart for this call.
"""

import math

import muster
from mindspore._lazy import numpy
from mindspore.train._mindir._writer import Call
from muster import _core

_RULES = {}
_FLOATS = (muster.float16, muster.bfloat16, muster.float32, muster.float64)
# Primitives of rows whose settings are attributes in files.
_WITH_ATTRIBUTES = ("SeLU", "Softsign", "Mish")
_ALIASES = {}


def rule(*rows):
    def keep(function):
        _RULES.update(dict.fromkeys(rows, function))
        return function

    return keep


def written(call: Call):
    """The names of a row's outputs, or None."""
    if call.row in _RULES:
        return _RULES[call.row](call)
    if not _ALIASES:
        _ALIASES.update(_core._primitives_of_rows())
    if call.row not in _ALIASES or not call.uses_only_first() or len(call.output_types) > 1:
        return None
    name, settings, arguments, inputs, defaults = _ALIASES[call.row]
    if len(inputs) != len(call.inputs):
        return None
    tensors = dict(zip(inputs, call.inputs, strict=True))
    given, named = [], set()
    for place, each in enumerate([*arguments, *settings]):
        own = each.partition(":")[2] or each
        if own not in tensors and own not in call.attributes and place < len(inputs):
            own = inputs[place]  # the alias has another name for the argument at this place
        named.add(own)
        if own in tensors:
            given.append(tensors[own])
        elif own in call.attributes or own in defaults:
            given.append((call.attributes.get(own, defaults.get(own)),))
        else:
            return None
    # A setting that the primitive has not must be what it is without it.
    for each, value in call.attributes.items():
        if each not in named and value != defaults.get(each):
            return None
    if name in _WITH_ATTRIBUTES:
        return [call.make(name, *given, attributes={})]
    return [call.make(name, *given)]


def _whole(call: Call) -> bool:
    return call.types[0][0] not in _FLOATS


@rule("stop_gradient")
def _same(call):
    return [call.inputs[0]]


@rule("div")
def _divided(call):
    return None if _whole(call) else [call.make("Div", *call.inputs)]


@rule("round")
def _rounded(call):
    return [call.make("Round", call.inputs[0], (0,))]


@rule("silu")
def _silu(call):
    return [call.make("SiLU", call.inputs[0])]


@rule("transpose")
def _transposed(call):
    return [call.make("Transpose", call.inputs[0], (tuple(call.attributes["perm"]),))]


@rule("reshape")
def _reshaped(call):
    return [call.make("Reshape", call.inputs[0], (call.output_types[0][1],))]


@rule("broadcast_to")
def _broadcast(call):
    return [call.make("BroadcastTo", call.inputs[0], (call.output_types[0][1],))]


@rule("fill")
def _filled(call):
    dtype, shape = call.output_types[0]
    if math.prod(shape) > 1 << 20:
        return None
    value = muster.Tensor(numpy.full(shape, call.get("value", 0.0), "float64")).astype(dtype)
    return [call.writer.constant(value)]


@rule("matmul")
def _product(call):
    if "dtype" in call.attributes:
        return None
    transposes = (call.get("transpose_a", False),), (call.get("transpose_b", False),)
    return [call.make("MatMul", *call.inputs, *transposes)]


@rule("bias_add")
def _biased(call):
    if len(call.types[0][1]) == 2:
        return [call.make("BiasAdd", *call.inputs, (0,))]
    return [call.make("Add", *call.inputs)]


@rule("softmax", "log_softmax")
def _softmax(call):
    axis = call.get("axis", -1)
    if call.row == "softmax":
        return [call.make("Softmax", call.inputs[0], ((axis,),))]
    return [call.make("LogSoftmax", call.inputs[0], (axis,))]


@rule("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")
def _reduced(call):
    name = "Reduce" + call.row[7:].capitalize()
    settings = [(tuple(call.get("axes", ())),), (call.get("keep_dims", False),)]
    if name == "ReduceSum":
        settings.append((False,))  # whether no axes means none of them
    return [call.make(name, call.inputs[0], *settings)]


@rule("argmax", "argmin")
def _argument(call):
    axis = call.get("axis", -1)
    return [call.make(call.row.capitalize(), call.inputs[0], (axis,), (call.output_types[0][0],))]


@rule("concat")
def _joined(call):
    together = call.make("MakeTuple", *call.inputs, types=list(call.types), attributes={})
    return [call.make("Concat", together, (call.get("axis", 0),))]


def _sliced(call, x, starts, ends, steps, types):
    return call.make("StridedSlice", x, (starts,), (ends,), (steps,), *[(0,)] * 5, types=types)


def _reversed(call, begin, size, steps):
    """Whole axes from behind."""
    back = tuple(axis for axis, step in enumerate(steps) if step == -1)
    shape = call.types[0][1]
    starts = tuple(shape[axis] - 1 if axis in back else 0 for axis in range(len(shape)))
    if tuple(begin) != starts or tuple(size) != shape or any(abs(step) != 1 for step in steps):
        return None
    return [call.make("ReverseV2", call.inputs[0], (back,))]


@rule("slice")
def _slice(call):
    begin, size = call.attributes["begin"], call.attributes["size"]
    steps = tuple(call.get("strides", (1,) * len(begin)))
    if any(step < 1 for step in steps):
        return _reversed(call, begin, size, steps)
    if not all(size):
        return None
    last = [first + (count - 1) * step for first, count, step in zip(begin, size, steps, strict=True)]
    ends = tuple(each + 1 for each in last)
    return [_sliced(call, call.inputs[0], tuple(begin), ends, steps, call.output_types[0])]


@rule("pad")
def _padded(call):
    begin, sizes = call.attributes["begin"], call.types[0][1]
    sides = tuple(
        (before, whole - before - size)
        for before, whole, size in zip(begin, call.output_types[0][1], sizes, strict=True)
    )
    if call.get("value", 0.0) != 0 or any(each < 0 for side in sides for each in side):
        return None
    return [call.make("Pad", call.inputs[0], attributes={"paddings": sides, **_names("x", "y")})]


@rule("split")
def _split(call):
    axis, at, made = call.get("axis", 0), 0, []
    shape = call.types[0][1]
    axis %= len(shape)
    for size, types in zip(call.attributes["sizes"], call.output_types, strict=True):
        starts = tuple(at if each == axis else 0 for each in range(len(shape)))
        ends = tuple(at + size if each == axis else shape[each] for each in range(len(shape)))
        made.append(_sliced(call, call.inputs[0], starts, ends, (1,) * len(shape), types))
        at += size
    return made


@rule("clip")
def _clipped(call):
    return [call.make("ClampScalar", call.inputs[0], (call.get("min", None),), (call.get("max", None),))]


@rule("gelu")
def _gelu(call):
    x, types = call.inputs[0], call.types[0]
    if call.get("approximate", False):
        return [call.make("GeLU", x)]
    number = [muster.Tensor(numpy.array(each)).astype(types[0]) for each in (math.sqrt(0.5), 1.0, 0.5)]
    part = call.make("Erf", call.make("Mul", x, (number[0],)))
    return [call.make("Mul", call.make("Mul", x, call.make("Add", part, (number[1],))), (number[2],))]


@rule("leaky_relu")
def _leaky(call):
    alpha = call.get("alpha", 0.2)
    if alpha > 1:
        return None
    factor = muster.Tensor(numpy.array(alpha)).astype(call.types[0][0])
    return [call.make("Maximum", call.make("Mul", call.inputs[0], (factor,)), call.inputs[0])]


# ---- Networks of pictures ------------------------------------------------------------------------------


def _names(inputs: str, outputs: str) -> dict:
    return {"input_names": inputs.split(), "output_names": outputs.split()}


def _convolution(call, axes: int) -> dict:
    """The attributes of one over two or three axes."""
    shape = call.types[1][1]
    pads = tuple(call.get("pads", (0,) * 2 * axes))
    group = call.get("group", 1)
    strides = tuple(call.get("strides", (1,) * axes))
    dilations = tuple(call.get("dilations", (1,) * axes))
    return {
        "kernel_size": tuple(shape[2:]),
        "mode": 1,
        "out_channel": shape[0],
        "pad": pads,
        "pad_mode": "pad",
        "format": "NCHW" if axes == 2 else "NCDHW",
        "pad_list": pads,
        "groups": group,
        "group": group,
        "stride": (1, 1, *strides) if axes == 2 else strides,
        "dilation": (1, 1, *dilations) if axes == 2 else dilations,
    }


@rule("conv2d")
def _convolved(call):
    if call.get("activation", "none") != "none":
        return None
    attributes = _convolution(call, 2) | _names("x w", "output")
    made = call.make("Conv2D", *call.inputs[:2], attributes=attributes)
    if len(call.inputs) > 2:
        made = call.make("BiasAdd", made, call.inputs[2], (0,))
    return [made]


@rule("conv3d")
def _convolved_volume(call):
    if len(call.inputs) != 2:
        return None
    attributes = _convolution(call, 3) | _names("x w", "output")
    attributes |= {
        "offset_x": 0,
        "strides": (1, 1, *attributes["stride"]),
        "dilations": (1, 1, *attributes["dilation"]),
    }
    return [call.make("Conv3D", *call.inputs, attributes=attributes)]


@rule("conv2d_grad_input")
def _transposed_convolution(call):
    if len(call.inputs) != 2:
        return None
    attributes = _convolution(call, 2) | _names("out_backprop filter input_sizes", "output")
    return [call.make("Conv2DTranspose", *call.inputs, (call.output_types[0][1],), attributes=attributes)]


def _pad_mode(call):
    """ "valid" or "same" where the windows are those, else None."""
    pads = tuple(call.get("pads", (0, 0, 0, 0)))
    if call.get("ceil_mode", False):
        return None
    if not any(pads):
        return "valid"
    wanted = []
    strides = call.get("strides", (1, 1))
    for size, kernel, stride in zip(call.types[0][1][2:], call.attributes["kernel"], strides, strict=True):
        whole = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
        wanted += [whole // 2, whole - whole // 2]
    return "same" if tuple(wanted) == pads else None


@rule("max_pool2d")
def _greatest(call):
    mode = _pad_mode(call)
    if mode is None or not call.uses_only_first():
        return None
    attributes = {
        "pad_mode": mode.upper(),
        "kernel_size": (1, 1, *call.attributes["kernel"]),
        "strides": (1, 1, *call.get("strides", (1, 1))),
        "format": "NCHW",
        **_names("x", "output"),
    }
    return [call.make("MaxPool", call.inputs[0], attributes=attributes)]


@rule("avg_pool2d")
def _mean(call):
    mode = _pad_mode(call)
    if mode is None or (mode == "same" and call.get("count_include_pad", False)):
        return None
    sizes = [(tuple(call.attributes["kernel"]),), (tuple(call.get("strides", (1, 1))),)]
    return [call.make("AvgPool", call.inputs[0], *sizes, ({"valid": 2, "same": 1}[mode],), (0,))]


@rule("adaptive_avg_pool2d")
def _adaptive_mean(call):
    attributes = {"output_size": tuple(call.attributes["output_size"]), **_names("x", "y")}
    return [call.make("AdaptiveAvgPool2D", call.inputs[0], attributes=attributes)]


@rule("batch_norm")
def _batch_norm(call):
    if call.get("training", False) or not call.uses_only_first():
        return None
    channel = call.types[1]
    types = [call.output_types[0], channel, channel, channel, channel]
    settings = [(False,), (call.get("eps", 1e-5),), (1 - call.get("momentum", 0.9),), (0,)]
    whole = call.make("BatchNorm", *call.inputs, *settings, types=types)
    return [call.writer.items(whole, types[:1])[0]]


@rule("layer_norm")
def _layer_norm(call):
    if not call.uses_only_first():
        return None
    axis = call.get("begin_norm_axis", -1)
    shape = call.types[0][1]
    begin = axis % len(shape)
    small = (muster.float32, (*shape[:begin], *[1] * (len(shape) - begin)))
    types = [call.output_types[0], small, small]
    whole = call.make("LayerNorm", *call.inputs, (axis,), (axis,), (call.get("eps", 1e-5),), types=types)
    return [call.writer.items(whole, types[:1])[0]]


# ---- Orders and places ---------------------------------------------------------------------------------


@rule("one_hot")
def _one_hot(call):
    if len(call.inputs) != 3 or call.types[0][0] not in (muster.int32, muster.int64):
        return None
    labels, on, off = call.inputs
    return [call.make("OneHot", labels, (call.attributes["depth"],), on, off, (call.get("axis", -1),))]


@rule("scatter_elements")
def _scattered(call):
    reduce = {"update": 0, "add": 1}.get(call.get("mode", "update"))
    if reduce is None:
        return None
    return [call.make("TensorScatterElements", *call.inputs, (call.get("axis", 0),), (reduce,))]


@rule("scatter_nd_update")
def _scattered_parts(call):
    name = {"update": "Update", "add": "Add", "sub": "Sub", "max": "Max", "min": "Min", "mul": "Mul"}
    kind = name.get(call.get("mode", "update"))
    if kind is None:
        return None
    attributes = _names("input_x indices updates", "y")
    return [call.make(f"TensorScatter{kind}", *call.inputs, attributes=attributes)]


@rule("softmax_cross_entropy")
def _sparse_loss(call):
    settings = {name: value for name, value in call.attributes.items() if value not in (0.0, "mean")}
    if settings or not call.uses_only_first() or call.types[1][0] != muster.int32:
        return None
    attributes = {"is_grad": False, "sens": 1.0, **_names("features labels", "output")}
    return [call.make("SparseSoftmaxCrossEntropyWithLogits", *call.inputs, attributes=attributes)]


@rule("topk")
def _topk(call):
    if not call.get("largest", True) or call.output_types[1][0] != muster.int32:
        return None
    attributes = {"sorted": True, **_names("input k", "values indices")}
    types = list(call.output_types)
    whole = call.make("TopK", call.inputs[0], (call.attributes["k"],), types=types, attributes=attributes)
    return call.writer.items(whole, types)


@rule("sort")
def _sorted(call):
    if call.output_types[1][0] != muster.int32:
        return None
    attributes = {
        "axis": call.get("axis", -1),
        "descending": call.get("descending", False),
        **_names("x", "y1 y2"),
    }
    types = list(call.output_types)
    whole = call.make("Sort", call.inputs[0], types=types, attributes=attributes)
    return call.writer.items(whole, types)
