"""Compiles every header alone, with the flags of a source beside it: a header includes all that it uses."""

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sources import ROOT, walk

KEPT = ("-I", "-D", "-std", "-W", "-f", "-m", "-O")


def flags_by_folder(build: Path) -> dict[Path, list[str]]:
    """For each folder with sources, the compiler flags of the first of them."""
    result: dict[Path, list[str]] = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(command["command"])
        flags = []
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word == "-isystem":
                flags += [word, following]
            elif word.startswith(KEPT):
                flags.append(word)
        result.setdefault(Path(command["file"]).parent, flags)
    return result


def compile_alone(header: Path, flags: list[str]) -> str:
    """The compiler's complaints, or nothing."""
    compiler = os.environ.get("CXX", "c++")
    source = f'#include "{header.relative_to(ROOT).as_posix()}"\n'
    done = subprocess.run(
        [compiler, *flags, f"-I{ROOT}", "-fsyntax-only", "-x", "c++", "-"],
        input=source,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return done.stderr if done.returncode else ""


def main() -> int:
    known = flags_by_folder(ROOT / "build")
    fallback = known[ROOT / "muster" / "base"]

    def flags_for(header: Path) -> list[str]:
        folders = [folder for folder in header.parents if folder in known]
        return known[folders[0]] if folders else fallback

    headers = [path for path in walk(ROOT, {".h"}) if "tests/install" not in path.as_posix()]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        complaints = list(pool.map(lambda header: compile_alone(header, flags_for(header)), headers))
    for header, complaint in zip(headers, complaints, strict=True):
        if complaint:
            print(f"{header.relative_to(ROOT)}:1: does not compile alone\n{complaint}")
    failed = sum(map(bool, complaints))
    print(f"headers: {len(headers) - failed} of {len(headers)} compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
