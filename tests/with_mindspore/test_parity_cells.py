"""The cells of tests/parity/more_cells.py give the figures of MindSpore 2.7.0 in more_cells.json."""

import json
import sys

import numpy
import pytest
from places import COMPAT_PACKAGES, ROOT

sys.path.insert(0, str(COMPAT_PACKAGES))
sys.path.insert(0, str(ROOT / "tests/parity"))

import mindspore
import more_cells

RECORDED = json.loads(more_cells.FILE.read_text())
CASES = more_cells.all_cases()


def apart(found, recorded):
    """The greatest difference of the summaries, over the greatest figure; infinite where shapes differ."""
    shape, numbers = more_cells.summary(found)
    if list(shape) != recorded[0]:
        return f"{list(shape)} for {recorded[0]}"
    wanted = numpy.array(recorded[1])
    return numpy.abs(numbers - wanted).max(initial=0) / max(numpy.abs(wanted).max(initial=0), 1e-30)


def differences(name):
    try:
        figures = CASES[name].run(mindspore)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    if list(figures) != list(RECORDED[name]):
        return f"{list(figures)} for {list(RECORDED[name])}"
    found = {what: apart(values, RECORDED[name][what]) for what, values in figures.items()}
    limits = {"forward": 2e-5}  # sums of many elements: gradients within 2e-4
    return {what: by for what, by in found.items() if isinstance(by, str) or by > limits.get(what, 2e-4)}


@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
def test_figures_are_those_of_mindspore(mode):
    mindspore.set_context(mode=getattr(mindspore, mode))
    try:
        found = {name: differences(name) for name in RECORDED}
    finally:
        mindspore.set_context(mode=mindspore.GRAPH_MODE)
    assert {name: by for name, by in found.items() if by} == {}
