"""Names that MindSpore has and Muster has not (yet): every use of one says so."""

import sys


def missing(module: str):
    """A module's __getattr__ that says what is not provided."""

    def get(name: str):
        if name.startswith("__"):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        raise AttributeError(sentence(f"{module}.{name}"))

    return get


def sentence(name: str) -> str:
    return f"{name} is not provided by Muster yet (names of MindSpore that are: docs/guide/python.md)"


def refuse(call: str, /, **arguments) -> None:
    """Raises unless each argument, given as (value, neutral ones...), is neutral: it changes nothing here."""
    for name, (value, *neutral) in arguments.items():
        if value not in neutral:
            raise NotImplementedError(sentence(f"{call}({name}={value!r})"))


class _MissingModules:
    """`from mindspore.nn import Conv2d` and `import mindspore.train` end here, after every other finder."""

    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if name.startswith("mindspore."):
            raise ImportError(sentence(name))
        return None


def refuse_missing_modules() -> None:
    if not any(finder is _MissingModules for finder in sys.meta_path):
        sys.meta_path.append(_MissingModules)
