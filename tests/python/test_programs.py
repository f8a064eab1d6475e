"""Small programs give what MindSpore 2.7.0 gives, but for those that tests/parity/programs lists."""

import subprocess
import sys

import pytest
from job import clean_environment
from places import ROOT

PROGRAMS = ROOT / "tests/parity/programs"
FAMILIES = sorted(path.name.partition(".")[0] for path in (PROGRAMS / "answers").glob("*.xz"))


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_that_agreed_with_mindspore_still_do(family):
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "run.py"), "test", family],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", done.stdout[:20000]
