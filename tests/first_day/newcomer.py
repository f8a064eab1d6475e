#!/usr/bin/env python3
"""Goes through README and every page of docs/guide with the Muster that is installed, typing what they say.

Blocks are run as tests/docs runs them (reader.py), but on this system, with the program and the package that
pip or apt installed. Says which pages do not work, and ends with 1 then.

    python newcomer.py FOLDER [PAGE ...]
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

from reader import Reader
from snippets import page_blocks, pages

import muster


def follow(page: str, folder: Path) -> str | None:
    """What went wrong; None: nothing."""
    try:
        Reader(folder, muster=None).follow(page_blocks(page))
    except (AssertionError, subprocess.TimeoutExpired) as failure:
        return str(failure)
    return None


def write_cpp_guide(folder: Path) -> None:
    """The files of docs/guide/cpp.md, for the shell to build."""
    for block in page_blocks("docs/guide/cpp.md"):
        if block.file in ("main.cpp", "CMakeLists.txt"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)


def main() -> int:
    folder = Path(sys.argv[1])
    wanted = sys.argv[2:] or [page for page in pages() if not page.startswith("docs/formats/")]
    print(f"newcomer: muster {muster.__version__} from {Path(muster.__file__).parent}")
    write_cpp_guide(folder / "cpp")
    failed = 0
    for page in wanted:
        begin = time.monotonic()
        problem = follow(page, folder / page.replace("/", "-"))
        print(f"newcomer: {page}: {problem or 'works'} ({time.monotonic() - begin:.0f} s)", flush=True)
        failed += problem is not None
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
