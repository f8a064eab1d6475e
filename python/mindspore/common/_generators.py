"""Generators of random numbers with a state that scripts keep and restore: mindspore.Generator.

A generator draws on the host, from its seed and from how often it has drawn. mindspore.mint and the methods
of Tensor that take `generator=` draw from the one that they are given, and from the default generator once
manual_seed(), seed() or set_rng_state() has set it, or get_rng_state() was asked; else from the seed of
set_seed, as everything else does.
"""

import contextlib
import os

import muster
from mindspore.ops import _random

_BYTES = 16  # of a state: the seed and the number of draws


class Generator:
    """Draws random numbers from a seed of its own."""

    def __init__(self):
        self._seed, self._draws, self._is_used = 0, 0, False

    def manual_seed(self, seed):
        """Begins anew from a seed, a whole number. Gives the generator."""
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise TypeError(f"manual_seed(): seed is a whole number, not {type(seed).__name__}")
        if not -(2**63) <= seed < 2**63:
            raise ValueError(f"manual_seed(): {seed} does not fit into 64 bits")
        self._seed, self._draws, self._is_used = seed, 0, True
        return self

    def seed(self) -> int:
        """Begins anew from a seed that the system draws, and gives it."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)._seed

    def initial_seed(self) -> int:
        """The seed that it began from."""
        return self._seed

    def get_state(self):
        """The seed and how often it has drawn, 16 bytes in a tensor of uint8."""
        import numpy

        self._is_used = True
        numbers = numpy.array([self._seed, self._draws], "<i8")
        return muster.Tensor(numpy.frombuffer(numbers.tobytes(), numpy.uint8))

    def set_state(self, state) -> None:
        """Goes on from what get_state() gave."""
        if not isinstance(state, muster.Tensor):
            raise TypeError(f"set_state() takes what get_state() gave, not {type(state).__name__}")
        if state.dtype != muster.uint8 or tuple(state.shape) != (_BYTES,):
            raise ValueError(
                f"set_state() takes {_BYTES} bytes of uint8 that get_state() gave, not "
                f"{tuple(state.shape)} of {state.dtype}"
            )
        import numpy

        self._seed, self._draws = numpy.frombuffer(state.asnumpy().tobytes(), "<i8").tolist()
        self._is_used = True

    def drawn(self, op, shape, dtype):
        """The next numbers of "random_uniform" or "random_normal"."""
        import numpy

        if muster._core._is_tracing():  # what is drawn here changes: the code runs op by op from now on
            muster._core._random_numbers("random_uniform", (), muster.float32, 0).asnumpy()
        bits = numpy.random.Philox(key=self._seed % 2**64, counter=[0, self._draws, 0, 0])
        self._draws += 1
        made = numpy.random.Generator(bits)
        draw = made.random if op == "random_uniform" else made.standard_normal
        kind = numpy.float64 if dtype == muster.float64 else numpy.float32
        return muster.Tensor(numpy.asarray(draw(tuple(shape), kind)))


default_generator = Generator().manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
default_generator._is_used = False


@contextlib.contextmanager
def drawing(generator=None):
    """What mindspore.ops draws inside comes from the generator, or from the default one once it was set."""
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(f"generator is a mindspore.Generator or None, not {type(generator).__name__}")
    source = default_generator if generator is None else generator
    if generator is None and not source._is_used:
        yield
        return
    _random.sources.append(source)
    try:
        yield
    finally:
        _random.sources.pop()


def manual_seed(seed):
    """Sets the seed of the default generator, which it gives."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Sets a seed of the default generator that the system draws, and gives it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator began from."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator, a tensor."""
    return default_generator.get_state()


def set_rng_state(state) -> None:
    """The default generator goes on from what get_rng_state() gave."""
    default_generator.set_state(state)


__all__ = [
    "Generator",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]
