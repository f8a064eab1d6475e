"""Arithmetic by MindSpore's names gives what MindSpore 2.7.0 gave (tests/parity/arithmetic.py)."""

import re
import subprocess
import sys

from job import clean_environment
from places import ROOT


def checked():
    return subprocess.run(
        [sys.executable, str(ROOT / "tests/parity/arithmetic.py"), "--check"],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_every_recorded_program_agrees_or_differs_for_a_reason_that_is_listed():
    done = checked()
    assert done.returncode == 0, done.stderr
    *differing, counts = done.stdout.splitlines()
    assert not differing, "\n".join(differing[:50])
    agreeing, explained, missing = (int(number) for number in re.findall(r"\d+", counts.partition("[")[0]))
    assert agreeing > 6200 and explained < 300 and missing < 60, counts
    assert counts.endswith("[]"), f"reasons that are not needed any more: {counts}"
