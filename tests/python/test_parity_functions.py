"""Functions by MindSpore's names give what MindSpore 2.7.0 gave (tests/parity/functions.json)."""

import subprocess
import sys

import pytest
from job import clean_environment
from places import ROOT


@pytest.mark.parametrize("mode", ["--check", "--eager"])
def test_functions_agree_with_mindspores_figures(mode):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/parity/functions.py"), mode],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" agree\n"), done.stdout
