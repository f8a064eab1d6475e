"""A worker dies when another has already left done: it comes back alone, and the job ends well."""

import os
import shutil
import signal

import pytest
from job import Job

SCRIPT = """
import hashlib, os, pathlib, signal
import numpy
import muster
from muster import nn, train
from muster.dataset import NumpySlicesDataset

muster.init()
muster.set_seed(1)
rank = muster.get_rank()
layers = [nn.Dense(6, 8), nn.Dense(8, 3)]
if KIND == "placed":
    layers = [layer.place("MS_WORKER", i) for i, layer in enumerate(layers)]
else:
    muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
net = nn.SequentialCell(*layers)
random = numpy.random.default_rng(1)
rows = random.standard_normal((40, 6)).astype(numpy.float32), random.integers(0, 3, 40).astype(numpy.int32)
data = NumpySlicesDataset(rows, ["x", "label"]).batch(4)
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
model = train.Model(net, loss_fn, optimizer, metrics={"accuracy"})

if KIND == "loop":
    grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
    reducer = nn.DistributedGradReducer(optimizer.parameters)
    for epoch, step, (x, y) in muster.recoverable(net, optimizer, data, epochs=2):
        loss, gradients = grad_fn(x, y)
        optimizer(reducer(gradients))
else:
    model.train(2, data)
    print(model.eval(data))
if KIND == "collective":
    muster.ops.all_reduce(muster.Tensor(numpy.ones(3, numpy.float32)))
here = [layers[rank]] if KIND == "placed" else layers
bits = b"".join(p.asnumpy().tobytes() for layer in here for p in layer.trainable_params())
print("weights", hashlib.sha256(bits).hexdigest(), flush=True)

if rank == 1 and os.environ.get("DIES"):
    open(os.environ["DIES"]).read()  # a pipe: until the other one has left
    os.kill(os.getpid(), signal.SIGKILL)
"""


def broken_run(folder, kind, loses_folder=False):
    """A run whose worker 1 was killed behind everything, when worker 0 had left, and was started again."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)

    def told(name):
        return {"MS_RECOVERY_PATH": str(folder / name), "MS_ENABLE_RECOVERY": "1", "MS_WORKER_NUM": "2"}

    def start(rank, dies):
        mine = {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(rank), "DIES": dies, **told(f"worker_{rank}")}
        return job.start(f"worker {rank}", **mine)

    with Job(SCRIPT.replace("KIND", repr(kind)), 0, hosts=[[]], **told("scheduler")) as job:
        job.workers = [start(rank, str(pipe)) for rank in range(2)]
        assert job.workers[0].wait() == 0
        pipe.write_text("die")
        assert job.workers[1].wait() == -signal.SIGKILL
        if loses_folder:
            shutil.rmtree(folder / "worker_1")
        first_life = job.workers[1].output()
        job.workers[1] = start(1, "")
        statuses = [process.wait() for process in job.everybody()]
        return statuses, first_life, job.workers[1].output()


def weights_in(text):
    """Lines of the two streams come in any order."""
    return [line for line in text.splitlines() if line.startswith("weights ")]


@pytest.mark.parametrize("kind", ["model", "loop", "placed"])
def test_a_worker_that_dies_when_another_is_done_ends_with_the_same_bits(tmp_path, kind):
    statuses, first_life, second_life = broken_run(tmp_path, kind)
    assert statuses == [0, 0, 0], second_life
    assert weights_in(first_life) == weights_in(second_life) != []


def test_a_collective_made_by_hand_that_a_worker_made_before_it_left_is_named(tmp_path):
    statuses, _, second_life = broken_run(tmp_path, "collective")
    assert statuses == [1, 0, 1]
    assert all(part in second_life for part in ("all_reduce", "collective", "number 1"))
    assert "workers" in second_life and "passed" in second_life


def test_without_its_folder_it_has_nobody_who_could_give_it_the_end(tmp_path):
    statuses, _, second_life = broken_run(tmp_path, "model", loses_folder=True)
    assert statuses == [77, 0, 77]
    assert "below" in second_life and "MS_RECOVERY_PATH" in second_life
    assert "Bring the folders back" in second_life
