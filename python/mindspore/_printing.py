"""print() in code that is traced: it writes nothing where one of its values has no text yet."""

import builtins
import functools

from muster import _core


def install() -> None:
    """A function that asks for the text of a traced tensor runs again, op by op; print writes value by value,
    and what it had written by then would stand there twice."""
    write = builtins.print

    @functools.wraps(write)
    def print(*values, **options):
        write(*(map(str, values) if _core._is_tracing() else values), **options)

    builtins.print = print
