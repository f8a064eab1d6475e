#!/usr/bin/env python3
"""Writes docs/reference from the docstrings of the Python package, one page a module.

.venv/bin/python tools/make_reference.py           writes the pages
.venv/bin/python tools/make_reference.py --check   ends with 1 and names what is out of date or has no words
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
MODULES = (
    "muster",
    "muster.nn",
    "muster.amp",
    "muster.ops",
    "muster.initializers",
    "muster.dataset",
    "muster.dataset.vision",
    "muster.dataset.transforms",
    "muster.train",
)
# Of package `mindspore`: other paths to names that are listed elsewhere; they are only counted.
COMPAT_OTHER_PATHS = (
    "mindspore.common",
    "mindspore.communication.management",
    "mindspore.ops.function",
    "mindspore.ops.functional",
    "mindspore.ops.operations",
    "mindspore.ops.composite",
    "mindspore.train.callback",
    "mindspore.train.serialization",
)


class Page:
    """The reference of one module, as Markdown. `unexplained` lists names without a docstring."""

    def __init__(self, module: ModuleType) -> None:
        self.name = module.__name__
        self.unexplained: list[str] = []
        self.lines = [f"# {self.name}", "", _words(module), ""]
        for name in sorted(module.__all__, key=str.lower):
            self._add(name, getattr(module, name))

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.md"

    def text(self) -> str:
        return "\n".join(self.lines).rstrip() + "\n"

    def _add(self, name: str, value: object) -> None:
        if inspect.ismodule(value):
            return
        self.lines += [f"## {name}", ""]
        if not (inspect.isclass(value) or callable(value)):
            self.lines += [f"A constant: `{value!r}`.", ""]
            return
        self._add_signatures(value.__init__ if inspect.isclass(value) else value, name)
        self._add_words(name, value)
        if inspect.isclass(value):
            self._add_words_of_init(value)
            self._add_members(name, value)

    def _add_signatures(self, function: object, name: str) -> None:
        signatures = list(_signatures(function, name))
        if signatures:
            self.lines += ["```python", *signatures, "```", ""]

    def _add_words(self, name: str, value: object) -> None:
        words = _words(value)
        if not words:
            self.unexplained.append(f"{self.name}.{name}")
        self.lines += [words, ""]

    def _add_words_of_init(self, cls: type) -> None:
        words = _words(cls.__init__)
        if words and words != _words(object.__init__):
            self.lines += [words, ""]

    def _add_members(self, name: str, cls: type) -> None:
        """Methods and properties of the class's own; what it inherits or overrides is said at its base."""
        rows, bare = [], []
        for member, value in sorted(vars(cls).items()):
            if member.startswith("_") or any(hasattr(base, member) for base in cls.__mro__[1:]):
                continue
            if isinstance(value, staticmethod | classmethod):
                value = value.__func__
            if not (callable(value) or isinstance(value, property)):
                continue
            words = " ".join(_words(value).split())
            if words:
                rows.append(f"- `{_member_signature(member, value)}`: {words}")
            else:
                bare.append(f"`{member}`")
        if bare:
            rows.append(f"- {', '.join(bare)}")
        if rows:
            self.lines += [*rows, ""]


def _words(value: object) -> str:
    """The docstring without the signatures that nanobind puts in front."""
    described = getattr(value, "__nb_signature__", None)
    if described and not isinstance(described, str):
        texts = [text for _, text, _ in described if text]
        return "\n\n".join(dict.fromkeys(texts))
    if isinstance(value, property) and getattr(value.fget, "__nb_signature__", None):
        return _words(value.fget)
    return inspect.cleandoc(getattr(value, "__doc__", None) or "")


def _signatures(function: object, name: str) -> Iterator[str]:
    described = getattr(function, "__nb_signature__", None)
    if isinstance(described, str):  # of an op's row: the stub of the function
        yield _plain(described.partition(":\n")[0], None, name)
        return
    if described:
        for signature, _, defaults in described:
            yield _plain(signature, defaults, name)
        return
    try:
        signature = str(inspect.signature(function))
    except (TypeError, ValueError):
        return
    yield name + signature.replace("(self, ", "(").replace("(self)", "()")


def _plain(signature: str, defaults: tuple | None, name: str) -> str:
    """'def __init__(self, x: int = \\0) -> None' as 'Name(x: int = 3)'."""
    text = re.sub(r"^def \w+", name, signature)
    text = text.replace("(self, ", "(").replace("(self)", "()").replace("muster._core.", "")
    for index, default in reversed(list(enumerate(defaults or ()))):
        text = text.replace(f"\\{index}", repr(default))
    return text.removesuffix(" -> None") if name[0].isupper() else text


def _member_signature(name: str, value: object) -> str:
    if isinstance(value, property):
        return name
    return next(_signatures(value, name), f"{name}(...)")


def pages() -> list[Page]:
    made = []
    for name in MODULES:
        try:
            made.append(Page(importlib.import_module(name)))
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    return made


def _listed(names: set[str], title: str) -> list[str]:
    listed = ", ".join(f"`{name}`" for name in sorted(names, key=lambda name: (name.lower(), name)))
    return ["", *textwrap.wrap(f"{title}: {listed}", 118)] if names else []


def compat_text() -> str:
    """The page of package `mindspore`: which of MindSpore's names it has."""
    program = Path(sys.executable).parent / "muster"
    folder = subprocess.run([program, "compat-path"], capture_output=True, text=True, check=True).stdout
    sys.path.insert(0, folder.strip())
    provided = importlib.import_module("muster._check.provided")
    rows, sections = [], []
    for owner, names in provided.names().items():
        there = {name for name in names if provided.is_provided(f"{owner}.{name}")}
        rows.append(f"| `{owner}` | {len(there)} | {len(names)} |")
        if owner not in COMPAT_OTHER_PATHS:
            sections += ["", f"## {owner}", *_listed(there, "Provided")]
            sections += _listed(names - there, "Not provided")
    lines = [
        "# mindspore",
        "",
        "Every public name of MindSpore 2.7.0, and whether Muster provides it. One that it does not is an",
        "error that says so; [the guide](../guide/mindspore.md) tells what differs.",
        "",
        "| package or class | provided | of |",
        "| --- | --- | --- |",
        *rows,
        *sections,
    ]
    return "\n".join(lines) + "\n"


def index(made: list[Page]) -> str:
    lines = [
        "# Python reference",
        "",
        "Every public name, from the docstrings; `tools/make_reference.py` writes it.",
        "",
    ]
    lines += [f"- [{page.name}]({page.path.name})" for page in made]
    lines += ["- [mindspore](mindspore.md): the names for scripts written for MindSpore"]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing; say what is out of date")
    check = parser.parse_args().check
    made = pages()
    texts = {page.path: page.text() for page in made}
    texts |= {FOLDER / "README.md": index(made), FOLDER / "mindspore.md": compat_text()}
    problems = [f"{name} has no docstring" for page in made for name in page.unexplained]
    for path, text in texts.items():
        if check and (not path.exists() or path.read_text() != text):
            problems.append(f"{path} is out of date: run tools/make_reference.py")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
