"""tools/build_progress.py tells how long a build will still take; what else ninja says stays as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import build_progress  # noqa: E402


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[1 of 500, 2.1 s] Building a.o", "[1 of 500, 0 %, 2 s] Building a.o"),
        ("[100 of 500, 15.0 s] Building a.o", "[100 of 500, 20 %, 15 s, about 60 s left] Building a.o"),
        ("[100 of 500, 60.0 s] Building a.o", "[100 of 500, 20 %, 60 s, about 4 min left] Building a.o"),
        ("[500 of 500, 301.0 s] Linking b", "[500 of 500, 100 %, 5 min] Linking b"),
        ("[0 of 500, 20.0 s] Building a.o", "[0 of 500, 0 %, 20 s] Building a.o"),
    ],
)
def test_a_line_of_progress_says_how_long_the_rest_takes(line, told):
    assert build_progress.with_estimate(line) == (told, True)


@pytest.mark.parametrize(
    "line", ["FAILED: a.o", "a.cpp:1:2: error: [1 of 2, 3 s] no", "ninja: no work to do.", ""]
)
def test_other_lines_stay_as_they_are(line):
    assert build_progress.with_estimate(line) == (line, False)


def test_dev_asks_ninja_for_the_status_that_is_read_here():
    assert f"NINJA_STATUS='{build_progress.STATUS}'" in (ROOT / "dev").read_text()


def test_a_failed_build_fails_and_shows_what_the_compiler_said(tmp_path):
    (tmp_path / "build.ninja").write_text(
        "rule fail\n  command = echo the reason; exit 1\nbuild out: fail\ndefault out\n"
    )
    script = f'set -o pipefail; ninja -C "{tmp_path}" | "{sys.executable}" "{ROOT}/tools/build_progress.py"'
    environment = {**os.environ, "NINJA_STATUS": build_progress.STATUS}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "the reason" in done.stdout
    assert "[1 of 1, 100 %, 0 s] echo the reason" in done.stdout
