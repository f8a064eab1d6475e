"""Compiles every header alone, with the flags of a source beside it: a header includes all that it uses.

What compiled is kept in build/headers-alone.json and not compiled again until the header, a file of ours that
it includes, the flags, the compiler or this script change. A change of a system's header is not seen: --all
compiles all.

Nothing stands before a header but what it includes itself, so each is compiled as if alone:
- Headers with the same flags that share the public header of a module are a group: what all of the group
  include, ours and others', is precompiled and read before each.
- A group is compiled in chains: each header of a chain includes the one before it. Where a chain fails, its
  headers are compiled one by one, and those that fail are named.
What a header includes is read from its text, under any #if; includes stand above all else in a header.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sources import ROOT, compile_commands, walk

# What decides whether a header compiles. Fewer sets of flags differ without the rest.
KEPT = ("-I", "-D", "-std", "-W", "-m", "-fopenmp", "-fvisibility")
SHARED_MIN = 4  # compilations for which a precompiled header pays
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
IN_BRACKETS = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.MULTILINE)


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


FlagsFinder = Callable[[Path], list[str]]


def flags_finder(root: Path, build: Path) -> FlagsFinder:
    """The flags of the nearest folder above a header that has sources, else those of muster/train, which sees
    every other module that programs use."""
    known = flags_by_folder(build)
    modules = root / "muster"
    others = next(folder for folder in (modules / "train", modules / "base") if folder in known)

    def flags_for(header: Path) -> list[str]:
        nearest = next((folder for folder in header.parents if folder in known), others)
        return [*known[nearest], f"-I{root}"]

    return flags_for


def compiler() -> str:
    return os.environ.get("CXX", "c++")


def run_compiler(root: Path, arguments: list[str], source: str) -> str:
    """The compiler's complaints, or nothing."""
    done = subprocess.run([compiler(), *arguments], input=source, capture_output=True, text=True, cwd=root)
    return (done.stderr or f"{compiler()} failed without a word\n") if done.returncode else ""


def include_line(root: Path, header: Path) -> str:
    return f'#include "{header.relative_to(root).as_posix()}"\n'


def compile_in_turn(root: Path, headers: Sequence[Path], flags: list[str]) -> str:
    source = "".join(include_line(root, header) for header in headers)
    return run_compiler(root, [*flags, "-fsyntax-only", "-x", "c++", "-"], source)


def precompile(root: Path, includes: str, flags: list[str], folder: Path) -> list[str]:
    """The flags that read these includes precompiled before all else; none where they do not compile."""
    name = hashlib.sha256("\0".join([includes, *flags]).encode()).hexdigest()[:16]
    stub = folder / f"{name}.h"
    stub.write_text(includes)
    complaint = run_compiler(root, [*flags, "-x", "c++-header", str(stub), "-o", f"{stub}.gch"], "")
    return [] if complaint else ["-include", str(stub)]


Closures = dict[
    Path, dict[Path, str]
]  # of each header: itself and what it includes of ours, with their texts


def widest_shared(
    root: Path, headers: list[Path], closures: Closures, flags_for: FlagsFinder
) -> dict[Path, Path]:
    """Of each header, the public header that it includes and that brings most, where enough share it."""
    public = {root / "muster" / folder.name / f"{folder.name}.h" for folder in (root / "muster").iterdir()}
    found = {
        header: [path for path in closures[header] if path in public and path != header] for header in headers
    }
    while True:
        widest = {
            header: max(paths, key=lambda path: len(closures[path]))
            for header, paths in found.items()
            if paths
        }
        shares = Counter((path, *flags_for(header)) for header, path in widest.items())
        lonely = [header for header, path in widest.items() if shares[path, *flags_for(header)] < SHARED_MIN]
        if not lonely:
            return widest
        for header in lonely:  # perhaps it shares a narrower one
            found[header].remove(widest[header])


def groups_of(
    root: Path, headers: list[Path], closures: Closures, flags_for: FlagsFinder
) -> list[list[Path]]:
    """The headers with the same flags that share a public header, and those that share none."""
    shared = widest_shared(root, headers, closures, flags_for)
    groups: dict[tuple, list[Path]] = {}
    for header in headers:
        groups.setdefault((shared.get(header), *flags_for(header)), []).append(header)
    return list(groups.values())


def chains_of(headers: list[Path], closures: Closures) -> list[list[Path]]:
    """The headers in chains: each one includes the one before it, and with it all before it."""
    chains: list[list[Path]] = []
    for header in sorted(headers, key=lambda header: (len(closures[header]), header)):
        fitting = [chain for chain in chains if chain[-1] in closures[header]]
        if fitting:
            max(fitting, key=lambda chain: len(closures[chain[-1]])).append(header)
        else:
            chains.append([header])
    return chains


def includes_of_all(root: Path, headers: list[Path], closures: Closures) -> str:
    """The lines that include what every one of these headers includes: of ours and of others."""
    ours = set.intersection(*({path for path in closures[header] if path != header} for header in headers))
    others = set.intersection(*(included_of_others(closures[header].values()) for header in headers))
    return "".join(
        [f"#include <{name}>\n" for name in sorted(others)]
        + [include_line(root, path) for path in sorted(ours)]
    )


def included_of_others(texts: Iterable[str]) -> set[str]:
    return {name for text in texts for name in IN_BRACKETS.findall(text)}


def compile_chain(root: Path, chain: list[Path], flags: list[str], before: list[str]) -> dict[Path, str]:
    """Of each header the compiler's complaints, or nothing. Where the chain fails, each is compiled alone."""
    if not compile_in_turn(root, chain, [*flags, *before]):
        return dict.fromkeys(chain, "")
    return {header: compile_in_turn(root, [header], flags) for header in chain}


def compile_all(
    root: Path, build: Path, headers: list[Path], closures: Closures, flags_for: FlagsFinder
) -> dict[Path, str]:
    """Of each header the compiler's complaints, or nothing."""
    groups = groups_of(root, headers, closures, flags_for)
    with (
        ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
        tempfile.TemporaryDirectory(dir=build, prefix="headers-alone-") as folder,
    ):

        def first_read(group: list[Path], chains: list[list[Path]]) -> list[str]:
            includes = includes_of_all(root, group, closures) if len(chains) >= SHARED_MIN else ""
            return precompile(root, includes, flags_for(group[0]), Path(folder)) if includes else []

        chains = [chains_of(group, closures) for group in groups]
        before = list(pool.map(first_read, groups, chains))
        tasks = [(chain, first) for some, first in zip(chains, before, strict=True) for chain in some]
        done = pool.map(lambda task: compile_chain(root, task[0], flags_for(task[0][0]), task[1]), tasks)
        return {header: complaint for found in done for header, complaint in found.items()}


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


def include_folders(flags: list[str]) -> list[Path]:
    return [Path(flag[2:]) for flag in flags if flag.startswith("-I")]


def closure(header: Path, flags: list[str]) -> dict[Path, str]:
    """The header and what it includes of ours, with their texts."""
    texts: dict[Path, str] = {}
    files_included(header, include_folders(flags), texts)
    return texts


def digest(texts: dict[Path, str], flags: list[str], about_compiler: str) -> str:
    """Of all that decides whether a header compiles, but for the system's own headers."""
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
    elsewhere = ("tests/install", "muster/collective/ucx/")  # those need what need not be installed
    headers = [path for path in walk(root, {".h"}) if not any(part in path.as_posix() for part in elsewhere)]
    closures = {header: closure(header, flags_for(header)) for header in headers}
    digests = {header: digest(closures[header], flags_for(header), about_compiler) for header in headers}
    names = {header: header.relative_to(root).as_posix() for header in headers}
    kept = {} if is_all else read_kept(build / "headers-alone.json")
    changed = [header for header in headers if kept.get(names[header]) != digests[header]]
    complaints = compile_all(root, build, changed, closures, flags_for)
    failed = {header: complaint for header, complaint in complaints.items() if complaint}
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
