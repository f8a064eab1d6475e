"""Arithmetic by MindSpore's names gives what MindSpore 2.7.0 gave (tests/parity/arithmetic.py)."""

import subprocess
import sys

from job import clean_environment
from places import ROOT


def checked(*words):
    return subprocess.run(
        [sys.executable, str(ROOT / "tests/parity/arithmetic.py"), "--check", *words],
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
    agreeing, explained, unused = (int(word) for word in counts.split() if word.isdigit())
    assert agreeing > 6000 and unused == 0, counts
    assert explained < agreeing / 20, counts
