"""How the processes of a job begin and end, seen from Python scripts."""

import signal
import subprocess
import sys

import pytest
from digits import write_digits
from jobs import Job, clean_environment

RANKS = """
import muster
muster.init()
print(muster.get_rank(), muster.get_group_size(), muster.get_local_rank(), muster.get_local_rank_size())
"""


def test_workers_get_ranks_and_everybody_ends_well(tmp_path):
    with Job(tmp_path, RANKS, workers=3) as job:
        job.start_all()
        results = job.finish()
    assert {status for status, _, _ in results.values()} == {0}
    assert [results[f"worker {rank}"][1] for rank in range(3)] == [
        f"{rank} 3 {rank} 3\n" for rank in range(3)
    ]
    assert results["scheduler"][1:] == ("", "")


def test_the_scheduler_loads_no_numpy_and_its_script_ends_in_init(tmp_path):
    script = """
import muster
try:
    muster.init()
except BaseException as error:
    print("caught", error)
finally:
    print("went on", muster.get_rank())
"""
    with Job(tmp_path, script, workers=1, options=["-X", "importtime"]) as job:
        job.start_all()
        results = job.finish()
    assert results["worker 0"][:2] == (0, "went on 0\n")
    status, out, err = results["scheduler"]
    assert (status, out) == (0, "")
    assert "muster._core" in err and "numpy" not in err


def test_an_uncaught_exception_of_one_worker_is_the_reason_that_all_others_give(tmp_path):
    script = """
import muster
muster.init()
if muster.get_rank() == 1:
    raise ValueError("bad")
reducer = muster.nn.DistributedGradReducer([muster.Parameter([1.0], name="w")])
while True:
    reducer([muster.Tensor([1.0])])
"""
    with Job(tmp_path, script, workers=3) as job:
        job.start_all()
        results = job.finish()
    assert all(status != 0 for status, _, _ in results.values())
    assert "ValueError: bad" in results["worker 1"][2]
    for name in ("worker 0", "worker 2", "scheduler"):
        assert "worker 1" in results[name][2] and "ValueError: bad" in results[name][2], name


def test_an_exit_status_is_the_workers_own_and_fails_the_job(tmp_path):
    script = """
import sys
import muster
muster.init()
if muster.get_rank() == 0:
    sys.exit(3)
import threading
threading.Event().wait(20)
"""
    with Job(tmp_path, script, workers=2) as job:
        job.start_all()
        results = job.finish()
    assert results["worker 0"][0] == 3
    assert results["worker 1"][0] not in (0, None)
    assert "status 3" in results["scheduler"][2]


def test_what_was_printed_before_a_job_fails_is_not_lost(tmp_path):
    script = """
import os, signal, threading
import muster
muster.init()
print("before", muster.get_rank())
if muster.get_rank() == 0:
    os.kill(os.getpid(), signal.SIGKILL)
threading.Event().wait(20)
"""
    with Job(tmp_path, script, workers=2) as job:
        job.start_all()
        results = job.finish()
    assert results["worker 0"][0] == -signal.SIGKILL
    status, out, err = results["worker 1"]
    assert status not in (0, None)
    assert out == "before 1\n"
    assert "worker 0" in err


@pytest.mark.parametrize("role", ["MS_WORKER", "MS_SCHED"])
def test_control_c_ends_a_process_that_waits_for_others(tmp_path, role):
    script = """
import sys
import muster
print("waiting", flush=True)
muster.init()
"""
    with Job(tmp_path, script, workers=2) as job:
        process = job.start("alone", MS_ROLE=role)
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        status, _, err = job.finish(timeout=5)["alone"]
    assert status not in (0, None)
    assert "KeyboardInterrupt" in err


def run(code, **variables):
    environment = {**clean_environment(), **variables}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=30
    )


def test_init_without_a_role_says_what_to_do():
    done = run("import muster; muster.init()")
    assert done.returncode != 0
    assert "MS_ROLE" in done.stderr and "muster run" in done.stderr


def test_a_bad_variable_is_a_value_error_that_names_it():
    code = "import muster\ntry: muster.init()\nexcept ValueError as error: print(error)"
    variables = {
        "MS_ROLE": "MS_WORKER",
        "MS_WORKER_NUM": "2",
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": "80",
    }
    done = run(code, **variables)
    assert "MS_SCHED_PORT" in done.stdout and "80" in done.stdout


def test_the_rank_before_init_is_an_error_that_says_so():
    done = run("import muster; muster.get_rank()")
    assert "call init() first" in done.stderr


def test_a_pass_with_a_python_function_that_is_still_open_does_not_keep_the_process(tmp_path):
    write_digits(tmp_path, 40)
    code = f"""
import muster
items = iter(muster.dataset.MnistDataset({str(tmp_path)!r}).map(lambda image: image * 2, "image").repeat())
next(items)
print("done")
"""
    done = run(code)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


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
    with Job(tmp_path, script, workers=1) as job:
        process = job.start("alone")
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        status, out, _ = job.finish(timeout=15)["alone"]
    assert status == 0 and "interrupted" in out
