"""Flight recorders of a run of Muster in PyTorch's format, read by its analyzer."""

import os
import subprocess
from pathlib import Path

from peers import PROGRAM, ROOT, SECONDS_MAX, environment, needs

pytestmark = needs("TORCH")
SCRIPT = """
import os
import numpy
import muster

muster.init()
x = muster.Tensor(numpy.ones(10, numpy.float32))
for _ in range(5):
    muster.ops.all_reduce(x, "sum")
if muster.get_rank() == 1:
    os.abort()
muster.ops.all_reduce(x, "sum")
"""


def test_the_analyzer_names_who_did_not_come_to_a_call(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    python = os.environ["MUSTER_PEER_TORCH"]
    there = environment(PYTHONPATH=str(ROOT / "build/python"))
    run = {"cwd": tmp_path, "env": there, "capture_output": True, "text": True, "timeout": SECONDS_MAX}
    job = [str(PROGRAM), "run", "-n", "3", "--log-dir", "logs", python, "train.py"]
    assert subprocess.run(job, **run, check=False).returncode != 0
    trace = [python, "-m", "muster.torch", "trace", "logs", "traces"]
    done = subprocess.run(trace, **run, check=True)
    assert "torchfrtrace --prefix rank_ traces" in done.stdout
    analyzer = str(Path(python).parent / "torchfrtrace")
    read = subprocess.run([analyzer, "--prefix", "rank_", "traces"], **run, check=True)
    assert "missing ranks: {1}" in read.stdout + read.stderr
    assert "collective: c10d:all_reduce" in read.stdout + read.stderr
    nowhere = subprocess.run([*trace[:-2], "traces", "more"], **run, check=False)
    assert "traces has no flight recorders" in nowhere.stderr
