"""Finds words that docs/dev/glossary.md forbids, in names, comments and documents.

The glossary is the only list: the last column of its tables names the forbidden words, the first one the word
to use. A header of the library has to open with the noun that it is about. Prints file, line, the word and
its replacement; exits 1 if there is any.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sources import ROOT, walk

GLOSSARY = "docs/dev/glossary.md"
TEXT = {".cpp", ".h", ".inc", ".py", ".pyi", ".sh", ".cmake", ".txt", ".md", ".toml", ""}
# What speaks of the forbidden words themselves, keeps a diary, or is a program of somebody else's.
EXEMPT = (GLOSSARY, "docs/dev/progress.md", "tools/check_words.py", "tests/tools/test_check_words.py")
EXEMPT_FOLDERS = ("docs/dev/open/", "tests/seeds/", "tests/peers/", "benchmarks/peers/")
ENTRY = re.compile(r"`([^`]+)`(?: in ([\w./-]+))?")
RIDDLE = re.compile(r"// (?:Private[^:]*: )?((?:what|who|how|which|whether|where|when)\b.*)", re.IGNORECASE)


@dataclass
class Word:
    """A forbidden word, or words one after the other, and the terms to use instead."""

    text: str
    path: str  # where it is forbidden; "" is everywhere
    terms: list[str]

    def __post_init__(self) -> None:
        parts = [re.escape(part) for part in self.text.split()]
        # Of a name, a part ends where an underscore or a capital letter begins the next one.
        small = r"[_\s]+".join(parts) + r"(?:e?s)?(?![a-z])"
        camel = "".join(part[0].upper() + part[1:] for part in parts) + r"(?:e?s)?(?![a-z])"
        whole = rf"(?<!\w){re.escape(self.text)}(?!\w)"
        is_name = self.text != self.text.lower() or "_" in self.text
        self.pattern = re.compile(whole if is_name else rf"(?<![A-Za-z]){small}|(?<![A-Z]){camel}")

    def may_be_in(self, lower_text: str) -> bool:
        return all(part in lower_text for part in self.text.lower().split())


def glossary_words(text: str) -> list[Word]:
    words: dict[tuple[str, str], Word] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3 or set(cells[0]) <= {"-", " "}:
            continue
        for entry, path in ENTRY.findall(cells[2]):
            word = words.get((entry, path))
            if word:
                word.terms.append(cells[0])
            else:
                words[entry, path] = Word(entry, path, [cells[0]])
    return list(words.values())


def problems_in(path: str, text: str, words: list[Word]) -> Iterator[str]:
    lower = text.lower()
    for word in words:
        if not path.startswith(word.path) or not word.may_be_in(lower):
            continue
        for match in word.pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            terms = " or ".join(f"'{term}'" for term in word.terms)
            yield f"{path}:{line}: '{match.group()}': say {terms} ({GLOSSARY})"


def opening_problem(path: str, text: str) -> Iterator[str]:
    """Of a header whose first words do not say what it is about."""
    opening = RIDDLE.match(text)
    if opening and path.startswith("muster/") and path.endswith(".h"):
        yield f"{path}:1: '{opening[1]}': open with the noun that the header is about ({GLOSSARY})"


def problems(root: Path) -> list[str]:
    words = glossary_words((root / GLOSSARY).read_text())
    found = []
    for file in walk(root, TEXT):
        path = file.relative_to(root).as_posix()
        if path in EXEMPT or path.startswith(EXEMPT_FOLDERS):
            continue
        try:
            text = file.read_text()
            found += [*opening_problem(path, text), *problems_in(path, text, words)]
        except UnicodeDecodeError:
            continue  # data, not text
    return sorted(found)


def main() -> int:
    found = problems(ROOT)
    print("\n".join(found) if found else f"words: as {GLOSSARY} says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
