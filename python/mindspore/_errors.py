"""What an argument that does not fit raises while this package is imported."""

from muster import _core


class ArgumentError(ValueError, TypeError, RuntimeError):
    """An argument of an op, a cell or an optimizer does not fit.

    MindSpore says ValueError, TypeError or RuntimeError for such mistakes, by the place that finds them.
    Tracebacks and logs say ValueError, as they do without this package; what reads them finds it.
    """

    def __reduce__(self):
        return _again, self.args


class MissingFileError(FileNotFoundError, ValueError):
    """MindSpore says ValueError where a file to be read is not there, the library below FileNotFoundError."""


def _again(*words):
    """The error with these words, for another process: pickle finds the class by no name."""
    return ArgumentError(*words)


ArgumentError.__name__ = ArgumentError.__qualname__ = "ValueError"
ArgumentError.__module__ = "builtins"

_core._set_argument_error(ArgumentError)
