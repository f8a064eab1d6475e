"""Fills the lines of long texts in C++: adjacent string literals, one on each line.

clang-format cuts a literal that is too long, but never joins the pieces again: after each change of a text
its lines are more ragged. `filled` makes the lines of such a text full again. It breaks at spaces only, keeps
the breaks after `\\n`, and leaves texts alone where the place of a break matters (escapes by number).
"""

import re

WIDTH = 110  # ColumnLimit of .clang-format
LITERAL = r'"(?:[^"\\]|\\.)*"'
FIRST = re.compile(rf'^(?P<before>(?:[^"/]|{LITERAL}|/(?!/))*)(?P<text>{LITERAL})$')
NEXT = re.compile(rf'^(?P<before> *)(?P<text>{LITERAL})(?P<after>[^"]*)$')
NUMBERED = re.compile(r"\\[x0-7]")  # "\x1b" "b" is not "\x1bb"
WORD = re.compile(r"(?:\\.|[^ \\])* *")


def filled(source: str) -> str:
    lines, made, i = source.split("\n"), [], 0
    while i < len(lines):
        count = run_length(lines, i)
        made += fill(lines[i : i + count]) if count > 1 else [lines[i]]
        i += count
    return "\n".join(made)


def run_length(lines: list[str], first: int) -> int:
    """How many lines from this one on are one text, one piece below the other."""
    opening = FIRST.match(lines[first])
    if not opening or opening["before"].endswith("R"):
        return 1
    count = 1
    while first + count < len(lines):
        piece = NEXT.match(lines[first + count])
        if not piece or len(piece["before"]) != len(opening["before"]):
            break
        count += 1
        if piece["after"]:
            break
    return count


def fill(lines: list[str]) -> list[str]:
    opening, last = FIRST.match(lines[0]), NEXT.match(lines[-1])
    assert opening and last
    column = len(opening["before"])
    pieces = [opening["text"], *(line.strip() for line in lines[1:-1]), last["text"]]
    text = [piece[1:-1] for piece in pieces]
    room = WIDTH - column - len('""')
    if not is_ragged(text, room) or NUMBERED.search("".join(text)):
        return lines
    made = [f'{" " * column}"{piece}"' for piece in wrap(text, room)]
    made[0] = opening["before"] + made[0].lstrip()
    made[-1] += last["after"]
    return made if len(made[-1]) <= WIDTH else lines


def is_ragged(pieces: list[str], room: int) -> bool:
    """Whether a line in the middle is less than half full, and not because it ends there."""
    return any(len(piece) < room / 2 and not piece.endswith("\\n") for piece in pieces[:-1])


def wrap(pieces: list[str], room: int) -> list[str]:
    """The same text in pieces of at most `room` characters, as long as they can be."""
    made: list[str] = []
    is_open = False  # whether more words may come behind the last piece
    rest = ""
    for number, piece in enumerate(pieces, 1):
        rest += piece
        if not piece.endswith("\\n") and number < len(pieces):
            continue
        for word in filter(None, WORD.findall(rest)):
            if is_open and len(made[-1]) + len(word) <= room:
                made[-1] += word
            else:
                made.append(word)
            is_open = True
        rest, is_open = "", False
    return made
