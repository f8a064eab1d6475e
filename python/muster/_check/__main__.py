"""python -m muster._check [--json] PATH ...: what `muster compat check` runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from muster._check import provided, reader

EXIT_MISSING, EXIT_USAGE = 1, 2
HELP = """\
Reads scripts, and all in folders, without running them, and says which names of MindSpore in them Muster has
not, and which mean something else, with the line and the way out. Ends with 0 when nothing is missing, with 1
when something is, with 2 when a file cannot be read."""


class Finding(NamedTuple):
    """`kind`: missing, argument (a keyword that is not taken), unknown (to MindSpore 2.7 too) or differs."""

    file: str
    line: int
    column: int
    kind: str
    name: str
    way: str

    def __str__(self) -> str:
        if self.kind == "differs":
            return f"{self.file}:{self.line}: {self.name} differs: {self.way}"
        if self.kind == "unknown":
            return f"{self.file}:{self.line}: {self.name} is no name of MindSpore 2.7: {self.way}"
        if self.kind == "argument":
            return f"{self.file}:{self.line}: {self.name} is not taken: {self.way}"
        return f"{self.file}:{self.line}: {self.name} is missing: {self.way}"


def _of_use(file: str, use: reader.Use) -> Iterator[Finding]:
    place = (file, use.line, use.column)
    missing = provided.first_missing(use.path)
    if missing:
        # Of an instance only members that MindSpore knows are its: others have other owners.
        if not (
            use.is_optional
            or (use.path.startswith(reader.TENSOR + ".") and not provided.is_mindspores(missing))
        ):
            kind = "unknown" if provided.is_mindspores(missing) is False else "missing"
            yield Finding(*place, kind, missing, provided.way_out(missing))
        return
    taken = provided.parameters(use.path)
    for keyword in use.keywords:
        if taken is not None and keyword not in taken:
            yield Finding(
                *place, "argument", f"{use.path}({keyword}=)", f"it takes {', '.join(sorted(taken))}"
            )
    for name in (use.path, *(f"{use.path}({keyword}=)" for keyword in use.keywords)):
        if sentence := provided.differences().get(name):
            yield Finding(*place, "differs", name, sentence)


def findings(file: str, text: str) -> list[Finding]:
    """What to mend in a script, by line; what is missing already where it is imported is said there alone."""
    found: dict[tuple[str, str, int], Finding] = {}
    imported: set[str] = set()
    for use in reader.uses(text, file):
        for each in _of_use(file, use):
            if each.name in imported and each.kind in ("missing", "unknown"):
                continue
            found.setdefault((each.kind, each.name, each.line), each)
            if use.is_import:
                imported.add(each.name)
    return list(found.values())


def scripts(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def check(paths: list[str]) -> tuple[list[Finding], list[str], int]:
    """What was found, what could not be read, and how many files were."""
    found: list[Finding] = []
    unread, count = [], 0
    for path in scripts(paths):
        try:
            found += findings(str(path), _text_of(path))
            count += 1
        except OSError as error:
            unread.append(f"{path}: {error.strerror}")
        except (SyntaxError, ValueError) as error:
            unread.append(f"{path}: {error}")
    if not count and not unread:
        unread.append(f"{', '.join(paths)}: there is no .py file in it")
    return found, unread, count


def _text_of(path: Path) -> str:
    if path.suffix == ".ipynb":  # many of them are Python, too: one literal that uses nothing
        raise ValueError(f"a notebook: `jupyter nbconvert --to script {path}` makes a script of it to check")
    return path.read_text(encoding="utf-8")


def _summary(found: list[Finding], count: int) -> str:
    missing = len({each.name for each in found if each.kind != "differs"})
    differing = len({each.name for each in found if each.kind == "differs"})
    if not found:
        return f"{count} file{'s' * (count != 1)}: every name of MindSpore in them is there"
    return f"{count} file{'s' * (count != 1)}: {missing} missing, {differing} that differ"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "muster compat check", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a script, or a folder: every .py file below it"
    )
    parser.add_argument(
        "--json", action="store_true", help="a list of objects: file, line, column, kind, name, way"
    )
    told = parser.parse_args(arguments)
    found, unread, count = check(told.paths)
    if told.json:
        print(json.dumps([each._asdict() for each in found], indent=2))
    else:
        for line in [*map(str, found), *([_summary(found, count)] if count else [])]:
            print(line)
    for words in unread:
        print(f"muster compat check: {words}", file=sys.stderr)
    if unread:
        return EXIT_USAGE
    return EXIT_MISSING if any(each.kind != "differs" for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
