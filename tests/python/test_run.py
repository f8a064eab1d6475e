"""`muster run` and a job that fails: who is blamed, what is repeated last, with which code it exits."""

import os
import re
import signal
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


# The C library runs the exit handler first that was registered last: this one comes after that of init(),
# which tells the scheduler, and waits for the end of standard input.
HELD_SCRIPT = """
import ctypes, os, sys

if os.environ["MS_NODE_ID"] == "1":
    os.dup2(os.open("held", os.O_RDONLY), 0)
    libc = ctypes.CDLL(None)
    libc.on_exit(libc.getchar, None)

import numpy
import muster
from muster import nn

muster.init()
net = nn.Dense(4, 2)
reducer = nn.DistributedGradReducer(net.trainable_params())
gradients = tuple(muster.Tensor(numpy.ones(p.shape, numpy.float32)) for p in net.trainable_params())
try:
    for step in range(100000):
        reducer(gradients)
        if muster.get_rank() == 1 and step == 50:
            raise RuntimeError("the disk is full")
except Exception as error:
    if TELLS:
        raise
    sys.exit(3)
"""


@pytest.mark.parametrize("tells", [True, False])
def test_the_worker_that_failed_is_blamed_where_those_that_were_told_end_before_it(tmp_path, tells):
    os.mkfifo(tmp_path / "held")
    held = os.open(tmp_path / "held", os.O_RDWR | os.O_CLOEXEC)
    (tmp_path / "train.py").write_text(HELD_SCRIPT.replace("TELLS", str(tells)))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    environment |= {"PYTHONPATH": str(PACKAGES), "PATH": SEARCH_PATH}
    command = [BUILD / "apps/muster/muster", "run", "-n", "3", "train.py"]
    lines, awaited = [], {"0", "2"}
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as launcher:
        for line in launcher.stderr:
            lines.append(line)
            awaited -= set(re.findall(r"^muster: worker (\d) \(pid", line))
            if not awaited and held is not None:
                held = os.close(held)

    print(*lines)  # shown when the test fails
    assert held is None, "the others have to end first"
    assert launcher.returncode == (1 if tells else 3)
    assert any(line.startswith("muster: the job failed: worker 1 ") for line in lines)


IN_ORDER = """
import signal
import muster

muster.init()  # the scheduler never leaves it
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
for step in range(10**9):
    ends = muster.ops.all_reduce(muster.Tensor([len(asked)], dtype=muster.int32), "max").asnumpy()[0]
    if step == 5:
        print("runs", flush=True)
    if ends:
        break
for _ in range(200):  # what is to be saved takes the workers some calls more
    muster.ops.all_reduce(muster.Tensor([1], dtype=muster.int32))
print("has saved", flush=True)
"""


def test_workers_that_handle_sigterm_end_in_order_when_the_launcher_gets_it(tmp_path):
    (tmp_path / "train.py").write_text(IN_ORDER)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MS_")}
    environment |= {"PYTHONPATH": str(PACKAGES), "PATH": SEARCH_PATH}
    command = [BUILD / "apps/muster/muster", "run", "-n", "2", "train.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as launcher:
        assert [launcher.stdout.readline()[-5:] for _ in range(2)] == ["runs\n"] * 2
        launcher.send_signal(signal.SIGTERM)
        out, error = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, error
    assert out.count("has saved") == 2
    assert "all processes exited with code 0" in error.splitlines()[-1]
