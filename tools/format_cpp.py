"""Formats every C++ file with the pinned clang-format; with --check it only says which files differ."""

import subprocess
import sys
from pathlib import Path

from sources import ROOT, cpp_files


def main() -> int:
    # The program of the environment that runs this script, never another one from PATH.
    program = str(Path(sys.executable).parent / "clang-format")
    files = [str(path.relative_to(ROOT)) for path in cpp_files()]
    action = ["--dry-run", "-Werror"] if "--check" in sys.argv[1:] else ["-i"]
    return subprocess.run([program, *action, *files], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
