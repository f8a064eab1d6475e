"""Operations of Dataset.map: as the library takes them, and as a pass in Python does."""

import functools
import sys

from mindspore.dataset import config
from muster import _core, _draws


class Function:
    """A Python function of map() as the library calls it: its values are arrays that tensors hold."""

    def __init__(self, function, whole=False, text=_draws.OF_MAP):
        self._function, self._whole = function if whole else _draws.told(function, text), whole
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *values):
        from mindspore.dataset import _iterators, _rows

        try:
            answer = self._function(*values)
        except Exception as error:
            raise _iterators.of_user(error) from error
        if isinstance(answer, tuple | list) and (self._whole or isinstance(answer, tuple)):
            return tuple(_rows.held(each) for each in answer)
        return _rows.held(answer)

    def _begin_row(self, number):
        from mindspore.dataset import _random

        _random.begin(number)


class Seeded:
    """A built-in operation on one row of a pass in Python: what it draws depends on the row alone."""

    def __init__(self, operation):
        self._operation = operation

    def __call__(self, *values):
        import numpy

        from mindspore.dataset import _random

        gives_objects = getattr(self._operation, "_gives_objects", False)
        if (
            not gives_objects
            and len(values) == 1
            and type(values[0]) is numpy.ndarray
            and values[0].dtype.kind not in "US"
        ):
            number = int(_random.generator().integers(1 << 62))
            return self._operation._apply_row(values[0], number)
        return self._operation(*values)


def flat_operations(operations):
    """The operations of a list, of Compose, or one alone."""
    given = operations if isinstance(operations, list | tuple) else [operations]
    flat = []
    for operation in given:
        parts = getattr(operation, "_parts", None)
        if parts is not None:
            flat += flat_operations(parts)
        elif isinstance(operation, list | tuple):
            flat += flat_operations(operation)
        elif not callable(operation):
            raise ValueError(
                "Parameter operations's element of method map should be a python function or class method "
                f"which should be callable, but got: {operation}."
            )
        else:
            flat.append(operation)
    if not flat:
        raise ValueError("map: there is no operation (operations should not be empty)")
    return flat


def with_hooks(operations):
    """The operations with the hooks of debug mode, and whether it is on."""
    debug = sys.modules.get("mindspore.dataset.debug")  # without it nobody has made a hook
    if debug is None:
        return operations, False
    if config.get_debug_mode():
        return debug._with_hooks(operations), True
    for operation in operations:
        if isinstance(operation, debug.DebugHook):
            raise ValueError(
                f"map: {type(operation).__name__} is a DebugHook: those need config.set_debug_mode(True)"
            )
    return operations, False


def in_rows(operations):
    return [Seeded(each) if isinstance(each, _core.Transform) else guarded(each) for each in operations]


def guarded(function, text=_draws.OF_MAP):
    """A function of a pass in Python; a job that recovers is told by `text` that it draws."""
    from mindspore.dataset import _iterators

    told = _draws.told(function, text)

    @functools.wraps(function, updated=())
    def call(*values):
        try:
            return told(*values)
        except Exception as error:
            raise _iterators.of_user(error) from error

    return call


def for_pipeline(operations):
    """The operations as the library takes them; pictures of PIL pass between them inside of one function."""
    if not any(getattr(each, "_gives_objects", False) for each in operations):
        return [each if isinstance(each, _core.Transform) else Function(each) for each in operations]
    calls = in_rows(operations)

    def composed(*values):
        from mindspore.dataset import _rows

        return _rows.apply(calls, values)

    composed.__name__ = "Compose"
    return [Function(composed, whole=True)]
