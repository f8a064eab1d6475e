"""What Python adds to the session of a process: what it runs, and how it ends by an uncaught exception."""

import sys

from muster import _core


def init() -> None:
    _tell_of_uncaught_exceptions()
    _core._note_script(_script(), sys.version.split()[0])
    try:
        _core.init()
    except Exception as error:
        error.exit_code = _core._init_exit_code()
        raise


init.__doc__ = _core.init.__doc__


def _script() -> bytes:
    """What Python was started with, the file or the text after -c; nothing where that cannot be told."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    if path is not None:
        try:
            with open(path, "rb") as script:
                return script.read()
        except OSError:
            return b""
    after_flag = sys.orig_argv.index("-c") + 1 if "-c" in sys.orig_argv else len(sys.orig_argv)
    return "".join(sys.orig_argv[after_flag : after_flag + 1]).encode(errors="surrogateescape")


def _tell_of_uncaught_exceptions() -> None:
    """The other processes hear why, and the exit code is the failed job's where the job failed first."""
    show = sys.excepthook
    if getattr(show, "tells_the_job", False):
        return

    def note_and_show(kind, value, trace):
        _core._note_reason(f"{kind.__name__}: {value}".removesuffix(": "))
        show(kind, value, trace)
        if issubclass(kind, KeyboardInterrupt):
            _core._leave_interrupted()
        exit_code = getattr(value, "exit_code", 0) or _core._job_exit_code()
        if exit_code:
            raise SystemExit(exit_code)  # Python's own way to another status than 1

    note_and_show.tells_the_job = True
    sys.excepthook = note_and_show
