"""What a data worker does in Python beside the user's functions: a process that makes rows (ADR 31).

The compiled module calls these: `flush` before it forks, `begin`, `seed`, `pack` and `end` in the worker,
`unpack` in the process that wants the row.
"""

import contextlib
import faulthandler
import pickle
import random
import signal
import sys
import traceback

from muster import _random_seeds

# A worker that gets it writes to stderr where its functions are; where that is not set up, it does nothing.
STACK_SIGNAL = signal.SIGURG


class WorkerTracebackError(Exception):
    """The traceback of a data worker, as the cause of the exception that came from there."""

    def __str__(self) -> str:
        return '\n"""\n' + str(self.args[0]) + '"""'


def flush() -> None:
    """Writes what is buffered, lest the worker write its copy too."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def begin(worker: int) -> None:
    """Sets up a worker: threads of libraries are not there after a fork, and waiting for them would hang."""
    with contextlib.suppress(Exception):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with contextlib.suppress(Exception):
        faulthandler.register(STACK_SIGNAL, file=2, all_threads=True)
    for module, setter in (("torch", "set_num_threads"), ("cv2", "setNumThreads")):
        if module in sys.modules:
            with contextlib.suppress(Exception):
                getattr(sys.modules[module], setter)(1)


def end() -> None:
    """Behind the last row."""
    flush()


def seed(number: int) -> None:
    """Sets the global generators of `random`, of numpy, and of torch where it is imported."""
    random.seed(number)
    _random_seeds.seed("numpy.random", number & 0xFFFFFFFF)
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(number & 0x7FFFFFFFFFFFFFFF)


def pack(exception: BaseException) -> bytes:
    """The exception with its traceback. A RuntimeError that says the same where it cannot travel, or where it
    would end the process that trains (SystemExit).
    """
    text = "".join(traceback.format_exception(exception))
    if isinstance(exception, Exception):
        with contextlib.suppress(Exception):
            packed = pickle.dumps((exception, text))
            pickle.loads(packed)
            return packed
    substitute = RuntimeError("".join(traceback.format_exception_only(exception)).strip())
    return pickle.dumps((substitute, text))


def unpack(packed: bytes, where: str) -> BaseException:
    """The exception of a worker: of its own type, with the worker's traceback and the row as its cause."""
    exception, text = pickle.loads(packed)
    exception.__cause__ = WorkerTracebackError(f"{where}:\n{text}")
    if hasattr(exception, "add_note"):  # from Python 3.11 on
        exception.add_note(f"raised in {where}")
    return exception
