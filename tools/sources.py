"""The files of this tree that people write, found without git (a tarball has none)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = {"MNIST_Data", "__pycache__", "dist", "muster-logs"}
HIDDEN = {".ci", ".clang-format", ".gitignore"}  # the hidden names that are ours


def walk(root: Path, suffixes: set[str]) -> Iterator[Path]:
    """Files below `root` with one of these suffixes, sorted, without build folders and hidden folders."""
    for path in sorted(root.iterdir()):
        if path.is_symlink() or (path.name.startswith(".") and path.name not in HIDDEN):
            continue
        if path.is_dir():
            if path.name not in GENERATED and not path.name.startswith("build"):
                yield from walk(path, suffixes)
        elif path.suffix in suffixes:
            yield path


def cpp_files(root: Path = ROOT) -> list[Path]:
    return list(walk(root, {".cpp", ".h"}))


def compile_commands(build: Path) -> Iterator[tuple[Path, str]]:
    """Each source that the build compiles, with its command; of a unity build's file, each source in it."""
    for command in json.loads((build / "compile_commands.json").read_text()):
        file = Path(command["directory"], command["file"]).resolve()
        if file.parent.name == "Unity" and file.is_file():
            for included in re.findall(r'^#include "(.+)"', file.read_text(), re.MULTILINE):
                yield Path(included).resolve(), command["command"]
        else:
            yield file, command["command"]
