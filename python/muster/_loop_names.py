"""Variables that the body of a `for` loop reads before it writes them: what it has from the step before."""

import dis
import functools
import re
from collections.abc import Iterator
from types import CodeType

_VARIABLE = re.compile(r"(LOAD|STORE)_(?:FAST|NAME|GLOBAL|DEREF|CLASSDEREF|CLOSURE)")
_NO_WAY_ON = re.compile(r"JUMP_(FORWARD|BACKWARD|ABSOLUTE)|RETURN_|RAISE_VARARGS|RERAISE")


def _accesses(instruction: dis.Instruction) -> Iterator[tuple[str, str]]:
    """("LOAD" or "STORE", name), in their order; what a function reads that is made here, too."""
    if isinstance(instruction.argval, CodeType):
        for inner in dis.get_instructions(instruction.argval):
            yield from (each for each in _accesses(inner) if each[0] == "LOAD")
        return
    ways = _VARIABLE.findall(instruction.opname)
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    yield from zip(ways, names, strict=False)


def _next_offsets(instruction: dis.Instruction, following: int | None) -> Iterator[int]:
    if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
        yield instruction.argval
    if following is not None and not _NO_WAY_ON.match(instruction.opname):
        yield following


def _read_first(body: list[dis.Instruction]) -> set[str]:
    """The names that are read on some way on which nothing has written them."""
    places = {instruction.offset: index for index, instruction in enumerate(body)}
    written: dict[int, frozenset[str]] = {0: frozenset()}
    waiting, read = [0], set()
    while waiting:
        index = waiting.pop()
        now = written[index]
        for way, name in _accesses(body[index]):
            if way == "STORE":
                now = now | {name}
            elif name not in now:
                read.add(name)
        following = body[index + 1].offset if index + 1 < len(body) else None
        for offset in _next_offsets(body[index], following):
            other = places.get(offset)
            if other is None:  # out of the body
                continue
            both = written[other] & now if other in written else now
            if written.get(other) != both:
                written[other] = both
                waiting.append(other)
    return read


@functools.lru_cache(maxsize=8)
def of_loop(code: CodeType, offset: int) -> tuple[frozenset[str], frozenset[str], frozenset[str]] | None:
    """All names that the body writes, those of them that it reads first, and all that it reads of before.

    None where no `for` is there.
    """
    instructions = list(dis.get_instructions(code))
    loop = next((each for each in instructions if each.offset == offset), None)
    if loop is None or loop.opname != "FOR_ITER":
        return None
    body = [each for each in instructions if offset < each.offset < loop.argval]
    written = {name for each in body for way, name in _accesses(each) if way == "STORE"}
    read = frozenset(_read_first(body)) if body else frozenset()
    return frozenset(written), written & read, read
