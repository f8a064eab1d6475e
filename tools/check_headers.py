"""Compiles every header alone, with the flags of a source beside it: a header includes all that it uses.

What compiled is kept in build/headers-alone.json and not compiled again until the header, a file of ours that
it includes, the flags, the compiler or this script change. A change of a system's header is not seen: --all
compiles all.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sources import ROOT, compile_commands, walk

KEPT = ("-I", "-D", "-std", "-W", "-f", "-m", "-O")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def flags_by_folder(build: Path) -> dict[Path, list[str]]:
    """For each folder with sources, the compiler flags of the first of them."""
    result: dict[Path, list[str]] = {}
    for file, command in compile_commands(build):
        if file.parent in result:
            continue
        words = shlex.split(command)
        flags = []
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word == "-isystem":
                flags += [word, following]
            elif word.startswith(KEPT):
                flags.append(word)
        result[file.parent] = flags
    return result


def flags_finder(root: Path, build: Path) -> Callable[[Path], list[str]]:
    """The flags of the nearest folder above a header that has sources, else those of muster/base."""
    known = flags_by_folder(build)

    def flags_for(header: Path) -> list[str]:
        nearest = next((folder for folder in header.parents if folder in known), root / "muster" / "base")
        return [*known[nearest], f"-I{root}"]

    return flags_for


def compiler() -> str:
    return os.environ.get("CXX", "c++")


def compile_alone(root: Path, header: Path, flags: list[str]) -> str:
    """The compiler's complaints, or nothing."""
    done = subprocess.run(
        [compiler(), *flags, "-fsyntax-only", "-x", "c++", "-"],
        input=f'#include "{header.relative_to(root).as_posix()}"\n',
        capture_output=True,
        text=True,
        cwd=root,
    )
    return (done.stderr or f"{compiler()} failed without a word\n") if done.returncode else ""


def files_included(header: Path, folders: list[Path], seen: dict[Path, str]) -> None:
    """Puts the header and all that it includes from `folders` into `seen`, each with its text."""
    if header in seen:
        return
    seen[header] = header.read_text()
    for name in INCLUDE.findall(seen[header]):
        for folder in (header.parent, *folders):
            if (folder / name).is_file():
                files_included((folder / name).resolve(), folders, seen)
                break


def digest(header: Path, flags: list[str], about_compiler: str) -> str:
    """Of all that decides whether the header compiles, but for the system's own headers."""
    texts: dict[Path, str] = {}
    files_included(header, [Path(flag[2:]) for flag in flags if flag.startswith("-I")], texts)
    parts = [about_compiler, *flags, *(f"{path}\n{text}" for path, text in sorted(texts.items()))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_kept(kept: Path) -> dict[str, str]:
    try:
        return json.loads(kept.read_text())
    except (FileNotFoundError, json.JSONDecodeError):  # the first time, or cut off: all are compiled
        return {}


def check(root: Path, build: Path, is_all: bool = False) -> tuple[list[str], int, int]:
    """The complaints, the number of headers, and how many of them had to be compiled."""
    flags_for = flags_finder(root, build)
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    about_compiler = version + Path(__file__).read_text()
    headers = [path for path in walk(root, {".h"}) if "tests/install" not in path.as_posix()]
    digests = {header: digest(header, flags_for(header), about_compiler) for header in headers}
    names = {header: header.relative_to(root).as_posix() for header in headers}
    kept = {} if is_all else read_kept(build / "headers-alone.json")
    changed = [header for header in headers if kept.get(names[header]) != digests[header]]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        complaints = list(pool.map(lambda header: compile_alone(root, header, flags_for(header)), changed))
    failed = {header: complaint for header, complaint in zip(changed, complaints, strict=True) if complaint}
    good = {names[header]: digests[header] for header in headers if header not in failed}
    (build / "headers-alone.json").write_text(json.dumps(good, indent=0))
    lines = [f"{names[header]}:1: does not compile alone\n{text}" for header, text in failed.items()]
    return lines, len(headers), len(changed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="compile also what has not changed")
    begin = time.monotonic()
    complaints, headers, compiled = check(ROOT, ROOT / "build", parser.parse_args().all)
    print("".join(complaints), end="")
    print(
        f"headers: {headers - len(complaints)} of {headers} compile alone "
        f"({compiled} compiled, the others have not changed; {time.monotonic() - begin:.0f} s)"
    )
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
