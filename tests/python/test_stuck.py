"""A job that is alive but does not go on: everybody says who waits for whom, and that it goes on again."""

import os

import pytest
from job import Job

PREAMBLE = """
import muster as ms
from muster import nn, train
from muster.dataset import GeneratorDataset
import numpy as np

ms.init()
ms.set_seed(1)
rank = ms.get_rank()
blocks_at = 30 if rank == 1 else None
net = nn.Dense(4, 2)
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 1e-2)

def block(name="blocked"):
    open(FOLDER + "/" + name).read()  # a pipe: until somebody writes there

class Rows:
    def __len__(self):
        return 60

    def __getitem__(self, i):
        if WHERE == "data" and i == blocks_at:
            block()
        return np.ones(4, np.float32), np.int32(1)

dataset = GeneratorDataset(Rows(), ["data", "label"], shuffle=False).batch(1)
"""
MODEL = """
class Blocks(train.Callback):
    def on_train_step_end(self, context):
        if WHERE == "script" and context.original_args().cur_step_num == blocks_at:
            block()

ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
train.Model(net, loss_fn, optimizer).train(1, dataset, Blocks())
"""
LOOP = """
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
reducer = nn.DistributedGradReducer(optimizer.parameters)
for step, (data, label) in enumerate(dataset.create_tuple_iterator(num_epochs=1)):
    if WHERE == "script" and step == blocks_at:
        block()
    loss, grads = grad_fn(data, label)
    optimizer(reducer(grads))
"""


END = """
block(f"end of {rank}")
"""


@pytest.mark.parametrize("kind", ["Model", "a loop by hand"])
@pytest.mark.parametrize("where", ["data", "script"])
def test_everybody_says_where_the_slow_one_is_and_that_the_job_goes_on(tmp_path, kind, where):
    for name in ["blocked", "end of 0", "end of 1", "end of 2"]:
        os.mkfifo(tmp_path / name)
    script = PREAMBLE + (MODEL if kind == "Model" else LOOP) + END
    script = script.replace("FOLDER", repr(str(tmp_path))).replace("WHERE", repr(where))
    words = {"data": "in data loading", "script": "in the script"}[where]
    with Job(script, 3, MUSTER_STUCK_LIMIT="2") as job:
        for process in job.everybody():
            process.wait_for_line(rf"rank 1: {words} at step \d+; ranks 0, 2: in all_reduce \d+")
        (tmp_path / "blocked").write_text("go on")
        for process in job.everybody():
            process.wait_for_line(r"the job goes on, after \S+ s without a step")
        for rank in range(3):
            (tmp_path / f"end of {rank}").write_text("leave")
        for process in job.everybody():
            assert process.wait() == 0, process.output()
