"""What Python adds to the session of a process: how it ends by an exception that nobody catches."""

import sys

from muster import _core


def init() -> None:
    _tell_of_uncaught_exceptions()
    try:
        _core.init()
    except Exception as error:
        error.exit_code = _core._init_exit_code()
        raise


init.__doc__ = _core.init.__doc__


def _tell_of_uncaught_exceptions() -> None:
    """The other processes hear why, and the exit code is the failed job's where the job failed first."""
    show = sys.excepthook
    if getattr(show, "tells_the_job", False):
        return

    def note_and_show(kind, value, trace):
        _core._note_reason(f"{kind.__name__}: {value}")
        show(kind, value, trace)
        exit_code = getattr(value, "exit_code", 0) or _core._job_exit_code()
        if exit_code:
            raise SystemExit(exit_code)  # Python's own way to another status than 1

    note_and_show.tells_the_job = True
    sys.excepthook = note_and_show
