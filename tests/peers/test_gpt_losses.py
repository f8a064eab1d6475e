"""Real MindSpore 2.7.0 beside Muster: a GPT that begins with the same weights has the same losses."""

import json
import os
import sys

import pytest
from peers import ROOT, lines_of, needs

pytestmark = needs("MINDSPORE")

TOLERANCE = 1e-5


def losses(python, mode, **variables):
    return json.loads(lines_of(python, "gpt_losses.py", mode, **variables)[-1])


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_thirty_steps_of_a_gpt_have_mindspores_losses(mode, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MindSpore writes files where it runs
    packages = [str(ROOT / "build/python"), str(ROOT / "build/python_compat")]
    ours = losses(sys.executable, mode, PYTHONPATH=os.pathsep.join(packages))
    theirs = losses(os.environ["MUSTER_PEER_MINDSPORE"], mode)
    assert len(ours) == len(theirs) == 30
    assert ours[-1] < ours[0] / 1.5, ours
    assert max(abs(a - b) / b for a, b in zip(ours, theirs, strict=True)) < TOLERANCE, (ours, theirs)
