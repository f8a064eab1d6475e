"""The examples of MindSpore's docstrings give under Muster what they give under MindSpore 2.7.0."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from peers import ROOT, environment, needs

SECONDS_MAX = 3600

pytestmark = [needs("MINDSPORE"), pytest.mark.timeout(3 * SECONDS_MAX)]

TOOL = Path(__file__).with_name("docstrings.py")
EQUAL_MIN = 97.0  # per cent, of the names that Muster provides


def run(python: str, *words: str, **variables: str) -> str:
    done = subprocess.run(
        [python, str(TOOL), *words],
        env=environment(OMP_NUM_THREADS="1", **variables),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def test_examples_of_provided_names_give_the_same(tmp_path):
    mindspore = os.environ["MUSTER_PEER_MINDSPORE"]
    run(mindspore, "sources", str(tmp_path / "sources.json"))
    run(mindspore, "answers", str(tmp_path / "sources.json"), str(tmp_path / "answers.json"))
    paths = os.pathsep.join([str(ROOT / "build/python_compat"), str(ROOT / "build/python")])
    told = run(sys.executable, "compare", str(tmp_path / "answers.json"), PYTHONPATH=paths)
    print(told)
    assert float(told.split()[-2]) >= EQUAL_MIN, told[-20000:]
