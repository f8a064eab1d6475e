"""The end of the last call: a worker whose disk has not taken it dies while the others are about to leave."""

import os
import re
import shutil
import signal
import time

import pytest
from job import Job

SCRIPT = """
import hashlib, os, resource
import numpy
import muster
from muster import nn, train
from muster.dataset import NumpySlicesDataset

muster.init()
muster.set_seed(1)
rank = muster.get_rank()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3))
random = numpy.random.default_rng(1)
rows = random.standard_normal((40, 6)).astype(numpy.float32), random.integers(0, 3, 40).astype(numpy.int32)
data = NumpySlicesDataset(rows, ["x", "label"]).batch(4)
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
kind = os.environ["KIND"]

def fill_disk():
    # As a full disk does, it makes every write fail.
    if os.environ.get("DISK") == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

class Fills(train.Callback):
    state_is_shared = kind != "own"
    steps = 0

    def on_train_step_end(self, run_context):
        self.steps = run_context.original_args().cur_step_num
        if run_context.original_args().cur_step_num == 15:
            fill_disk()

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]

def wait_for(name):
    if os.environ.get(name):
        open(os.environ[name]).read()  # a pipe: until the test writes there

print("begins", flush=True)
if kind == "loop":
    grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
    reducer = nn.DistributedGradReducer(optimizer.parameters)
    for epoch, step, (x, y) in muster.recoverable(net, optimizer, data, epochs=2):
        loss, gradients = grad_fn(x, y)
        optimizer(reducer(gradients))
        if epoch == 1 and step == 5:
            fill_disk()
else:
    model = train.Model(net, loss_fn, optimizer)
    model.train(2, data, Fills())
print("trained", flush=True)
wait_for("BEHIND_TRAINING")
if kind == "collective":
    muster.ops.all_reduce(muster.Tensor(numpy.ones(3, numpy.float32)))
bits = b"".join(p.asnumpy().tobytes() for p in [*net.get_parameters(), *optimizer.get_parameters()])
print("state", hashlib.sha256(bits).hexdigest(), flush=True)
"""


class Drill:
    """Workers with a folder each; the disk of `victim` is full from the middle of the last call on.

    `blocked`: those who wait behind the training until they are released.
    """

    def __init__(self, folder, kind, workers, blocked=(), victim=1, script=SCRIPT, **variables):
        self.folder = folder
        self.victim = victim
        told = {"KIND": kind, "MS_ENABLE_RECOVERY": "1", "MS_NODE_TIMEOUT": "25", "MS_TOPO_TIMEOUT": "60"}
        self._told = {**told, **variables}
        scheduler = {"MS_WORKER_NUM": str(workers), "MS_RECOVERY_PATH": str(folder / "scheduler")}
        self.job = Job(script, 0, hosts=[[]], **self._told, **scheduler)
        self.pipes = {rank: folder / f"pipe_{rank}" for rank in blocked}
        for pipe in self.pipes.values():
            os.mkfifo(pipe)
        for rank in range(workers):
            full = {"DISK": "full"} if rank == victim else {}
            pipe = {"BEHIND_TRAINING": str(self.pipes[rank])} if rank in self.pipes else {}
            self.job.workers.append(self.start(rank, **full, **pipe))

    def start(self, rank, **variables):
        mine = {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(rank)}
        path = {"MS_RECOVERY_PATH": str(self.folder / f"worker_{rank}")}
        return self.job.start(f"worker {rank}", **mine, **path, **variables)

    def release(self, rank):
        self.pipes[rank].write_text("go on")

    def kill(self, rank):
        self.job.workers[rank].signal(signal.SIGKILL)
        assert self.job.workers[rank].wait() == -signal.SIGKILL

    def start_again(self, rank):
        self.job.workers[rank] = self.start(rank)

    def lose_victim(self):
        self.kill(self.victim)
        self.start_again(self.victim)

    def start_all_again(self):
        self.job.scheduler = self.job.start("scheduler", MS_ROLE="MS_SCHED")
        for rank in range(len(self.job.workers)):
            self.start_again(rank)

    def wait_until_trained(self):
        for worker in self.job.workers:
            worker.wait_for_line("^trained")

    def wait_for_epoch(self, number):
        self.job.scheduler.wait_for_line(f"epoch {number}: all are there again")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.job.__exit__()

    def states(self):
        """At the end, of all workers."""
        for process in self.job.everybody():
            assert process.wait() == 0, process.output()
        return [re.search(r"^state (\w+)$", w.output(), re.MULTILINE)[1] for w in self.job.workers]


@pytest.fixture(name="unbroken", scope="module")
def unbroken_fixture(tmp_path_factory):
    ends = {}

    def of(kind, workers):
        if (kind, workers) not in ends:
            with Drill(tmp_path_factory.mktemp("whole"), kind, workers) as drill:
                ends[kind, workers] = drill.states()
        return ends[kind, workers]

    return of


NEEDED = "may still need this process: its folder has not kept the end of the last call"


@pytest.mark.parametrize(("workers", "victim"), [(2, 0), (2, 1), (3, 0), (3, 2)])
@pytest.mark.parametrize("kind", ["model", "loop"])
def test_those_who_are_done_give_the_end_before_they_leave(tmp_path, unbroken, kind, workers, victim):
    with Drill(tmp_path, kind, workers, blocked=[victim], victim=victim) as drill:
        for rank in set(range(workers)) - {victim}:
            drill.job.workers[rank].wait_for_line(f"worker {victim} {NEEDED}")
        drill.lose_victim()
        assert drill.states() == unbroken(kind, workers)


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("kind", ["model", "loop"])
def test_so_do_those_who_are_done_when_it_is_back(tmp_path, unbroken, kind, victim):
    busy = 1 - victim
    with Drill(tmp_path, kind, 3, blocked=[0, 1], victim=victim) as drill:
        drill.wait_until_trained()
        drill.lose_victim()
        drill.wait_for_epoch(2)
        drill.release(busy)
        assert drill.states() == unbroken(kind, 3)


def test_it_may_die_again_before_it_has_the_end(tmp_path, unbroken):
    with Drill(tmp_path, "model", 2, blocked=[0, 1]) as drill:
        drill.wait_until_trained()
        drill.lose_victim()
        drill.wait_for_epoch(2)
        drill.lose_victim()
        drill.release(0)
        assert drill.states() == unbroken("model", 2)


@pytest.mark.parametrize(("workers", "victim"), [(2, 0), (2, 1), (3, 1)])
def test_those_who_stand_in_a_collective_by_hand_give_the_end_first(tmp_path, unbroken, workers, victim):
    with Drill(tmp_path, "collective", workers, blocked=[victim], victim=victim) as drill:
        drill.wait_until_trained()
        drill.lose_victim()
        assert drill.states() == unbroken("collective", workers)


@pytest.mark.parametrize("victim", [0, 1])
def test_who_comes_back_without_its_folder_is_given_the_end_too(tmp_path, unbroken, victim):
    with Drill(tmp_path, "model", 2, blocked=[0, 1], victim=victim) as drill:
        drill.wait_until_trained()
        drill.kill(victim)
        shutil.rmtree(tmp_path / f"worker_{victim}")
        drill.start_again(victim)
        drill.wait_for_epoch(2)
        drill.release(1 - victim)
        assert drill.states() == unbroken("model", 2)


def test_nobody_waits_for_one_that_has_kept_the_end_itself(tmp_path, unbroken):
    with Drill(tmp_path, "model", 3, blocked=[0]) as drill:
        for rank in (1, 2):
            assert drill.job.workers[rank].wait() == 0, drill.job.workers[rank].output()
        drill.kill(0)
        drill.start_again(0)
        assert drill.states() == unbroken("model", 3)


def test_one_that_does_not_come_back_holds_up_the_others_no_longer_than_in_training(tmp_path):
    with Drill(tmp_path, "model", 2, blocked=[1], MS_NODE_TIMEOUT="3") as drill:
        drill.job.workers[0].wait_for_line(NEEDED)
        begin = time.monotonic()
        drill.kill(1)
        assert drill.job.workers[0].wait() == 0
        assert drill.job.scheduler.wait() == 69
        assert time.monotonic() - begin < 10


def test_where_nobody_else_can_have_the_end_the_error_comes_in_seconds(tmp_path, unbroken):
    with Drill(tmp_path, "own", 2, blocked=[0, 1]) as drill:
        drill.wait_until_trained()
        drill.lose_victim()
        drill.wait_for_epoch(2)
        begin = time.monotonic()
        drill.release(0)
        assert drill.job.workers[0].wait() == 0
        assert drill.job.workers[1].wait() == 1
        assert time.monotonic() - begin < 15
        output = drill.job.workers[1].output()
        assert "worker 0" in output and "finished" in output
        assert "Start all processes again" in output
        assert drill.job.scheduler.wait() == 1
        drill.start_all_again()
        assert drill.states() == unbroken("own", 2)


ALONE = """
import os
import numpy
import muster
muster.init()
if muster.get_rank() == int(os.environ["KIND"]):
    muster.ops.all_reduce(muster.Tensor(numpy.ones(3, numpy.float32)))
"""


@pytest.mark.parametrize("alone", [0, 1])
def test_who_waits_for_one_that_has_left_is_told_in_seconds(tmp_path, alone):
    with Drill(tmp_path, str(alone), 2, script=ALONE) as drill:
        assert drill.job.workers[1 - alone].wait() == 0
        begin = time.monotonic()
        assert drill.job.workers[alone].wait() == 1
        assert time.monotonic() - begin < 10
        output = drill.job.workers[alone].output()
    assert f"worker {1 - alone} has finished its script and left the job" in output
    assert "Start all processes again" in output
