"""For all Python tests: Ctrl-C reaches the processes that they start.

A shell that runs something in the background has it ignore SIGINT, and children inherit that.
"""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path, config):
    """Files that import `mindspore` change the process of the others: collected where they are named."""
    is_named = any("with_mindspore" in argument for argument in config.args)
    return True if collection_path.name == "with_mindspore" and not is_named else None
