"""Whether code runs that MindSpore compiles: there some calls mean another thing than in its eager mode.

What it compiles is a function of `jit`, one under `vmap`, and in graph mode every `construct` and every
function that `grad` and its kin take. Here such code may run op by op all the same, so that a trace alone
does not tell.
"""

import contextlib
import sys
import threading

from muster import _core


class _Marks(threading.local):
    depth = 0


_marks = _Marks()


class _Marked:
    """A block whose code is compiled: of one object, since each step enters one."""

    def __enter__(self) -> None:
        _marks.depth += 1

    def __exit__(self, *error: object) -> None:
        _marks.depth -= 1


_marked, _unmarked = _Marked(), contextlib.nullcontext()


def marked():
    """What runs in this block is compiled."""
    return _marked


def marked_in_graph_mode():
    """A block that is compiled in graph mode."""
    return _unmarked if _core._is_in_eager_mode() else _marked


def is_compiled() -> bool:
    """Whether MindSpore would compile the code that calls this."""
    if _marks.depth:
        return True
    if _core._is_in_eager_mode():
        return False
    return _core._is_tracing() or _is_in_construct()


def _is_in_construct() -> bool:
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "construct":
        frame = frame.f_back
    return frame is not None
