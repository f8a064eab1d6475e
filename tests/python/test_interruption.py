"""Ctrl-C while a worker waits for others that do not come: it ends at once, and the others are told."""

import os
import re
import signal
import time

import pytest
from job import Job

PREAMBLE = """
import muster as ms
from muster import nn, train
from muster.dataset import NumpySlicesDataset
import numpy as np

ms.init()
ms.set_seed(1)
rank = ms.get_rank()
net = nn.Dense(4, 2)
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 1e-2)
rows = (np.ones((40, 4), np.float32), np.ones(40, np.int32))
dataset = NumpySlicesDataset(rows, ["data", "label"], shuffle=False).batch(1)

def block_at(step):
    if step == 20 and rank == 1:
        open(FOLDER + "/pipe").read()  # until somebody writes there
"""
KINDS = {
    "Model": """
class Blocks(train.Callback):
    def on_train_step_end(self, context):
        block_at(context.original_args().cur_step_num)

ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
train.Model(net, loss_fn, optimizer).train(1, dataset, Blocks())
""",
    "a loop by hand": """
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
reducer = nn.DistributedGradReducer(optimizer.parameters)
for step, (data, label) in enumerate(dataset.create_tuple_iterator(num_epochs=1)):
    block_at(step)
    loss, grads = grad_fn(data, label)
    optimizer(reducer(grads))
""",
}
ENDS_WITHIN = 4  # seconds; promised are two


def script(kind, folder):
    return (PREAMBLE + KINDS[kind]).replace("FOLDER", repr(str(folder)))


@pytest.fixture(name="pipe")
def pipe_fixture(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def job_that_waits(script, **variables):
    """Of which workers 0 and 2 wait for worker 1, and say so."""
    return Job(script, 3, MUSTER_STUCK_LIMIT="1", **variables)


def wait_until_they_wait(job):
    job.workers[0].wait_for_line(r"rank 1: in the script .* ranks 0, 2: in all_reduce")


@pytest.mark.parametrize("transport", ["auto", "tcp"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_waits_for_another_ends_at_once_and_the_others_with_it(pipe, kind, transport):
    with job_that_waits(script(kind, pipe.parent), MUSTER_TRANSPORT=transport) as job:
        wait_until_they_wait(job)
        begin = time.monotonic()
        job.workers[0].signal(signal.SIGINT)
        assert job.workers[0].wait() != 0
        assert time.monotonic() - begin < ENDS_WITHIN
        assert "KeyboardInterrupt" in job.workers[0].output()
        for process in (job.scheduler, *job.workers[1:]):
            assert process.wait() != 0
        assert re.search(r"worker 0 .* failed: KeyboardInterrupt$", job.scheduler.output())


def test_a_handler_that_does_not_raise_runs_meanwhile_and_the_job_goes_on(pipe):
    notes = "import signal\nsignal.signal(signal.SIGINT, lambda *_: print('noted', flush=True))\n"
    with job_that_waits(notes + script("Model", pipe.parent)) as job:
        wait_until_they_wait(job)
        job.workers[0].signal(signal.SIGINT)
        job.workers[0].wait_for_line("noted")
        pipe.write_text("go on")
        for process in job.everybody():
            assert process.wait() == 0, process.output()
