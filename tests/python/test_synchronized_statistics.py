"""SyncBatchNorm has the statistics of one process, however the workers share the batch."""

import re

import pytest
from job import Job, run_alone

TRAINS = """
import os
import mindspore as ms
import numpy as np
from mindspore import dataset as ds, nn, ops
in_job = "MS_ROLE" in os.environ
if in_job:
    ms.communication.init()
    CONTEXT
ms.set_seed(1)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Dense(6, 8), nn.SyncBatchNorm(8), nn.Dense(8, 4)
        if in_job and STAGES:
            self.first.pipeline_stage = self.norm.pipeline_stage = 0
            self.last.pipeline_stage = 1
    def construct(self, x):
        x = self.norm(ops.reshape(self.first(x), (-1, 8, 1, 1)))
        return self.last(ops.relu(ops.reshape(x, (-1, 8))))
random = np.random.default_rng(1)
x, y = random.normal(size=(32, 6)).astype(np.float32), random.integers(0, 4, 32).astype(np.int32)
net = Net()
step = nn.WithLossCell(net, nn.CrossEntropyLoss())
if STAGES:
    step = nn.PipelineCell(step, 2)
model = ms.train.Model(step, optimizer=nn.SGD(net.trainable_params(), 0.05))
model.train(1, ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(8), dataset_sink_mode=False)
for name, value in model.gather_parameters().items():
    print("sum", name.removeprefix("network."), float(np.square(value.asnumpy()).sum()))
"""
WAYS = {
    "a plan": 'parallel_mode="auto_parallel", search_mode="recursive_programming", full_batch=True',
    "the whole batch in each": 'parallel_mode="semi_auto_parallel", full_batch=True',
    "stages": 'parallel_mode="semi_auto_parallel", full_batch=True, pipeline_stages=2',
}


def sums(text):
    found = {name: float(value) for name, value in re.findall(r"sum (\S+) (\S+)", text)}
    assert len(found) == 8
    return found


@pytest.mark.parametrize("way", WAYS)
def test_it_has_the_moving_statistics_of_one_process_with(way):
    script = TRAINS.replace("STAGES", repr(way == "stages"))
    code, alone, errors = run_alone(script)
    assert code == 0, errors
    with Job(script.replace("CONTEXT", f"ms.set_auto_parallel_context({WAYS[way]})"), workers=2) as job:
        assert {process.wait(120) for process in job.everybody()} == {0}
        texts = [worker.output() for worker in job.workers]
    for text in texts:
        assert sums(text) == pytest.approx(sums(alone), rel=1e-4)
