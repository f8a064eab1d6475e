"""Loads the compiled module so that OpenMP threads of workers on one host do not spin while they wait.

libgomp reads OMP_WAIT_POLICY once, when it is loaded with the module. The user's own choice wins, and the
variable is gone again afterwards: what this process starts decides for itself.
"""

import os

_VARIABLE = "OMP_WAIT_POLICY"


def _load() -> None:
    shares_host = os.environ.get("MS_WORKER_NUM", "1").strip() not in ("", "0", "1")
    decides = shares_host and _VARIABLE not in os.environ
    if decides:
        os.environ[_VARIABLE] = "passive"
    try:
        import muster._core  # noqa: F401 - for libgomp, which it loads
    finally:
        if decides:
            del os.environ[_VARIABLE]


_load()
