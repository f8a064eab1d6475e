"""States of the random number generators of this process: torch's on the CPU, random's and numpy's, and those
of a script's own that it names or gives its loader."""

import ctypes
import random
import struct
import sys
from collections.abc import Sequence

import torch

_WORDS = 624  # of a Mersenne twister
_RANDOM = struct.Struct(f"<{_WORDS + 1}I?d")  # words and place, whether a second normal number waits, and it
_NUMPY = struct.Struct(f"<?{4 * _WORDS}siid")  # whether numpy is imported, words, place, the same two
_TORCH_BYTES = torch.get_rng_state().numel()
RECORD_BYTES = _TORCH_BYTES + _RANDOM.size + _NUMPY.size
_NO_NUMPY = bytes(_NUMPY.size)
_last_random: tuple = ((), b"")  # packing 625 numbers takes longer than seeing that they are the same


def _numpy_random():
    numpy = sys.modules.get("numpy")
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


def record(others: Sequence[torch.Generator] = ()) -> bytes:
    """The states of all generators: RECORD_BYTES, and as many for each of the others."""
    return b"".join(
        (
            _torch_state(torch.default_generator),
            _random_state(),
            _numpy_state(),
            *(_torch_state(other) for other in others),
        )
    )


def restore(kept: bytes, others: Sequence[torch.Generator] = ()) -> None:
    """Sets all generators to what record() gave."""
    for index, other in enumerate(others):
        start = RECORD_BYTES + index * _TORCH_BYTES
        if start < len(kept):  # not in points of older versions
            other.set_state(
                torch.frombuffer(bytearray(kept[start : start + _TORCH_BYTES]), dtype=torch.uint8)
            )
    torch.set_rng_state(torch.frombuffer(bytearray(kept[:_TORCH_BYTES]), dtype=torch.uint8))
    *words, is_waiting, waiting = _RANDOM.unpack_from(kept, _TORCH_BYTES)
    random.setstate((3, tuple(words), waiting if is_waiting else None))
    has_numpy, numpy_words, place, has_gauss, gauss = _NUMPY.unpack_from(kept, _TORCH_BYTES + _RANDOM.size)
    numpy_random = _numpy_random()
    if has_numpy and numpy_random is not None:
        key = sys.modules["numpy"].frombuffer(numpy_words, dtype="uint32")
        numpy_random.set_state(("MT19937", key, place, has_gauss, gauss))
