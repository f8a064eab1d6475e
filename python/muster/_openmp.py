"""Loads the compiled module so that OpenMP threads which wait do not spin for long.

libgomp's threads spin for about 20 ms at each wait unless told otherwise. On a core that another process
needs too, the thread that they wait for does not run meanwhile: beside a build a training step took three
times as long. libgomp reads the variables once, when it is loaded with the module. The user's own choice
wins, and the variable is gone again afterwards: what this process starts decides for itself.

Ctrl-C waits until the module is there: an exception in the middle of its load would be lost, and a process
that is interrupted as it starts would go on.
"""

import _signal  # all of `signal` but its enumerations, which cost a millisecond of every start
import os

# Workers that share a host share its cores: their threads sleep at once. Alone, less than a millisecond of
# spinning costs nothing and saves waking a thread for each of the short loops of a small net.
_SHARED = ("OMP_WAIT_POLICY", "passive")
_ALONE = ("GOMP_SPINCOUNT", "10000")


def _load() -> None:
    user_chose = any(name in os.environ for name, _ in (_SHARED, _ALONE))
    shares_host = os.environ.get("MS_WORKER_NUM", "1").strip() not in ("", "0", "1")
    name, value = _SHARED if shares_host else _ALONE
    if not user_chose:
        os.environ[name] = value
    unblocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGINT})
    try:
        import muster._core  # noqa: F401 - for libgomp, which it loads
    finally:
        if not user_chose:
            del os.environ[name]
        _signal.pthread_sigmask(_signal.SIG_SETMASK, unblocked)


_load()
