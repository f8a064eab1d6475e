"""Programs that no test runs, and that the build leaves to `./dev bench` and `./dev sim`, still compile."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from sources import compile_commands  # noqa: E402

BUILD = ROOT / "build"
FOLDERS = [ROOT / "benchmarks", ROOT / "tests/process/crowd", ROOT / "tests/sim/schedules"]
PROGRAMS = {file.relative_to(ROOT).as_posix(): file for folder in FOLDERS for file in folder.glob("*.cpp")}


@pytest.mark.skipif(not (BUILD / "compile_commands.json").exists(), reason="needs ./dev build")
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_it_compiles(program):
    commands = dict(compile_commands(BUILD))
    words = shlex.split(commands[PROGRAMS[program]])
    output = words.index("-o")
    words[output : output + 2] = ["-fsyntax-only"]
    done = subprocess.run(words, cwd=BUILD, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
