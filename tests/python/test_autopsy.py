"""`muster autopsy`: which rank of a job diverged first, while it hangs and after its end."""

import re
import subprocess

import pytest
from job import PATIENCE, Process, clean_environment
from pages import MUSTER
from places import SEARCH_PATH

ENVIRONMENT = {**clean_environment(), "PATH": SEARCH_PATH}

BEGIN = """
import os, pathlib, signal
import numpy
import muster
from muster import ops
muster.init()
rank = muster.get_rank()
def together(size=4):
    return ops.all_reduce(muster.Tensor(numpy.ones(size, numpy.float32))).asnumpy()
for _ in range(3):
    together()
def wait():
    print("waits", flush=True)
    while not pathlib.Path("go").exists():
        pass
"""


def start(folder, script, workers=3, *options):
    (folder / "train.py").write_text(BEGIN + script)
    command = [MUSTER, "run", "-n", str(workers), "--run-folder", "logs", *options, "train.py"]
    return Process("run", ["env", "-C", str(folder), *command], ENVIRONMENT)


def ask(folder, name="logs"):
    return subprocess.run(
        [MUSTER, "autopsy", name],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def autopsy(folder):
    done = ask(folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_rank_that_does_not_come_is_named_while_the_job_hangs(tmp_path):
    process = start(tmp_path, "if rank == 1: wait()\ntogether()\n")
    try:
        process.wait_for_line("waits")
        missed = "it did not come to all_reduce #4 (4 x float32, sum), in which ranks 0, 2 waited"
        while missed not in (text := autopsy(tmp_path)):  # those who have waited for a second
            assert process._popen.poll() is None
        assert "Rank 1 is the first that the others missed" in text
        assert re.search(r"its last call: all_reduce #3 .*, completed at \d\d:\d\d:\d\d", text)
        (tmp_path / "go").touch()
        assert process.wait() == 0
    finally:
        process.end()
    assert "No rank diverged" in autopsy(tmp_path)


def test_a_rank_that_was_killed_is_named_with_its_end(tmp_path):
    process = start(tmp_path, "if rank == 2: os.kill(os.getpid(), signal.SIGKILL)\ntogether()\n")
    assert process.wait() == 137
    text = autopsy(tmp_path)
    assert text.startswith("logs: train.py, 3 ranks, failed (137)")
    assert "Rank 2 is the first that the others missed" in text
    assert re.search(r"worker 2 \(pid \d+\) was killed by signal 9", text)


def test_a_rank_that_calls_something_else_is_named_with_both_calls(tmp_path):
    process = start(tmp_path, "together(5 if rank == 0 else 4)\n")
    assert process.wait() != 0
    text = autopsy(tmp_path)
    assert re.search(r"different calls: rank 0 called all_reduce #4 \(5 x float32, sum\) at", text)
    assert "where ranks 1, 2 called all_reduce #4 (4 x float32, sum)" in text


def test_a_script_that_raises_on_one_rank_is_named_with_its_exit_status(tmp_path):
    process = start(tmp_path, "if rank == 1: raise ValueError('no column')\ntogether()\n")
    assert process.wait() == 1
    text = autopsy(tmp_path)
    assert "Rank 1 is the first that the others missed" in text
    assert "it left the job with exit status 1" in text


def test_a_rank_that_raises_behind_its_last_call_is_named_with_its_error(tmp_path):
    process = start(tmp_path, "if rank == 1: raise ValueError('no column')\n")
    assert process.wait() == 1
    text = autopsy(tmp_path)
    assert "No rank diverged" in text
    assert re.search(
        r"What ended badly, the first of it first:\n  worker 1 \(pid \d+\) exited with code 1", text
    )
    assert "failed: ValueError: no column" in text


def test_without_a_recorder_there_is_no_autopsy(tmp_path):
    (tmp_path / "train.py").write_text("")
    subprocess.run(
        [MUSTER, "run", "-n", "1", "--run-folder", "logs", "train.py"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        timeout=PATIENCE,
    )
    done = ask(tmp_path)
    assert done.returncode == 1
    assert "there is no flight recorder in 'logs/flight'" in done.stderr


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_what_is_no_run_is_said(tmp_path, name):
    done = ask(tmp_path, name)
    assert done.returncode == 1
    assert "there is no folder 'nowhere'" in done.stderr or "'.' is no folder of a run" in done.stderr
