"""The reference of the C++ library as Markdown: one page a module, from the headers that programs include.

A header's comments are its documentation: what stands above a declaration is its text, and the declaration
itself, without what is private, is shown as it is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

# What a program is written with comes first.
ORDER = ("train", "nn", "data", "tensor", "graph", "collective", "checkpoint", "cluster", "base")
INCLUDE = re.compile(r'^#include "(muster/[^"]+)"', re.MULTILINE)
NAMESPACE = re.compile(r"^(inline )?namespace [\w:]+ \{")
TYPE = re.compile(r"\b(?:class|struct|union|enum(?: class)?)\s+(?:\[\[\w+\]\]\s+)?(\w+)[^;(]*\{", re.DOTALL)
ALIAS = re.compile(r"\busing (\w+) =")
FUNCTION = re.compile(r"(operator\s*[^\s(]+|~?\w+)\(")
VALUE = re.compile(r"(\w+)\s*(?:=|\{|;)")
TEMPLATE = re.compile(r"^\s*template\s*<[^<>]*(?:<[^<>]*>[^<>]*)*>")
PRIVATE = re.compile(r"^ (private|protected):$")


@dataclass
class Declaration:
    name: str
    words: str
    code: str


def reached_headers(folders: list[Path], first: str) -> list[str]:
    """`first` and what it includes, directly or not, of the headers below `folders`."""
    reached = [first]
    for name in reached:
        if file := find(folders, name):
            reached += [each for each in INCLUDE.findall(file.read_text()) if each not in reached]
    return reached


def find(folders: list[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def contract(text: str) -> str:
    """The comment with which a header opens."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[3:])
    return "\n".join(lines)


def declarations(text: str) -> Iterator[Declaration]:
    for words, code in groups(text):
        public = without_private(code)
        name = name_of(code)
        if name and not name.startswith("~") and "MUSTER_" not in name:
            yield Declaration(name, words, public)


def groups(text: str) -> Iterator[tuple[str, str]]:
    """Each declaration in a namespace: the comment above it, and its lines."""
    words: list[str] = []
    code: list[str] = []
    for line in text.splitlines():
        if not code and (NAMESPACE.match(line) or line.startswith(("#", "}"))):
            words = []
        elif not code and line.startswith("//"):
            words.append(line[3:])
        elif not code and not line.strip():
            words = []
        else:
            code.append(line)
            joined = "\n".join(code)
            if is_whole(joined):
                yield "\n".join(words), joined
                words, code = [], []


def is_whole(code: str) -> bool:
    bare = re.sub(r"//.*|\"(?:\\.|[^\"])*\"|'(?:\\.|[^'])'", "", code)
    closed = bare.count("{") == bare.count("}") and bare.count("(") == bare.count(")")
    is_type = re.match(r"\s*(template\s*<.*>\s*)?(class|struct|enum|union)\b", bare)
    return closed and bare.rstrip().endswith((";",) if is_type else (";", "}"))


def without_private(code: str) -> str:
    """A class up to its private part; of a function, what stands before its body."""
    lines = code.splitlines()
    hidden = next((number for number, line in enumerate(lines) if PRIVATE.match(line)), None)
    if hidden is not None:
        return "\n".join([*lines[:hidden], "};"]).replace("\n\n};", "\n};")
    if not TYPE.search(code) and (body := re.search(r"\)[^;]*?\{\n", code)):
        return code[: body.end() - 2].rstrip() + ";"
    return code


def name_of(code: str) -> str | None:
    bare = TEMPLATE.sub("", re.sub(r"//.*", "", code))
    for pattern in (TYPE, ALIAS):
        if match := pattern.search(bare):
            return match[1]
    if re.match(r"\s*(?:class|struct|enum class) \w+;", bare) or "friend " in bare:
        return None  # declared here, defined elsewhere
    match = FUNCTION.search(re.sub(r"<[^()]*>", "", bare)) or VALUE.search(bare)
    return match[1] if match else None


def prose(comment: str) -> str:
    """A comment as Markdown: its indented lines are code, and nothing in it is markup."""
    parts = re.split(r"(?:^|\n\n)((?:  .*\n?|\n(?=  ))+)", comment)
    words = [escaped(part.strip("\n")) for part in parts[::2]]
    codes = [f"```{language_of(part)}\n{textwrap.dedent(part).strip()}\n```" for part in parts[1::2]]
    both = [text for pair in zip_longest(words, codes, fillvalue="") for text in pair]
    return "\n\n".join(text for text in both if text)


def language_of(code: str) -> str:
    """Comments draw tables and pictures, too."""
    return "cpp" if re.search(r"[;{}](\s*//.*)?$", code, re.MULTILINE) else "text"


def escaped(words: str) -> str:
    """Outside of `code`."""
    parts = re.split(r"(`[^`]*`)", words)
    return "".join(part if part[:1] == "`" else re.sub(r"([*_<>\[\]#|])", r"\\\1", part) for part in parts)


def page(module: str, headers: list[tuple[str, str]]) -> str:
    """`headers`: names and texts, the module's own header first."""
    lines = [f"# muster/{module}", "", prose(contract(headers[0][1])), ""]
    for name, text in headers:
        found: dict[str, list[Declaration]] = {}
        for declaration in declarations(text):
            found.setdefault(declaration.name, []).append(declaration)
        if not found:
            continue
        lines += [f"## {Path(name).stem}", "", f"`#include <{name}>`", ""]
        if name != headers[0][0]:
            lines += [prose(contract(text)), ""]
        for each, overloads in found.items():
            lines += [f"### {each.replace('<', chr(92) + '<')}", ""]
            for declaration in overloads:
                lines += [prose(declaration.words), "", "```cpp", declaration.code, "```", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def pages(folders: list[Path], first: str = "muster/muster.h") -> dict[str, str]:
    """The text of each module's page."""
    modules: dict[str, list[tuple[str, str]]] = {}
    for name in reached_headers(folders, first):
        if name.count("/") == 2 and (file := find(folders, name)):
            modules.setdefault(name.split("/")[1], []).append((name, file.read_text()))
    made = {}
    for module in sorted(modules, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)):
        headers = modules[module]
        own = f"muster/{module}/{module}.h"
        made[module] = page(module, sorted(headers, key=lambda header: (header[0] != own, header[0])))
    return made
