"""Real MindSpore 2.7.0 loads the MindIR files that Muster exports, and computes the same."""

import os
import subprocess
import sys

from peers import ROOT, SCRIPTS, SECONDS_MAX, environment, needs

pytestmark = needs("MINDSPORE")

LEFT_OUT = 7  # branches, loops, masks, updates of parameters, and labels to ignore


def run(python, script, folder, **variables):
    done = subprocess.run(
        [python, str(SCRIPTS / script), str(folder)],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout.splitlines()


def test_mindspore_computes_what_muster_exported(tmp_path):
    packages = [str(ROOT / "build/python"), str(ROOT / "build/python_compat")]
    *left_out, written = run(
        sys.executable, "mindir_writer.py", tmp_path, PYTHONPATH=os.pathsep.join(packages)
    )
    assert len(left_out) == LEFT_OUT, left_out
    lines = run(os.environ["MUSTER_PEER_MINDSPORE"], "mindir_reader.py", tmp_path)
    assert lines[-1] == written.replace("written", "agree"), lines[-30:]
    assert int(written.split()[0]) > 150
