"""States of the random number generators of this process: torch's on the CPU, random's and numpy's, and those
of a script's own (of the same three kinds) that it names or that its loader has."""

import ctypes
import json
import random
import struct
import sys
from collections.abc import Sequence

import torch

from muster._loaded import loaded

_WORDS = 624  # of a Mersenne twister
_RANDOM = struct.Struct(f"<{_WORDS + 1}I?d")  # words and place, whether a second normal number waits, and it
_NUMPY = struct.Struct(f"<?{4 * _WORDS}siid")  # whether numpy is imported, words, place, the same two
_TORCH_BYTES = torch.get_rng_state().numel()
RECORD_BYTES = _TORCH_BYTES + _RANDOM.size + _NUMPY.size
_NO_NUMPY = bytes(_NUMPY.size)
_TEXT_BYTES = 8192  # of a generator of random's or numpy's: its state as JSON, filled up with blanks
_last_random: tuple = ((), b"")  # packing 625 numbers takes longer than seeing that they are the same


def _numpy_random():
    numpy = loaded("numpy")
    return None if numpy is None else numpy.random


def _numpy_state() -> bytes:
    numpy_random = _numpy_random()
    if numpy_random is None:
        return _NO_NUMPY
    state = numpy_random.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise RuntimeError(
            f"muster: numpy's global generator is a {state['bit_generator']}, and only the one that numpy "
            "begins with, MT19937, is kept: give generators of your own state_dict() and load_state_dict() "
            "and name them in recoverable(states=)"
        )
    words = state["state"]
    return _NUMPY.pack(True, words["key"].tobytes(), words["pos"], state["has_gauss"], state["gauss"])


def _random_state() -> bytes:
    global _last_random
    state = random.getstate()
    if state != _last_random[0]:
        _, words, waiting = state
        _last_random = (state, _RANDOM.pack(*words, waiting is not None, waiting or 0.0))
    return _last_random[1]


def _torch_state(generator: torch.Generator) -> bytes:
    state = generator.get_state()
    return ctypes.string_at(state.data_ptr(), _TORCH_BYTES)


def is_generator(value) -> bool:
    """Whether it is one whose state can be kept."""
    if isinstance(value, torch.Generator):
        return value.device.type == "cpu"
    if isinstance(value, random.SystemRandom):
        return False  # it has no state
    return isinstance(value, random.Random) or _is_of_numpy(value)


def _is_of_numpy(value) -> bool:
    numpy_random = _numpy_random()
    return numpy_random is not None and isinstance(value, numpy_random.Generator | numpy_random.RandomState)


def _plain(value):
    """For JSON: what the states of numpy's generators have beside strings and numbers of Python."""
    return {"array": value.tolist(), "dtype": value.dtype.str} if hasattr(value, "dtype") else int(value)


def _from_plain(value: dict):
    return sys.modules["numpy"].array(value["array"], value["dtype"]) if "array" in value else value


def _text_state(generator) -> bytes:
    if isinstance(generator, random.Random):
        state = generator.getstate()
    elif isinstance(generator, _numpy_random().RandomState):
        state = generator.get_state(legacy=False)
    else:
        state = generator.bit_generator.state
    text = json.dumps(state, default=_plain, separators=(",", ":")).encode()
    if len(text) > _TEXT_BYTES:
        raise ValueError(
            f"muster: the state of a {type(generator).__name__} is {len(text)} bytes long, and {_TEXT_BYTES} "
            "are kept: draw from a torch.Generator"
        )
    return text.ljust(_TEXT_BYTES)


def _set_text_state(generator, kept: bytes) -> None:
    state = json.loads(kept, object_hook=_from_plain)
    if isinstance(generator, random.Random):
        version, words, waiting = state
        generator.setstate((version, tuple(words), waiting))
    elif isinstance(generator, _numpy_random().RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def _size(generator) -> int:
    return _TORCH_BYTES if isinstance(generator, torch.Generator) else _TEXT_BYTES


def state_of(generator) -> bytes:
    return _torch_state(generator) if isinstance(generator, torch.Generator) else _text_state(generator)


def set_state(generator, kept: bytes) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(torch.frombuffer(bytearray(kept), dtype=torch.uint8))
    else:
        _set_text_state(generator, kept)


def record(others: Sequence = ()) -> bytes:
    """The states of all generators: RECORD_BYTES, and as many as it takes for each of the others."""
    return b"".join(
        (
            _torch_state(torch.default_generator),
            _random_state(),
            _numpy_state(),
            *map(state_of, others),
        )
    )


def restore(kept: bytes, others: Sequence = ()) -> None:
    """Sets all generators to what record() gave."""
    start = RECORD_BYTES
    for other in others:
        end = start + _size(other)
        if end <= len(kept):  # not in points of older versions
            set_state(other, kept[start:end])
        start = end
    torch.set_rng_state(torch.frombuffer(bytearray(kept[:_TORCH_BYTES]), dtype=torch.uint8))
    *words, is_waiting, waiting = _RANDOM.unpack_from(kept, _TORCH_BYTES)
    random.setstate((3, tuple(words), waiting if is_waiting else None))
    has_numpy, numpy_words, place, has_gauss, gauss = _NUMPY.unpack_from(kept, _TORCH_BYTES + _RANDOM.size)
    numpy_random = _numpy_random()
    if has_numpy and numpy_random is not None:
        key = sys.modules["numpy"].frombuffer(numpy_words, dtype="uint32")
        numpy_random.set_state(("MT19937", key, place, has_gauss, gauss))
