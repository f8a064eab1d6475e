"""`muster run` and a job that fails: who is blamed, what is repeated last, with which code it exits."""

import os
import subprocess

import pytest
from places import BUILD, PACKAGES, SEARCH_PATH

SCRIPT = """
import os, signal, sys
import numpy
import muster
from muster import nn

muster.init()
net = nn.Dense(4, 2)
reducer = nn.DistributedGradReducer(net.trainable_params())
gradients = tuple(muster.Tensor(numpy.ones(p.shape, numpy.float32)) for p in net.trainable_params())
for step in range(100000):
    reducer(gradients)
    if muster.get_rank() == 1 and step == 50:
        print("the last words", flush=True)
        ENDING
"""


@pytest.mark.parametrize(
    ("ending", "code", "verdict", "last"),
    [
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            128 + 9,
            "was killed by signal 9 (Killed)",
            "the last words",
        ),
        ("sys.exit(3)", 3, "exited with code 3", "the last words"),
        ("raise ValueError('no such column')", 1, "exited with code 1", "ValueError: no such column"),
    ],
)
def test_the_worker_that_failed_is_blamed_and_its_message_is_repeated_last(
    tmp_path, ending, code, verdict, last
):
    (tmp_path / "train.py").write_text(SCRIPT.replace("ENDING", ending))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    environment |= {
        "PYTHONPATH": str(PACKAGES),
        "PATH": SEARCH_PATH,
    }
    command = [BUILD / "apps/muster/muster", "run", "-n", "3", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)

    print(done.stdout, done.stderr)  # shown when the test fails
    assert done.returncode == code
    lines = done.stderr.splitlines()
    assert f"muster: the job failed: worker 1 {verdict}; its last lines:" in lines
    assert lines[-1] == f"[worker 1] {last}"
    others = [line for line in lines if line.startswith(("[worker 0]", "[worker 2]", "[scheduler]"))]
    assert any("worker 1" in line for line in others)
