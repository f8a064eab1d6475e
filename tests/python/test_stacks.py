"""`muster status --stacks`: where each process is in its code, told by the process itself."""

import json
import os
import re
import signal
import subprocess

import pytest
from job import PATIENCE, Job, Process, clean_environment
from pages import MUSTER
from places import SEARCH_PATH

ENVIRONMENT = {**clean_environment(), "PATH": SEARCH_PATH}

SCRIPT = """
import ctypes, os, threading, time
import numpy
import muster
from muster import ops

def sleeps():
    time.sleep(600)

def spins():
    while True:
        pass

def joins_alone():
    ops.all_reduce(muster.Tensor(numpy.ones(4, numpy.float32)))

def holds_the_interpreter():
    ctypes.PyDLL(None).read(os.pipe()[0], ctypes.create_string_buffer(1), 1)

def helps():
    threading.Event().wait()

muster.init()
rank = muster.get_rank()
if rank == 0:
    threading.Thread(target=helps, name="helper", daemon=True).start()
print("there", flush=True)
[sleeps, spins, joins_alone, holds_the_interpreter][rank]()
"""


def ask(port, *options):
    return subprocess.run(
        [MUSTER, "status", "--scheduler", f"127.0.0.1:{port}", "--stacks", *options],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def stacks(port, *options):
    """By rank: what `muster status --stacks` says of each."""
    done = ask(port, "--json", *options)
    assert done.returncode == 0, done.stderr
    return {each["rank"]: each for each in json.loads(done.stdout)["processes"]}


@pytest.fixture
def job():
    with Job(SCRIPT, 4) as job:
        for worker in job.workers:
            worker.wait_for_line("there")
        yield job


def until(port, words):
    """Asked again until each rank's stacks have its words: it says that it is there a moment before."""
    for _ in range(50):
        found = stacks(port)
        calls = found[2]["doing"].startswith("in all_reduce")  # as the heartbeat has said
        if calls and all(word in (found[rank]["stacks"] or "") for rank, word in words.items()):
            return found
    raise AssertionError(json.dumps(found, indent=2))


def test_each_rank_says_where_it_hangs(job):
    found = until(job.port, dict(enumerate(["sleeps", "spins", "joins_alone", "holds_the_interpreter"])))
    assert re.search(r'File ".*", line 8, in sleeps\n.*in <module>', found[0]["stacks"])
    assert "Python, main thread" in found[0]["stacks"]
    assert "Python, thread helper" in found[0]["stacks"] and "in helps" in found[0]["stacks"]
    assert re.search(r"line 1[12], in spins", found[1]["stacks"])
    assert "of the interpreter" in found[1]["stacks"]
    assert re.search(r"#\d+ muster::collective::\S+", found[2]["stacks"])
    assert "holds" not in found[2]["stacks"]
    assert "has not let go of the interpreter lock" in found[3]["stacks"]
    assert re.search(r'File ".*", line 18 in holds_the_interpreter', found[3]["stacks"])


def test_the_job_is_not_disturbed(job):
    before = stacks(job.port)
    for _ in range(3):
        assert stacks(job.port, "--rank", "1").keys() == {1}
    assert {rank: each["pid"] for rank, each in stacks(job.port).items()} == {
        rank: each["pid"] for rank, each in before.items()
    }


def test_a_process_that_is_stopped_is_named_as_such(job):
    job.workers[0].signal(signal.SIGSTOP)
    try:
        found = stacks(job.port)
        stopped = next(each for each in found.values() if each["pid"] == job.workers[0].pid)
        assert "has not answered for 3.5 s" in stopped["problem"] and "stopped" in stopped["problem"]
        assert sum(each["problem"] is None for each in found.values()) == 3
    finally:
        job.workers[0].signal(signal.SIGCONT)


def test_what_cannot_be_asked_is_refused_with_the_reason(job):
    done = ask(job.port, "--rank", "4")
    assert done.returncode == 1
    assert "there is no worker 4 in this job: it has 0 to 3" in done.stderr
    assert "it has none" in ask(job.port, "--server", "0").stderr
    for options, words in [
        (["--rank", "0", "--server", "0"], "two processes"),
        (["--watch"], "leave out --watch"),
    ]:
        done = ask(job.port, *options)
        assert done.returncode == 2 and words in done.stderr


STUCK = """
import time
import muster as ms
from muster import nn

ms.init()
net = nn.Dense(4, 2)
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 1e-2)
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
reducer = nn.DistributedGradReducer(optimizer.parameters)

def forgets_the_others():
    time.sleep(600)

for step in range(30):
    if step == 20 and ms.get_rank() == 1:
        forgets_the_others()
    loss, grads = grad_fn(ms.Tensor([[1.0, 2.0, 3.0, 4.0]]), ms.Tensor([1], ms.int32))
    optimizer(reducer(grads))
"""


def test_stacks_of_a_stuck_job_are_in_the_autopsy(tmp_path):
    (tmp_path / "train.py").write_text(STUCK)
    process = Process(
        "run",
        ["env", "-C", str(tmp_path), MUSTER, "run", "-n", "2", "--run-folder", "logs", "train.py"],
        {**ENVIRONMENT, "MUSTER_STUCK_LIMIT": "2"},
    )
    try:
        process.wait_for_line("no step has been finished")
        for _ in range(20):
            text = subprocess.run(
                [MUSTER, "autopsy", "logs"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
            ).stdout
            if "where it was at" in text:
                break
        assert "Rank 1 is the first that the others missed" in text
        assert re.search(r"where it was at \d\d:\d\d:\d\d.*\n.*Python, main thread", text)
        assert "in forgets_the_others" in text
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait()
