"""What operations were made with: for pipelines that are written down."""

from types import FunctionType

from muster import _signatures


class Recorded:
    """An operation or a source that remembers the arguments of its constructor."""

    __signature__ = _signatures.OfClass()  # of __init__, not of __new__

    def __new__(cls, *args, **named):
        made = super().__new__(cls)
        made._call = args, named
        return made


def arguments(made) -> dict:
    """The arguments of a recorded constructor, by name, with its defaults."""
    import inspect  # takes as long to load as a script's first hundred steps

    args, named = made._call
    if not isinstance(type(made).__init__, FunctionType):  # it takes none
        return {}
    bound = inspect.signature(type(made).__init__).bind(made, *args, **named)
    bound.apply_defaults()
    return dict(list(bound.arguments.items())[1:])


def parameters(made: type) -> dict:
    """The parameters of a class's constructor, by name."""
    import inspect

    return inspect.signature(made.__init__).parameters if isinstance(made.__init__, FunctionType) else {}


def is_ours(made) -> bool:
    """Whether its class is one of these packages: a class of one's own is code, which no file holds."""
    return type(made).__module__.startswith("mindspore.dataset") and hasattr(made, "_call")
