"""A process that no cluster is described to: rank 0 of 1, with the script of a job."""

import sys

from job import Process, clean_environment, run_alone

SCRIPT = """
import numpy as np
import muster
from muster import dataset, nn
muster.init()
muster.init()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
print(muster.get_rank(), muster.get_group_size(), muster.get_local_rank(), muster.get_local_rank_size())
print(muster.get_replica_rank(), muster.get_replica_count())
net = nn.Dense(2, 1)
optimizer = nn.SGD(net.trainable_params(), 0.1)
rows = dataset.NumpySlicesDataset((np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)), ["x", "y"],
    num_shards=muster.get_group_size(), shard_id=muster.get_rank(), shuffle=False).batch(2)
muster.Model(net, nn.MSELoss(), optimizer).train(1, rows)
loss_fn, reducer = nn.MSELoss(), nn.DistributedGradReducer(optimizer.parameters)
grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
for epoch, step, (x, y) in muster.recoverable(net, optimizer, rows, epochs=1):
    loss, grads = grad_fn(x, y)
    optimizer(reducer(grads))
print(muster.ops.all_reduce(muster.Tensor([3.0])).tolist())
"""


def lines_of(script, **variables):
    status, text, _ = run_alone(script, **variables)
    assert status == 0, text
    return text.splitlines()


def test_the_script_of_a_job_runs_alone():
    assert lines_of(SCRIPT) == ["0 1 0 1", "0 1", "[3.0]"]


def test_it_opens_no_socket():
    script = "import os, muster\nmuster.init()\n" + (
        "links = [f'/proc/self/fd/{fd}' for fd in os.listdir('/proc/self/fd')]\n"
        "print([p for p in links if os.path.lexists(p) and 'socket' in os.readlink(p)])"
    )
    process = Process("alone", [sys.executable, "-c", script], clean_environment())
    assert process.wait() == 0
    assert process.output() == "[]"


def test_mindspore_names_work_too():
    script = "import mindspore.communication as c\nc.init()\nprint(c.get_rank(), c.get_group_size())"
    assert lines_of(script) == ["0 1"]


def test_variables_of_another_launcher_are_named():
    lines = lines_of("import muster; muster.init()", WORLD_SIZE="4", RANK="0")
    assert len(lines) == 1
    assert "WORLD_SIZE=4" in lines[0] and "muster run" in lines[0]


def test_under_strict_they_are_an_error():
    status, text, _ = run_alone("import muster; muster.init()", WORLD_SIZE="4", MUSTER_STRICT="1")
    assert status != 0
    assert "WORLD_SIZE=4" in text


def test_half_a_cluster_is_an_error_that_names_what_is_missing():
    status, text, _ = run_alone("import muster; muster.init()", MS_WORKER_NUM="4")
    assert status != 0
    assert "MS_ROLE" in text and "MS_WORKER_NUM" in text
