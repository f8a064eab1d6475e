"""mindspore.dataset.debug: hooks that see what the operations of map() take and give.

In debug mode (`config.set_debug_mode(True, debug_hook_list=[...])`) each of the hooks stands before the first
operation of a map() and behind each one; a hook may also stand among the operations itself.
"""

import abc
import copy

from mindspore.dataset import config

__all__ = ["DebugHook", "PrintDataHook", "PrintMetaDataHook"]


class DebugHook(abc.ABC):
    """Base class: define `compute`, which gets the columns as one tuple. What it gives counts for nothing."""

    def __init__(self, prev_op_name=None):
        self.prev_op_name = prev_op_name
        self.is_first_op = None

    def __call__(self, *args):
        if self.prev_op_name:
            side = "INPUT" if self.is_first_op else "OUTPUT"
            print(
                f"[Dataset debugger] Print the [{side}] of the operation [{self.prev_op_name}].", flush=True
            )
        self.compute(args)
        return args if len(args) > 1 else args[0]

    @abc.abstractmethod
    def compute(self, *args):
        """Looks at the columns: `args[0]` is the tuple of them."""

    def set_previous_op_name(self, prev_op_name):
        """Names the operation that the hook stands beside."""
        self.prev_op_name = prev_op_name

    def set_is_first(self, is_first_op):
        """Whether the hook stands before its operation."""
        self.is_first_op = is_first_op


class PrintMetaDataHook(DebugHook):
    """Prints types and shapes."""

    def compute(self, *args):
        """Prints a line for each column."""
        for number, column in enumerate(args[0]):
            print(f"Column {number}. {_type_and_shape(column)}", flush=True)


class PrintDataHook(DebugHook):
    """Prints the values."""

    def compute(self, *args):
        """Prints a line for each column."""
        import numpy

        for number, column in enumerate(args[0]):
            data = numpy.asarray(column) if hasattr(column, "getbands") else column
            print(f"Column {number}. The data is [{data}].", flush=True)


def _type_and_shape(column):
    if hasattr(column, "dtype"):
        return f"The dtype is [{column.dtype}]. The shape is [{column.shape}]."
    if hasattr(column, "getbands"):  # of PIL
        return f"The type is [{type(column)}]. The shape is [{column.size}]."
    return f"The type is [{type(column)}]. The size is [{len(column)}]." if hasattr(column, "__len__") else ""


def _name_of(operation):
    kind = type(operation).__name__
    return operation.__name__ if kind in ("function", "method", "builtin_function_or_method") else kind


def _beside(operation, is_first=False):
    """The hooks of the mode, each a copy of its own."""
    made = []
    for hook in config._debug_hooks:
        mine = copy.deepcopy(hook)
        mine.set_previous_op_name(_name_of(operation))
        mine.set_is_first(is_first)
        made.append(mine)
    return made


def _with_hooks(operations):
    """The operations of a map() with the hooks of debug mode among them."""
    made = _beside(operations[0], True)
    for operation in operations:
        made += [operation, *_beside(operation)]
    return made
