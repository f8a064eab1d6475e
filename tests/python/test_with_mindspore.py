"""The tests of tests/with_mindspore, each file in a process of its own."""

import subprocess
import sys

import pytest
from job import clean_environment
from places import ROOT

FILES = sorted((ROOT / "tests/with_mindspore").glob("test_*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_that_imports_mindspore_passes(file):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(file)],
        env=clean_environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout[-20000:]
