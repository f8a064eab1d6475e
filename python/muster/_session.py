"""What Python adds to the session of a process: an uncaught exception tells the other processes why."""

import sys

from muster import _core


def init() -> None:
    _core.init()
    _tell_of_uncaught_exceptions()


init.__doc__ = _core.init.__doc__


def _tell_of_uncaught_exceptions() -> None:
    show = sys.excepthook
    if getattr(show, "tells_the_job", False):
        return

    def note_and_show(kind, value, trace):
        _core._note_reason(f"{kind.__name__}: {value}")
        show(kind, value, trace)

    note_and_show.tells_the_job = True
    sys.excepthook = note_and_show
