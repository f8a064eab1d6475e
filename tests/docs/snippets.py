"""The blocks of code in a page of Markdown, and what its author says about each.

A block runs as a reader would run it (test_page_blocks.py). What a page may say:

- "`name.py`:" as the last words before a block: the block is the contents of that file.
- <!-- snippet: not run: REASON --> it needs what no test machine has.
- <!-- snippet: run by FILE --> that test runs it.
- <!-- snippet: stand-in NAME --> it runs with a program NAME that reads its input and does nothing.
- <!-- snippet: needs NAME --> it runs where that program is installed.
- <!-- snippet: at once --> its lines are typed on hosts of their own, at the same time.
- <!-- snippet: ends with N --> its exit code is N.
- <!-- snippet: setup COMMANDS --> typed before the blocks below; the page's own words tell the reader to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("sh", "console", "python", "cpp", "cmake", "toml", "json", "dockerfile", "text")
FENCE = re.compile(r"^ *```(.*)$")
MARK = re.compile(r"<!-- snippet: (.*?) *-->", re.DOTALL)
FILE = re.compile(r"`([\w.-][\w./-]*)`:$")  # below the reader's folder


@dataclass
class Block:
    page: str  # below the root
    line: int
    language: str
    text: str
    file: str = ""
    marks: list[str] = field(default_factory=list)

    def marked(self, name: str) -> str | None:
        """What the mark says behind its name; None: there is none."""
        found = (re.fullmatch(rf"{name}(?:$|:? (.*))", mark, re.DOTALL) for mark in self.marks)
        return next((match[1] or "" for match in found if match), None)

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def problems_in(page: str, text: str) -> Iterator[str]:
    """Code that the parser would miss, or cannot know how to run."""
    inside, before = False, ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence := FENCE.match(line):
            if not inside and fence[1] not in LANGUAGES:
                yield f"{page}:{number}: a block of '{fence[1]}': one of {', '.join(LANGUAGES)} is wanted"
            inside = not inside
        elif not inside and line.startswith("    ") and before == "":
            yield f"{page}:{number}: code that is only indented: put it between fences, with its language"
        before = line.strip() if not inside else "code"


def blocks_in(page: str, text: str) -> list[Block]:
    """All blocks, and a block of language "setup" for each such mark."""
    found: list[Block] = []
    prose: list[str] = []  # since the last block
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if not (fence := FENCE.match(line)):
            prose.append(line)
            continue
        code = []
        for _, inner in lines:
            if FENCE.match(inner):
                break
            code.append(inner)
        said = "\n".join(prose)
        marks = MARK.findall(said)
        setup = [mark.removeprefix("setup").strip() for mark in marks if mark.startswith("setup")]
        found += [Block(page, number, "setup", command + "\n") for command in setup]
        named = FILE.search(MARK.sub("", said).rstrip())
        rest = [mark for mark in marks if not mark.startswith("setup")]
        found.append(
            Block(
                page, number, fence[1], "".join(f"{each}\n" for each in code), named[1] if named else "", rest
            )
        )
        prose = []
    return found


def page_blocks(page: str) -> list[Block]:
    return blocks_in(page, (ROOT / page).read_text())


def pages() -> list[str]:
    folders = (ROOT / "docs/guide", ROOT / "docs/formats")
    found = [file for folder in folders for file in sorted(folder.glob("*.md"))]
    return ["README.md", *(file.relative_to(ROOT).as_posix() for file in found)]
