#!/usr/bin/env python3
"""Makes a shared library of a static one and of what that calls of other static libraries.

Functions and variables of the others are local to it, since a process may have another OpenSSL. Those of
namespace muster can be linked to, although they were compiled with -fvisibility=hidden for one program:
so the objects are those of the other builds. The library calls itself directly (-Bsymbolic), as they were
compiled to do.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import tempfile
from pathlib import Path

STRONG = set("TDBRGSA")  # of `nm`: what a program may define once only
NAMESPACE = b"6muster"  # in mangled names
SYMBOL_TABLE = 2  # SHT_SYMTAB
GLOBAL, WEAK = 1, 2  # what is bound otherwise, statics of inline functions, has to stay


def strong_symbols(archives: list[Path]) -> set[str]:
    command = ["nm", "--defined-only", "--extern-only", "--format=posix", "--quiet", *archives]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    fields = (line.split() for line in listed.splitlines())
    return {words[0] for words in fields if len(words) >= 2 and words[1] in STRONG}


def show_namespace(file: Path) -> None:
    """Gives the symbols of namespace muster in an object of 64-bit ELF default visibility."""
    data = bytearray(file.read_bytes())
    begin, size, count = (*struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58))
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, begin + i * size) for i in range(count)]
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind != SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for at in range(offset, offset + length, 24):
            name, info = struct.unpack_from("<IB", data, at)
            text = data[names + name : data.index(0, names + name)]
            if info >> 4 in (GLOBAL, WEAK) and NAMESPACE in text:
                data[at + 5] &= ~3  # STV_DEFAULT
    file.write_bytes(data)


def make(compiler: str, library: Path, archive: Path, others: list[Path], flags: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole, local, made = (Path(folder, name) for name in ("whole.o", "local", "muster.o"))
        wanted = ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive"]
        offered = ["-Wl,--start-group", *others, "-Wl,--end-group"]
        subprocess.run([compiler, "-r", "-nostdlib", "-o", whole, *wanted, *offered], check=True)
        local.write_text("".join(f"{name}\n" for name in sorted(strong_symbols(others))))
        subprocess.run(["objcopy", f"--localize-symbols={local}", whole, made], check=True)
        show_namespace(made)
        link = [
            "-shared",
            "-Wl,-Bsymbolic",
            "-Wl,--no-undefined",
            "-Wl,--as-needed",
            f"-Wl,-soname,{library.name}",
        ]
        subprocess.run([compiler, *link, "-s", "-o", library, made, *flags], check=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--compiler", required=True)
    arguments.add_argument("--flags", default="", help="for the compiler as it links, with ; between them")
    arguments.add_argument("library", type=Path)
    arguments.add_argument("archive", type=Path)
    arguments.add_argument("others", type=Path, nargs="*")
    given = arguments.parse_args()
    make(given.compiler, given.library, given.archive, given.others, given.flags.split(";"))


if __name__ == "__main__":
    main()
