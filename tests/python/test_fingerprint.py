"""Processes of a job that differ are named before the first step; with MUSTER_STRICT=1 that is an error."""

import re
import sys

import pytest
from job import Job, Process, clean_environment

PLAIN = """
import muster as ms
ms.init()
print("rank", ms.get_rank())
"""

SEEDED = """
import os
import muster as ms
from muster import nn

ms.init()
ms.set_seed(7 if os.environ["MS_NODE_ID"] == "1" else 5)
net = nn.Dense(4, 2, weight_init="zeros", has_bias=False)
reducer = nn.DistributedGradReducer(net.trainable_params())
reducer(tuple(ms.Tensor(p.asnumpy()) for p in net.trainable_params()))
print("reduced")
"""

SIZED = """
import numpy
import muster as ms
from muster import nn
from muster.dataset import NumpySlicesDataset

ms.init()
ms.set_seed(5)
ms.set_auto_parallel_context(parallel_mode="data_parallel")
rows = 100 + ms.get_rank()
data = (numpy.zeros((rows, 4), numpy.float32), numpy.zeros(rows, numpy.int32))
dataset = NumpySlicesDataset(data, ["x", "y"], num_shards=2, shard_id=ms.get_rank())
dataset = dataset.batch(10, drop_remainder=True)
net = nn.Dense(4, 2)
model = ms.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
model.train(1, dataset)
print("trained")
"""


def second_worker(job, script):
    """A worker 1 of a job of two that runs something else than the others."""
    environment = {**clean_environment(), **job._variables, "MS_ROLE": "MS_WORKER", "MS_NODE_ID": "1"}
    job.workers.append(Process("worker 1", [sys.executable, "-u", "-c", script], environment))


@pytest.mark.parametrize("strict", ["0", "1"])
def test_another_script_is_named_before_the_job_begins(strict):
    with Job(PLAIN, workers=1, MS_WORKER_NUM="2", MUSTER_STRICT=strict) as job:
        second_worker(job, PLAIN + "\nprint('more')")
        codes = [process.wait() for process in job.everybody()]
        for process in job.everybody():
            text = process.output()
            assert re.search(
                r"the processes of this job differ: script is '\w+' at rank [01], '\w+' at", text
            ), text
            assert "' at rank 0" in text and "' at rank 1" in text, text
        assert (codes == [0, 0, 0]) == (strict == "0"), codes


def test_equal_processes_are_no_news():
    with Job(PLAIN, workers=2, MUSTER_STRICT="1") as job:
        for process in job.everybody():
            assert process.wait() == 0
            assert "differ" not in process.output()


@pytest.mark.parametrize(
    ("script", "done", "words"),
    [
        (SEEDED, "reduced", "the workers of this job differ: seed is '5' at rank 0, '7' at rank 1"),
        (SIZED, "trained", "the dataset's number of rows is '100' at rank 0, '101' at rank 1"),
    ],
)
@pytest.mark.parametrize("strict", ["0", "1"])
def test_seeds_and_rows_are_compared_before_the_first_step(script, done, words, strict):
    with Job(script, workers=2, MUSTER_STRICT=strict) as job:
        codes = [worker.wait() for worker in job.workers]
        texts = [worker.output() for worker in job.workers]
        assert all(words in text for text in texts), texts
        assert [done in text for text in texts] == [strict == "0"] * 2, texts
        assert (codes == [0, 0]) == (strict == "0"), texts
