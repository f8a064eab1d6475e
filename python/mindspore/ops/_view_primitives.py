"""mindspore.ops.operations: loops over functions, and ops that libraries call beside the usual ones."""

import muster
from mindspore import _device
from mindspore.ops import _array, _host
from mindspore.ops._primitive import Primitive, class_keeper
from muster import ops

_made: dict = {}
_class = class_keeper(_made)


@_class("ForiLoop")
def _fori_loop(lower, upper, loop_func, init_val, unroll=True):
    """loop_func(index, value) from the lower to below the upper bound, each with what the last one gave."""
    for index in range(int(lower), int(upper)):
        init_val = loop_func(index, init_val)
    return init_val


@_class("Scan")
def _scan(loop_func, init, xs, length=None, unroll=True):
    """loop_func(state, element) over the elements of `xs`: the last state, and all that it gave beside it."""
    if xs is None and length is None:
        raise ValueError("Scan: without xs it needs the length, the number of calls")
    count = len(xs) if length is None else int(length)
    if xs is not None and len(xs) != count:
        raise ValueError(f"Scan: length is {count}, and xs has {len(xs)} elements")
    made = []
    for at in range(count):
        init, given = loop_func(init, None if xs is None else xs[at])
        made.append(given)
    return init, made


@_class("LogSoftmaxExt")
def _log_softmax(input, dim=None, dtype=None):
    """mint.nn.functional.log_softmax."""
    from mindspore.mint.nn import functional

    return functional.log_softmax(input, dim, dtype=dtype)


@_class("SelectView")
def _select(input, index, axis):
    """The elements at one index of an axis, which is no axis of them."""
    return _array.part_of(input, (slice(None),) * (axis % input.ndim) + (int(index),))


@_class("TransposeExtView")
def _transposed(input, dim0, dim1):
    """The elements with two axes exchanged."""
    return ops.swapaxes(input, dim0, dim1)


@_class("MoveTo")
def _moved(input, to="CPU", blocking=True):
    """The tensor itself, which is on the one device there is."""
    _device.run_on(to, "MoveTo")
    return input


class TensorDump(Primitive):
    """ops.tensordump, whose result is the number 0."""

    def __init__(self, input_output="out"):
        if input_output not in ("in", "out"):
            raise ValueError(f"TensorDump: input_output is 'in' or 'out', not {input_output!r}")
        super().__init__()

    def compute(self, file, input_x):
        _host.tensordump(file, input_x)
        return muster.Tensor(0, muster.int32)


globals().update(_made)
__all__ = sorted((*_made, "TensorDump"))
