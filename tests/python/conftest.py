"""`import muster` in the tests is the package of the build tree."""

import subprocess
import sys
import textwrap

import places
import pytest
from job import clean_environment

sys.path.insert(0, str(places.PACKAGES))


@pytest.fixture(autouse=True)
def as_without_mindspore():
    """Some tests import `mindspore` here, which changes what the others expect of `muster` alone."""
    core = sys.modules.get("muster._core")
    if core is not None:
        core._run_foreign_scripts(False, False)


MINDSPORE_SETUP = """
import numpy
import mindspore as ms
from mindspore import Tensor, ops
"""


@pytest.fixture
def run_with_mindspore():
    """Runs code that has `ms`, `ops`, `Tensor` of package `mindspore` and `numpy`; it must end well.

    Gives what it printed on stderr.
    """

    def run(code):
        done = subprocess.run(
            [sys.executable, "-c", MINDSPORE_SETUP + textwrap.dedent(code)],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    return run
