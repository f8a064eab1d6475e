"""For all Python tests: what the processes that they start inherit.

Ctrl-C reaches them: a shell that runs something in the background has it ignore SIGINT. And threads of
numpy's OpenBLAS sleep at once: else each spins for 50 ms where numpy is imported, a fifth of what the tests
take.
"""

import os
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def pytest_ignore_collect(collection_path, config):
    """Files that import `mindspore` change the process of the others: collected where they are named."""
    is_named = any("with_mindspore" in argument for argument in config.args)
    return True if collection_path.name == "with_mindspore" and not is_named else None
