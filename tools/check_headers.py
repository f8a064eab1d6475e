"""Compiles every header alone, with the flags of a source beside it: a header includes all that it uses.

What compiled is kept in build/headers-alone.json and not compiled again until the header, a file of ours that
it includes, the flags, the compiler or this script change. A change of a system's header is not seen: --all
compiles all.

Headers that include the same public header of a module share its precompiled form, which is read before
them: what it brings they have by their own includes, since includes stand above all else. That takes half the
time.
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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sources import ROOT, compile_commands, walk

KEPT = ("-I", "-D", "-std", "-W", "-f", "-m")  # not -O: nothing is generated, and fewer sets of flags differ
SHARED_MIN = 4  # headers for which a precompiled one pays
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


def compile_alone(root: Path, header: Path, flags: list[str]) -> str:
    return run_compiler(root, [*flags, "-fsyntax-only", "-x", "c++", "-"], include_line(root, header))


def precompile(root: Path, header: Path, flags: list[str], folder: Path) -> list[str]:
    """The flags that read `header` precompiled before all else; none where it does not compile."""
    name = hashlib.sha256("\0".join([str(header), *flags]).encode()).hexdigest()[:16]
    stub = folder / f"{name}.h"
    stub.write_text(include_line(root, header))
    complaint = run_compiler(root, [*flags, "-x", "c++-header", str(stub), "-o", f"{stub}.gch"], "")
    return [] if complaint else ["-include", str(stub)]


def widest_shared(root: Path, headers: list[Path], flags_for: FlagsFinder) -> dict[Path, Path]:
    """Of each header, the public header that it includes and that brings most, where enough share it."""
    public = {root / "muster" / folder.name / f"{folder.name}.h" for folder in (root / "muster").iterdir()}
    included: dict[Path, dict[Path, str]] = {}
    for header in {*headers, *filter(Path.is_file, public)}:
        included[header] = {}
        files_included(header, include_folders(flags_for(header)), included[header])
    widest = {
        header: max(found, key=lambda path: len(included[path]))
        for header in headers
        if (found := [path for path in included[header] if path in public and path != header])
    }
    shares = Counter((path, *flags_for(header)) for header, path in widest.items())
    return {h: path for h, path in widest.items() if shares[path, *flags_for(h)] >= SHARED_MIN}


def compile_all(root: Path, build: Path, headers: list[Path], flags_for: FlagsFinder) -> list[str]:
    """Of each header the compiler's complaints, or nothing."""
    shared = widest_shared(root, headers, flags_for)
    wanted = {(path, *flags_for(header)) for header, path in shared.items()}
    with (
        ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
        tempfile.TemporaryDirectory(dir=build, prefix="headers-alone-") as folder,
    ):
        made = pool.map(lambda key: precompile(root, key[0], list(key[1:]), Path(folder)), wanted)
        first_read = dict(zip(wanted, made, strict=True))

        def complaints_about(header: Path) -> str:
            flags = flags_for(header)
            before = first_read[shared[header], *flags] if header in shared else []
            return compile_alone(root, header, [*flags, *before])

        return list(pool.map(complaints_about, headers))


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


def digest(header: Path, flags: list[str], about_compiler: str) -> str:
    """Of all that decides whether the header compiles, but for the system's own headers."""
    texts: dict[Path, str] = {}
    files_included(header, include_folders(flags), texts)
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
    complaints = compile_all(root, build, changed, flags_for)
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
