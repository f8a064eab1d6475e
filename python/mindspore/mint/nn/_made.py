"""How cells are made that call a function with settings of theirs."""

import inspect

from mindspore.nn import Cell

NEEDED = inspect.Parameter.empty


def cell(name, function, words, module, **settings):
    """A class of cells that call `function` with settings, which are attributes; NEEDED: no default."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(each, kind, default=default) for each, default in settings.items()]
    )

    def set_up(self, *args, **kwargs):
        super(made, self).__init__()
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for each, value in given.arguments.items():
            setattr(self, each, value)

    def construct(self, *inputs, **named):
        return function(*inputs, **named, **{each: getattr(self, each) for each in settings})

    members = {
        "__doc__": words,
        "__init__": set_up,
        "__module__": module,
        "__signature__": signature,
        "construct": construct,
    }
    made = type(name, (Cell,), members)
    return made
