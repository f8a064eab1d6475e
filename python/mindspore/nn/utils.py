"""mindspore.nn.utils: making networks whose parameters a checkpoint will set."""

import contextlib


@contextlib.contextmanager
def no_init_parameters():
    """Parameters that are made within begin as always: their first values are cheap, and are there if a
    checkpoint lacks one."""
    yield


__all__ = ["no_init_parameters"]
__path__: list = []  # MindSpore has it as a package: more paths to these names
