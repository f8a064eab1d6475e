"""What MindSpore has, what of it Muster has, and what is another than MindSpore's."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import re
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent


@functools.cache
def names() -> dict[str, frozenset[str]]:
    """MindSpore's public names, by module and, of a few classes, by class."""
    lines = (_FOLDER / "names.txt").read_text().splitlines()
    return {owner: frozenset(rest.split()) for owner, _, rest in (line.partition(" ") for line in lines)}


def _table(file: str) -> dict[str, str]:
    lines = (_FOLDER / file).read_text().splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


@functools.cache
def differences() -> dict[str, str]:
    """What a name does otherwise than MindSpore's, in a sentence."""
    return _table("differences.txt")


@functools.cache
def ways() -> dict[str, str]:
    """What to write in place of a name, where no other name tells it."""
    return _table("ways.txt")


def value_of(path: str) -> object:
    """What stands at a dotted path of Muster's `mindspore`. Raises AttributeError where nothing does."""
    module, _, name = path.rpartition(".")
    if not module:
        return importlib.import_module(path)
    owner = value_of(module)
    try:
        return getattr(owner, name)
    except AttributeError:
        if not inspect.ismodule(owner):
            raise
    try:
        return importlib.import_module(path)
    except ImportError as error:
        raise AttributeError(str(error)) from None


@functools.cache
def is_provided(path: str) -> bool:
    try:
        value = value_of(path)
    except (AttributeError, NotImplementedError):
        return False
    return _refused_way(value) is None


def _refused_way(value: object) -> str | None:
    """The way out that stands at a name which can be imported and raises at its use; None for what works."""
    table = sys.modules.get("mindspore._refused")  # loaded where such a name was asked for
    return None if table is None else table.way_out(value)


@functools.cache
def first_missing(path: str) -> str | None:
    """The shortest beginning of a path that Muster has not."""
    parts = path.split(".")
    return next(
        (head for n in range(1, len(parts) + 1) if not is_provided(head := ".".join(parts[:n]))), None
    )


def is_mindspores(path: str) -> bool | None:
    """Whether MindSpore 2.7.0 has the name; None where the list does not say."""
    owner, _, name = path.rpartition(".")
    known = names().get(owner)
    return None if known is None else name in known or path in names()


@functools.cache
def parameters(path: str) -> frozenset[str] | None:
    """The keywords that a function or class takes; None where it takes any, or does not tell."""
    try:
        taken = inspect.signature(value_of(path)).parameters.values()
    except (TypeError, ValueError, AttributeError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in taken) or not taken:
        return None
    return frozenset(each.name for each in taken)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def way_out(path: str) -> str:
    """What to write in place of a name that is missing."""
    if path in ways():
        return ways()[path]
    try:
        if (way := _refused_way(value_of(path))) is not None:
            return way
    except (AttributeError, NotImplementedError):
        pass
    owner, _, name = path.rpartition(".")
    for module in ("mindspore.ops", "mindspore.nn", "mindspore"):
        for other in (name, _snake(name)):
            if f"{module}.{other}" != path and is_provided(f"{module}.{other}"):
                return f"{module}.{other} is there"
    near = difflib.get_close_matches(name, _provided_in(owner), n=2, cutoff=0.75)
    if near:
        return f"near it {'are' if len(near) > 1 else 'is'} " + " and ".join(near)
    return "write it with names that are there (docs/guide/mindspore.md)"


def _provided_in(owner: str) -> list[str]:
    try:
        value = value_of(owner)
    except AttributeError:
        return []
    held = {*getattr(value, "__all__", ()), *dir(value)}
    return sorted(held & names().get(owner, frozenset()))
