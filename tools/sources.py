"""The files of this tree that people write, found without git (a tarball has none)."""

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
