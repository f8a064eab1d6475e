"""Real MindSpore 2.7.0 loads the MindIR files that Muster exports, and computes the same."""

import os
import sys

from peers import ROOT, lines_of, needs

pytestmark = needs("MINDSPORE")

LEFT_OUT = 7  # branches, loops, masks, updates of parameters, and labels to ignore


def test_mindspore_computes_what_muster_exported(tmp_path):
    packages = [str(ROOT / "build/python"), str(ROOT / "build/python_compat")]
    *left_out, written = lines_of(
        sys.executable, "mindir_writer.py", str(tmp_path), PYTHONPATH=os.pathsep.join(packages)
    )
    assert len(left_out) == LEFT_OUT, left_out
    lines = lines_of(os.environ["MUSTER_PEER_MINDSPORE"], "mindir_reader.py", str(tmp_path))
    assert lines[-1] == written.replace("written", "agree"), lines[-30:]
    assert int(written.split()[0]) > 150
