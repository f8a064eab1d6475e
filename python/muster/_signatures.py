"""inspect.signature of the library's classes and functions, from the text that their stubs are made of."""

import types

from muster import _core


def _default(text: str, defaults: tuple):
    """Of the text behind '=': '\\3' is the fourth of the defaults."""
    import ast

    if text.startswith("\\"):
        return defaults[int(text[1:])]
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def _parts(text: str) -> list[str]:
    """What stands between the brackets of a signature, by its outer commas."""
    parts, depth = [""], 0
    end = text.rindex(")", 0, text.rindex("->") if "->" in text else len(text))
    for character in text[text.index("(") + 1 : end]:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def parsed(text: str, defaults: tuple, skips_first: bool):
    """The inspect.Signature of 'def f(self, a: int, b: object = \\0) -> None'."""
    from inspect import Parameter, Signature

    made, kind = [], Parameter.POSITIONAL_OR_KEYWORD
    for part in _parts(text)[skips_first:]:
        head, _, default = part.partition("=")
        name = head.partition(":")[0].strip()
        if name == "/":
            made = [each.replace(kind=Parameter.POSITIONAL_ONLY) for each in made]
        elif name == "*":
            kind = Parameter.KEYWORD_ONLY
        elif name.startswith("**"):
            made.append(Parameter(name[2:], Parameter.VAR_KEYWORD))
        elif name.startswith("*"):
            made.append(Parameter(name[1:], Parameter.VAR_POSITIONAL))
            kind = Parameter.KEYWORD_ONLY
        else:
            value = _default(default.strip(), defaults or ()) if default else Parameter.empty
            made.append(Parameter(name, kind, default=value))
    return Signature(made)


class OfClass:
    """A class's own `__signature__`: what its __init__ takes; of a cell, what its construct takes."""

    def __get__(self, instance, owner):
        import inspect

        if instance is not None:
            if isinstance(getattr(owner, "construct", None), types.FunctionType):
                return inspect.signature(instance.construct)
            raise AttributeError("__signature__")
        init = owner.__init__
        while hasattr(init, "__wrapped__"):
            init = init.__wrapped__
        if isinstance(init, types.FunctionType):
            signature = inspect.signature(init)
            return signature.replace(parameters=tuple(signature.parameters.values())[1:])
        if not hasattr(init, "__nb_signature__"):
            raise AttributeError("__signature__")
        text, _, defaults = init.__nb_signature__[0]
        return parsed(text, defaults, True)


for _kind in list(vars(_core).values()):
    if isinstance(_kind, type) and _kind.__bases__ == (object,) and _kind.__module__ == _core.__name__:
        _kind.__signature__ = OfClass()


class _Described:
    """What inspect.signature finds behind a function of Python's that calls one of the library's."""

    def __init__(self, function):
        self._function = function

    @property
    def __signature__(self):
        text, _, defaults = self._function.__nb_signature__[0]
        return parsed(text, defaults, False)

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)


def python_function(function):
    """A function of Python's that does the same, so that inspect.signature takes it."""

    def call(*args, **kwargs):
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__nb_signature__[0][1]
    call.__wrapped__ = _Described(function)
    return call
