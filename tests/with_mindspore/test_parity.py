"""The same figures as MindSpore 2.7.0, which tests/parity/make_golden.py recorded in tests/parity/golden.

Forward values agree within 1e-5 of the greatest of the tensor, gradients and parameters after five steps
within 1e-4.
"""

import json
import sys

import numpy
import pytest
from places import COMPAT_PACKAGES, ROOT

sys.path.insert(0, str(COMPAT_PACKAGES))
sys.path.insert(0, str(ROOT / "tests/parity"))

import cases
import mindspore

GOLDEN = ROOT / "tests/parity/golden"
CASES = cases.all_cases()


def tolerance(figure):
    return 1e-5 if figure in ("forward", "values") else 1e-4


def difference(found, recorded):
    """The greatest difference, over the greatest recorded figure."""
    wanted = numpy.reshape(recorded["values"], recorded["shape"])
    assert found.shape == wanted.shape
    return numpy.abs(found - wanted).max(initial=0) / max(numpy.abs(wanted).max(initial=0), 1e-30)


@pytest.fixture(params=["graph", "eager"])
def mode(request):
    mindspore.set_context(mode=mindspore.GRAPH_MODE if request.param == "graph" else mindspore.PYNATIVE_MODE)
    yield
    mindspore.set_context(mode=mindspore.GRAPH_MODE)


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("name", CASES)
def test_figures_are_those_of_mindspore(name):
    recorded = json.loads((GOLDEN / f"{name}.json").read_text())["figures"]
    found = CASES[name].run(mindspore)
    assert list(found) == list(recorded)
    apart = {figure: difference(found[figure], recorded[figure]) for figure in recorded}
    assert {figure: value for figure, value in apart.items() if not value <= tolerance(figure)} == {}


def test_every_golden_file_has_a_case():
    files = {path.relative_to(GOLDEN).with_suffix("").as_posix() for path in GOLDEN.rglob("*.json")}
    assert files == set(CASES)


def test_golden_files_are_small():
    sizes = [path.stat().st_size for path in GOLDEN.rglob("*.json")]
    assert max(sizes) < 30_000 and sum(sizes) < 600_000
