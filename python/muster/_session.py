"""What Python adds to the session of a process: what it runs, and how it ends by an uncaught exception."""

import atexit
import os
import sys

from muster import _core

_ALONE = (
    "this process of a job (MS_ROLE is set) has ended and never called muster.init(): it was no part of the "
    "job, and ran its script by itself. Call muster.init() (mindspore.communication.init()) before the work; "
    "to run a script without a job, start it without 'muster run' and unset MS_ROLE"
)
_SPAWNED = (
    "muster.init() in a process that multiprocessing has started, which imports the script anew: the process "
    "that started it is in the job already. Put muster.init() and all that is the worker's own behind "
    "`if __name__ == '__main__':`, or start such processes by the method 'fork'"
)


def init() -> None:
    _refuse_imported_anew()
    atexit.unregister(_tell_of_no_job)
    _tell_of_uncaught_exceptions()
    _core._note_script(_script(), sys.version.split()[0])
    try:
        _core.init()
    except Exception as error:
        error.exit_code = _core._init_exit_code()
        raise


init.__doc__ = _core.init.__doc__


def _refuse_imported_anew() -> None:
    """A process of the methods 'spawn' and 'forkserver' that runs the script up to here as its parent did."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is None or not getattr(processes.current_process(), "_inheriting", False):
        return
    if "MS_ROLE" in os.environ:
        raise RuntimeError(_SPAWNED)


def _tell_of_no_job() -> None:
    """At the end of a process that a job has started: its status says nothing of the job."""
    processes = sys.modules.get("multiprocessing.process")
    is_child = processes is not None and processes.parent_process() is not None
    has_failed = hasattr(sys, "last_value")
    if is_child or has_failed or "MUSTER_EXPLAIN" in os.environ:
        return
    is_strict = os.environ.get("MUSTER_STRICT") == "1"
    print(f"muster {'error' if is_strict else 'warning'}: {_ALONE}", file=sys.stderr, flush=True)
    if is_strict:
        sys.stdout.flush()
        os._exit(1)  # an exit handler has no other way to a status


if "MS_ROLE" in os.environ:
    atexit.register(_tell_of_no_job)


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
