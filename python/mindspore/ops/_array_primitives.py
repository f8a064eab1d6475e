"""Functions that make, move, join and pick elements as classes."""

import muster
from mindspore.ops import _array, _row_primitives
from mindspore.ops._primitive import Primitive, without_settings
from muster import ops

Eye = without_settings("Eye", _array.eye)
ExpandDims = without_settings("ExpandDims", ops.expand_dims)
Fill = without_settings("Fill", _array.fill)
Flatten = without_settings("Flatten", _array.flatten)
LinSpace = without_settings("LinSpace", _array.linspace)
Ones = without_settings("Ones", ops.ones)
OnesLike = without_settings("OnesLike", ops.ones_like)
Rank = without_settings("Rank", _array.rank)
Reshape = without_settings("Reshape", ops.reshape)
Shape = without_settings("Shape", ops.shape)
Size = without_settings("Size", _array.size)
Slice = without_settings("Slice", ops.slice)
Tile = without_settings("Tile", ops.tile)
Transpose = without_settings("Transpose", ops.transpose)
Zeros = without_settings("Zeros", ops.zeros)
ZerosLike = without_settings("ZerosLike", ops.zeros_like)


class MatMul(_row_primitives.BatchMatMul):
    """The product of two matrices, muster.ops.batch_matmul without leading axes."""

    def compute(self, input, mat2):
        if input.ndim != 2 or mat2.ndim != 2:
            raise ValueError(f"MatMul multiplies two matrices, not {input.shape} and {mat2.shape}")
        return super().compute(input, mat2)


class BroadcastTo(Primitive):
    """muster.ops.broadcast_to."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape

    def compute(self, input):
        return ops.broadcast_to(input, self.shape)


class Concat(Primitive):
    """muster.ops.concat of a tuple or list, or of the arguments."""

    def __init__(self, axis=0):
        super().__init__()
        self.axis = axis

    def compute(self, *tensors):
        return ops.concat(_several(tensors), self.axis)


class OneHot(Primitive):
    """muster.ops.one_hot; the on and off values are tensors or numbers."""

    def __init__(self, axis=-1):
        super().__init__()
        self.axis = axis

    def _of_tensors(self, in_strategy, out_strategy):
        # MindSpore says in the first one how the result is cut, which has an axis more than the indices.
        is_of_result = isinstance(in_strategy, tuple) and in_strategy and isinstance(in_strategy[0], tuple)
        if not is_of_result or not in_strategy[0]:
            return in_strategy, out_strategy
        whole, *others = in_strategy
        axis = self.axis % len(whole)
        return (whole[:axis] + whole[axis + 1 :], *others), out_strategy or (whole,)

    def compute(self, indices, depth, on_value, off_value):
        return _array.one_hot(indices, depth, on_value, off_value, self.axis)


class Pad(Primitive):
    """Zeros around the tensor: `paddings` holds (before, behind) for each axis, the first one first."""

    def __init__(self, paddings):
        super().__init__()
        self.paddings = paddings

    def compute(self, input_x):
        return _padded(input_x, self.paddings, "constant")


class MirrorPad(Primitive):
    """The tensor mirrored around itself: `mode` is 'REFLECT' or 'SYMMETRIC', paddings as for Pad."""

    def __init__(self, mode="REFLECT"):
        super().__init__()
        if mode not in ("REFLECT", "SYMMETRIC"):
            raise ValueError(f"MirrorPad: mode must be 'REFLECT' or 'SYMMETRIC', not {mode!r}")
        self.mode = mode

    def compute(self, input_x, paddings):
        pairs = paddings.tolist() if isinstance(paddings, muster.Tensor) else paddings
        return _padded(input_x, pairs, self.mode.lower())


class Range(Primitive):
    """mindspore.ops.range."""

    def __init__(self, maxlen=1000000):
        super().__init__()
        self.maxlen = maxlen

    def compute(self, start, end, step):
        return _array.range(start, end, step)


class ReverseV2(Primitive):
    """muster.ops.flip."""

    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def compute(self, input):
        return ops.flip(input, self.axis)


class Split(Primitive):
    """`output_num` parts of one size along `axis`, as a tuple."""

    def __init__(self, axis=0, output_num=1):
        super().__init__()
        self.axis = axis
        self.output_num = output_num

    def compute(self, input_x):
        size = input_x.shape[self.axis]
        if self.output_num < 1 or size % self.output_num:
            raise ValueError(
                f"Split: axis {self.axis} of {input_x.shape} cannot be cut into {self.output_num} parts"
            )
        return ops.split(input_x, [size // self.output_num] * self.output_num, self.axis)


class Squeeze(Primitive):
    """mindspore.ops.squeeze; without axes all of size 1 go."""

    def __init__(self, axis=()):
        super().__init__()
        self.axis = axis

    def compute(self, input):
        return _array.squeeze(input, self.axis)


class Stack(Primitive):
    """muster.ops.stack of a tuple or list, or of the arguments."""

    def __init__(self, axis=0):
        super().__init__()
        self.axis = axis

    def compute(self, *tensors):
        return ops.stack(_several(tensors), self.axis)


class StridedSlice(Primitive):
    """mindspore.ops.strided_slice."""

    def __init__(self, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0):
        super().__init__()
        self.begin_mask = begin_mask
        self.end_mask = end_mask
        self.ellipsis_mask = ellipsis_mask
        self.new_axis_mask = new_axis_mask
        self.shrink_axis_mask = shrink_axis_mask

    def compute(self, input_x, begin, end, strides):
        return _array.strided_slice(
            input_x,
            begin,
            end,
            strides,
            self.begin_mask,
            self.end_mask,
            self.ellipsis_mask,
            self.new_axis_mask,
            self.shrink_axis_mask,
        )


class TopK(Primitive):
    """muster.ops.topk along the last axis; in order, but for all of them with sorted=False."""

    def __init__(self, sorted=True):
        super().__init__()
        if not isinstance(sorted, bool):
            raise TypeError(f"TopK: sorted is a bool, not {type(sorted).__name__}")
        self.sorted = sorted

    def compute(self, input_x, k):
        return ops.topk(input_x, k, sorted=self.sorted)


class _Triangle(Primitive):
    def __init__(self, diagonal=0):
        super().__init__()
        self.diagonal = diagonal


class Tril(_Triangle):
    """mindspore.ops.tril."""

    def compute(self, input):
        return _array.tril(input, self.diagonal)


class Triu(_Triangle):
    """mindspore.ops.triu."""

    def compute(self, input):
        return _array.triu(input, self.diagonal)


class Unstack(Primitive):
    """muster.ops.unstack; `num`, if given, is the size of the axis."""

    def __init__(self, axis=0, num=None):
        super().__init__()
        self.axis = axis
        self.num = num

    def compute(self, input_x):
        if self.num is not None and input_x.shape[self.axis] != self.num:
            raise ValueError(
                f"Unstack: axis {self.axis} of {input_x.shape} has no {self.num} elements, as num says"
            )
        return ops.unstack(input_x, self.axis)


class WhileLoop(Primitive):
    """muster.ops.while_loop; the result is a tensor, also when the state began as a number."""

    def compute(self, cond_func, loop_func, init_val):
        return ops.while_loop(cond_func, loop_func, init_val)


def _several(tensors):
    """The tensors that were given as one tuple or list, or one by one."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors


def _padded(x, paddings, mode):
    """ops.pad with one pair for each axis, the first axis first."""
    if len(paddings) != x.ndim:
        raise ValueError(f"Pad: a tensor of shape {x.shape} needs {x.ndim} pairs, not {len(paddings)}")
    return ops.pad(x, [number for pair in reversed(paddings) for number in pair], mode)


__all__ = [
    "BroadcastTo",
    "Concat",
    "ExpandDims",
    "Eye",
    "Fill",
    "Flatten",
    "LinSpace",
    "MatMul",
    "MirrorPad",
    "OneHot",
    "Ones",
    "OnesLike",
    "Pad",
    "Range",
    "Rank",
    "Reshape",
    "ReverseV2",
    "Shape",
    "Size",
    "Slice",
    "Split",
    "Squeeze",
    "Stack",
    "StridedSlice",
    "Tile",
    "TopK",
    "Transpose",
    "Tril",
    "Triu",
    "Unstack",
    "WhileLoop",
    "Zeros",
    "ZerosLike",
]
