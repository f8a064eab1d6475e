"""mindspore.multiprocessing: Python's module, whose queues and pipes take tensors: they are pickled."""

import multiprocessing as _python
from multiprocessing import *  # noqa: F403

__all__ = list(_python.__all__)


def __getattr__(name: str):
    return getattr(_python, name)
