"""How single processes begin and end; how whole jobs end is in test_job.py."""

import signal
import sys

import pytest
from digits import write_digits
from job import Job, Process, clean_environment, run_alone

WORKER = {
    "MS_ROLE": "MS_WORKER",
    "MS_WORKER_NUM": "2",
    "MS_SCHED_HOST": "127.0.0.1",
    "MS_SCHED_PORT": "8118",
}


def start_alone(script, **variables):
    return Process("alone", [sys.executable, "-c", script], {**clean_environment(), **variables})


def test_workers_get_ranks_and_everybody_ends_well():
    script = """
import muster
muster.init()
print(muster.get_rank(), muster.get_group_size(), muster.get_local_rank(), muster.get_local_rank_size())
"""
    with Job(script, workers=3, unbuffered=False) as job:
        assert [process.wait() for process in job.everybody()] == [0, 0, 0, 0]
        assert [worker.output() for worker in job.workers] == [f"{rank} 3 {rank} 3" for rank in range(3)]
        assert job.scheduler.output() == ""


def test_the_scheduler_loads_no_numpy():
    with Job("import muster; muster.init()", workers=1, PYTHONPROFILEIMPORTTIME="1") as job:
        assert job.scheduler.wait() == 0
        text = job.scheduler.output()
        assert "muster._core" in text and "numpy" not in text


@pytest.mark.parametrize("role", ["MS_WORKER", "MS_SCHED"])
def test_control_c_ends_a_process_that_waits_for_others(role):
    process = start_alone(
        "import muster; print('waiting', flush=True); muster.init()", **{**WORKER, "MS_ROLE": role}
    )
    try:
        process.wait_for_line("waiting")
        process.signal(signal.SIGINT)
        assert process.wait(timeout=5) != 0
        assert "KeyboardInterrupt" in process.output()
    finally:
        process.end()


def test_a_bad_variable_is_a_value_error_that_names_it():
    code = "import muster\ntry: muster.init()\nexcept ValueError as error: print(error)"
    status, text, _ = run_alone(code, **{**WORKER, "MS_SCHED_PORT": "80"})
    assert status == 0
    assert "MS_SCHED_PORT" in text and "80" in text


def test_the_rank_before_init_is_an_error_that_says_so():
    status, text, _ = run_alone("import muster; muster.get_rank()")
    assert status == 1
    assert "call init() first" in text


def test_a_pass_with_a_python_function_that_is_still_open_does_not_keep_the_process(tmp_path):
    write_digits(tmp_path, 40)
    code = f"""
import muster
items = iter(muster.dataset.MnistDataset({str(tmp_path)!r}).map(lambda image: image * 2, "image").repeat())
next(items)
print("done")
"""
    status, text, _ = run_alone(code)
    assert (status, text) == (0, "done")


def test_control_c_ends_the_wait_for_an_item(tmp_path):
    digits = tmp_path / "digits"
    write_digits(digits, 40)
    script = f"""
import threading
import muster
from muster.dataset import MnistDataset
interrupted = threading.Event()

def waits(image):
    print("waiting", flush=True)
    interrupted.wait(20)
    return image

items = iter(MnistDataset({str(digits)!r}).map(waits, "image"))
try:
    next(items)
except KeyboardInterrupt:
    print("interrupted")
    interrupted.set()
"""
    process = start_alone(script)
    try:
        process.wait_for_line("waiting")
        process.signal(signal.SIGINT)
        assert process.wait(timeout=15) == 0
        assert "interrupted" in process.output()
    finally:
        process.end()
