"""`import muster` in the tests is the package of the build tree."""

import subprocess
import sys
import textwrap

import places
import pytest
from job import clean_environment

sys.path.insert(0, str(places.PACKAGES))


@pytest.fixture(autouse=True)
def process_without_mindspore():
    """Its import would change what other tests expect of `muster`: tests/with_mindspore has its tests."""
    before = "mindspore" in sys.modules
    yield
    assert before or "mindspore" not in sys.modules, (
        "this test imports mindspore: it belongs into tests/with_mindspore"
    )


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
