"""Attributes of cells that steps change in jobs that recover: no recovery point holds them."""

import re

import pytest
from job import Job

SCRIPT = """
import numpy as np
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn, ops, train
from mindspore.communication import init, get_rank

init()
ms.set_context(mode=ms.MODE)
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
ms.set_seed(1)
rows = np.random.default_rng(1).random((24, 6)).astype(np.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :2]), ["x", "y"], num_shards=2, shard_id=get_rank()).batch(4)

class Ranged(nn.Cell):
    def __init__(self):
        super().__init__()
        self.steps = 0
        self.high = ms.Parameter(ms.Tensor(1.0, ms.float32), name="high", requires_grad=False)

    def construct(self, x):
        self.steps += 1
        ops.assign(self.high, self.high * 0.9 + ops.abs(x).max() * 0.1)
        return x / self.high

net = nn.SequentialCell(nn.Dense(6, 8), Ranged(), nn.Dense(8, 2))
model = train.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.05, 0.9), metrics={"mse"})
CALL
"""
TRAIN, FIT = "model.train(2, data, callbacks=train.LossMonitor())", "model.fit(2, data, data)"


def told(folder, mode, call, more="1", **variables):
    script = SCRIPT.replace("ms.MODE", f"ms.{mode}").replace("CALL", call).replace("+= 1", f"+= {more}")
    with Job(script, 2, MS_RECOVERY_PATH=str(folder / "recovery"), **variables) as job:
        assert [process.wait() for process in job.everybody()] == [0, 0, 0]
        texts = [worker.output() for worker in job.workers]
    return [re.findall(r"steps of the training change (.*), and no", text) for text in texts]


@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
@pytest.mark.parametrize("call", [TRAIN, FIT])
def test_an_attribute_that_steps_change_is_told_in_a_job_that_recovers(tmp_path, call, mode):
    names = ["'SequentialCell.1.steps'"]
    assert told(tmp_path, mode, call, MS_ENABLE_RECOVERY="1") == [names, names]


def test_who_changes_nothing_or_in_a_job_that_does_not_recover_is_told_nothing(tmp_path):
    constant = TRAIN + "\nassert net[1].steps == 0"
    assert told(tmp_path, "GRAPH_MODE", constant, "0", MS_ENABLE_RECOVERY="1") == [[], []]
    assert told(tmp_path, "PYNATIVE_MODE", TRAIN) == [[], []]
