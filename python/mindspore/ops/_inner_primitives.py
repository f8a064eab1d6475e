"""mindspore.ops.operations._inner_ops: ops that MindSpore's own functions are made of, and libraries call."""

import os

import muster
from mindspore import _names, _refused, ops
from mindspore.ops import _lengths, _view_primitives
from mindspore.ops._primitive import class_keeper
from muster import _core

_made: dict = {}
_class = class_keeper(_made)
_BYTES = 16  # of a generator's state: its seed and its offset

_STEP, _SEED, _GET_STATE, _SET_STATE, _MANUAL_SEED, _INITIAL_SEED = range(6)


def _told(seed, offset):
    """Both as tensors of their own, of one element each, and both as bytes."""
    numbers = [int(each.asnumpy().reshape(-1)[0]) for each in (seed, offset)]
    raw = b"".join(each.to_bytes(8, "little", signed=True) for each in numbers)
    return (
        *(muster.Tensor([each], muster.int64) for each in numbers),
        muster.Tensor(list(raw), muster.uint8),
    )


def _put(tensor, number: int) -> None:
    _core._set_value(tensor, muster.ops.full(tuple(tensor.shape), number, dtype=tensor.dtype))


def _numbers_of(state) -> list[int]:
    raw = state.asnumpy().tobytes()
    if state.dtype != muster.uint8 or len(raw) != _BYTES:
        raise ValueError(
            f"Generator: a state is {_BYTES} bytes of uint8, not {tuple(state.shape)} of {state.dtype}"
        )
    return [int.from_bytes(raw[at : at + 8], "little", signed=True) for at in (0, 8)]


@_class("Generator")
def _generator(cmd, inputs):
    """The seed and the offset of a generator, which two tensors hold, and both as bytes.

    Commands are numbers: 0 tells both as they are, 1 draws a seed, 2 tells all, 3 takes the bytes and 4 the
    seed that stand third, 5 tells all.
    """
    seed, offset, *given = inputs
    if cmd == _STEP:
        return seed, offset
    if cmd not in range(_SEED, _INITIAL_SEED + 1):
        raise ValueError(f"Generator: commands are 0 to {_INITIAL_SEED}, not {cmd!r}")
    if cmd in (_SET_STATE, _MANUAL_SEED) and not given:
        raise ValueError(f"Generator: command {cmd} takes a third tensor, the state or the seed")
    if cmd in (_SEED, _MANUAL_SEED):
        drawn = int.from_bytes(os.urandom(4), "little")
        numbers = [drawn if cmd == _SEED else int(given[0].asnumpy().reshape(-1)[0]), 0]
    elif cmd == _SET_STATE:
        numbers = _numbers_of(given[0])
    else:
        return _told(seed, offset)
    for tensor, number in zip((seed, offset), numbers, strict=True):
        _put(tensor, number)
    return _told(seed, offset)


@_class("SliceGetItem")
def _slice_get_item(slice_value, value):
    """`start`, `stop` or `step` of a slice."""
    if value not in ("start", "stop", "step"):
        raise ValueError(f"SliceGetItem: a slice has 'start', 'stop' and 'step', not {value!r}")
    return getattr(slice_value, value)


@_class("SequenceMask")
def _sequence_mask(lengths, maxlen):
    """ops.sequence_mask."""
    return _lengths.sequence_mask(lengths, maxlen)


@_class("SameTypeShape")
def _same_type_shape(x, y):
    """x, which has the dtype and the shape of y, or it is an error."""
    if x.dtype != y.dtype:
        raise TypeError(f"SameTypeShape: x is of {x.dtype}, y of {y.dtype}")
    if tuple(x.shape) != tuple(y.shape):
        raise ValueError(f"SameTypeShape: x is of shape {tuple(x.shape)}, y of {tuple(y.shape)}")
    return x


SelectView = _view_primitives.SelectView
_SHARED = """
    Cast ConvertToDynamic Cummin DynamicBroadcastTo DynamicStitch ExtractImagePatches Primitive
    PrimitiveWithCheck PrimitiveWithInfer SiLU
"""
globals().update(_made)
_missing = _names.missing("mindspore.ops.operations._inner_ops")


def _shown():
    below = _refused.ops_below("mindspore.ops.operations._inner_ops")
    return sorted({*_made, "SelectView", *_SHARED.split(), *below})


def __getattr__(name):
    """The names of mindspore.ops, too; a star takes those that MindSpore's file has."""
    if name == "__all__":
        return _shown()
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = getattr(ops, name, None)
    return _missing(name) if found is None else found
