"""Completes generated stubs for strict type checkers, in place: tools/complete_stub.py FILE...

What C++ does not say is said to be anything: `*args` becomes `*args: typing.Any`, `-> dict` becomes
`-> dict[str, typing.Any]`. A stub that is complete stays as it is.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ARGUMENTS = {
    "Callable": "[..., typing.Any]",
    "NDArray": "[typing.Any]",
    "PathLike": "[str]",
    "dict": "[str, typing.Any]",
    "list": "[typing.Any]",
    "tuple": "[typing.Any, ...]",
}

Edit = tuple[int, int, str]  # line from 1, column in bytes, what to insert


def bare_generics(annotation: ast.expr) -> Iterator[Edit]:
    """Generic types in an annotation that lack their arguments."""
    subscripted = {id(node.value) for node in ast.walk(annotation) if isinstance(node, ast.Subscript)}
    for node in ast.walk(annotation):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in ARGUMENTS and id(node) not in subscripted:
            yield node.end_lineno or 0, node.end_col_offset or 0, ARGUMENTS[name]


def edits_of(function: ast.FunctionDef, is_method: bool) -> Iterator[Edit]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    is_static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in function.decorator_list)
    if is_method and not is_static:
        named = named[1:]
    for argument in [*named, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]:
        if argument is None:
            continue
        if argument.annotation is None:
            yield argument.end_lineno or 0, argument.end_col_offset or 0, ": typing.Any"
        else:
            yield from bare_generics(argument.annotation)
    if function.returns is not None:
        yield from bare_generics(function.returns)


def edits_in(tree: ast.Module) -> Iterator[Edit]:
    methods = {id(node) for cls in ast.walk(tree) if isinstance(cls, ast.ClassDef) for node in cls.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from edits_of(node, id(node) in methods)
        elif isinstance(node, ast.AnnAssign):
            yield from bare_generics(node.annotation)


def completed(text: str) -> str:
    lines = [line.encode() for line in text.split("\n")]
    edits = sorted(set(edits_in(ast.parse(text))), reverse=True)
    for line, column, more in edits:
        before = lines[line - 1]
        lines[line - 1] = before[:column] + more.encode() + before[column:]
    made = b"\n".join(lines).decode()
    return made if not edits or "\nimport typing\n" in f"\n{made}" else f"import typing\n{made}"


def main() -> None:
    for name in sys.argv[1:]:
        file = Path(name)
        text = file.read_text()
        if (made := completed(text)) != text:
            file.write_text(made)


if __name__ == "__main__":
    main()
