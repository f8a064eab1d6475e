"""Formats every C++ file; with --check it only says which files differ.

The pinned clang-format does it, and string_literals.py, which fills the lines of long texts.
"""

import subprocess
import sys
from pathlib import Path

from sources import ROOT, cpp_files
from string_literals import filled


def fill_texts(files: list[Path], *, may_write: bool) -> list[str]:
    """The names of the files with ragged texts; fills them."""
    ragged = []
    for file in files:
        source = file.read_text()
        text = filled(source)
        if text == source:
            continue
        ragged.append(file.relative_to(ROOT).as_posix())
        if may_write:
            file.write_text(text)
    return ragged


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    files = list(cpp_files())
    ragged = fill_texts(files, may_write=not is_check)
    if is_check:
        for name in ragged:
            print(f"{name}: a text in several literals has lines that are not full", file=sys.stderr)
    # The program of the environment that runs this script, never another one from PATH.
    program = str(Path(sys.executable).parent / "clang-format")
    action = ["--dry-run", "-Werror"] if is_check else ["-i"]
    names = [str(path.relative_to(ROOT)) for path in files]
    status = subprocess.run([program, *action, *names], cwd=ROOT).returncode
    if not is_check:
        fill_texts(files, may_write=True)  # of lines that were cut just now
    return 1 if is_check and ragged else status


if __name__ == "__main__":
    sys.exit(main())
