"""Commands that pages name in passing have flags that the program knows."""

from __future__ import annotations

import re
import subprocess
from functools import cache

import pytest
from reader import BUILD
from snippets import ROOT, pages

COMMAND = re.compile(r"`(?:[A-Z_]+=\S+ )*(?:srun (?:-\S+ )*)?muster ([^`\n]+)`")

HIDDEN = {"agent"}  # what the program starts itself


@cache
def help_of(*words: str) -> str:
    program = BUILD / "apps/muster/muster"
    return subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True).stdout


def subcommands(help_text: str) -> list[str]:
    return re.findall(r"^  ([a-z][\w-]*)  ", help_text.partition("Subcommands:\n")[2], re.MULTILINE)


def unknown_in(command: str) -> list[str]:
    """The subcommand, or flags up to the script, that the program does not have."""
    words = re.split(r"\.py\b|\s#|\\?\|", command)[0].split()
    path: list[str] = []
    while len(path) < len(words) and words[len(path)] in subcommands(help_of(*path)):
        path.append(words[len(path)])
    if not path and not words[0].startswith("-") and words[0] not in HIDDEN:
        return [words[0]]
    flags = [word.partition("=")[0] for word in words if re.fullmatch(r"--[a-z][a-z-]*(=.*)?", word)]
    return [flag for flag in flags if not re.search(rf"{flag}(?![\w-])", help_of(*path))]


@pytest.mark.parametrize("page", pages())
def test_commands_in_the_text_of_a_page_exist_with_their_flags(page):
    commands = COMMAND.findall((ROOT / page).read_text())
    assert {command: unknown for command in commands if (unknown := unknown_in(command))} == {}


def test_flags_that_no_command_has_are_found():
    assert unknown_in("run -n 4 --max-restarts 3 train.py --epochs 10") == []
    assert unknown_in("checkpoint rm --yes recovery") == []
    assert unknown_in("run --max-restart 3 train.py") == ["--max-restart"]
    assert unknown_in("rnu -n 4 train.py") == ["rnu"]
