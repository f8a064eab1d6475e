"""Hosts that are replaced and folders that are lost: survivors give what a worker that comes back lacks."""

import re
import shutil
import signal

import pytest
from job import Job

SCRIPT = """
import hashlib, os, resource, signal
from pathlib import Path
import numpy
import muster
from muster import dataset as ds, nn, train

muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.init()
muster.set_seed(7)
rank, workers = muster.get_rank(), muster.get_group_size()
rows = numpy.random.default_rng(1).random((96, 6), numpy.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :2]), ["x", "y"], num_shards=workers, shard_id=rank).batch(4)
once = Path(os.environ["ONCE"])
made = []
begun = 0

def fill_disk(is_full):
    # As a full disk does, it makes every write fail.
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0 if is_full else hard, hard))

def fill_at(step):
    if str(rank) in os.environ.get("FULL_OF", "1").split(",") and "FULL" in os.environ:
        first, last = (int(number) for number in os.environ["FULL"].split("-"))
        fill_disk(first <= step < last)

def note(step):
    made.append(step)
    fill_at(step)
    victims = os.environ["VICTIMS"].split(",")
    if str(rank) in victims and str(step) == os.environ["STEP"] and not Path(f"{once}.{rank}").exists():
        Path(f"{once}.{rank}").touch()
        os.kill(os.getpid(), signal.SIGKILL)

class Steps(train.Callback):
    def __init__(self, before=0):
        super().__init__()
        self.before = before

    def on_train_step_begin(self, run_context):
        global begun
        begun += 1

    def on_train_step_end(self, run_context):
        note(self.before + run_context.cur_step_num)

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass

class Own(train.Callback):
    count = 0

    def on_train_step_end(self, run_context):
        self.count += 1

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]

class Shared(Own):
    state_is_shared = True

layers = [nn.Dense(6, 8), nn.ReLU(), nn.Dropout(p=0.2), nn.Dense(8, 2)]
if os.environ.get("NORM"):
    layers.insert(1, nn.BatchNorm1d(8))
net = nn.SequentialCell(*layers)
optimizer = nn.Adam(net.trainable_params(), 0.01)
mode = os.environ["MODE"]
count = 0
fill_at(0)
if mode == "loop":
    net.set_train()
    loss_fn = nn.MSELoss()
    grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
    reducer = nn.DistributedGradReducer(optimizer.parameters)
    for epoch, step, (x, y) in muster.recoverable(net, optimizer, data, epochs=4, save_steps=6):
        loss, gradients = grad_fn(x, y)
        optimizer(reducer(gradients))
        note(epoch * 12 + step + 1)
else:
    callbacks = [Steps(), train.LossMonitor(1000)]
    if mode in ("own", "shared"):
        callbacks.append({"own": Own, "shared": Shared}[mode]())
    config = train.CheckpointConfig(save_checkpoint_steps=6)
    callbacks.append(train.ModelCheckpoint("run", f"{once}_{rank}", config))
    model = train.Model(net, nn.MSELoss(), optimizer)
    sink = {"dataset_sink_mode": True, "sink_size": 5} if mode == "sink" else {}
    model.train(4, data, callbacks=callbacks, **sink)
    if mode in ("own", "shared"):
        count = callbacks[2].count
    if "TWICE" in os.environ:
        callbacks[0] = Steps(48)
        model.train(2, data, callbacks=callbacks)
        count += callbacks[2].count if mode in ("own", "shared") else 0
state = hashlib.sha256()
for parameter in [*net.get_parameters(), *optimizer.get_parameters()]:
    state.update(parameter.asnumpy().tobytes())
print("state", state.hexdigest(), "count", count, "begun", begun, "made", made, flush=True)
"""


class Drill:
    """A job whose workers have a folder each, and whose scheduler has one too."""

    def __init__(self, folder, mode, workers=2, victims="none", step="0", **variables):
        self.folder = folder
        told = {"MODE": mode, "VICTIMS": victims, "STEP": step, "ONCE": str(folder / "died")}
        self._told = {"MS_ENABLE_RECOVERY": "1", "MS_NODE_TIMEOUT": "30", **told, **variables}
        told = {**self._told, "MS_WORKER_NUM": str(workers), **self.path("scheduler")}
        self.job = Job(SCRIPT, 0, hosts=[[]], **told)
        self.job.workers = [self.start(rank) for rank in range(workers)]

    def path(self, name):
        return {"MS_RECOVERY_PATH": str(self.folder / f"recovery_{name}")}

    def start(self, rank, **variables):
        told = {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(rank), **self.path(rank), **variables}
        return self.job.start(f"worker {rank}", **told)

    def start_again(self, rank, **variables):
        self.job.workers[rank] = self.start(rank, **variables)

    def lose_folder(self, rank):
        shutil.rmtree(self.folder / f"recovery_{rank}")

    def points(self, rank):
        return {path.name for path in (self.folder / f"recovery_{rank}").glob("job-*/worker_*/call_*")}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.job.__exit__()

    def end(self):
        for process in self.job.everybody():
            assert process.wait() == 0, process.output()
        return [worker.output() for worker in self.job.workers]


def state(output):
    return re.search(r"state (\w+ count \d+)", output)[1]


def made(output):
    return [int(step) for step in re.search(r"made \[(.*)\]", output)[1].split(", ") if step]


@pytest.fixture(name="unbroken", scope="module")
def unbroken_fixture(tmp_path_factory):
    ends = {}

    def of(mode, **variables):
        key = (mode, *variables.items())
        if key not in ends:
            with Drill(tmp_path_factory.mktemp("whole"), mode, **variables) as drill:
                ends[key] = [state(output) for output in drill.end()]
        return ends[key]

    return of


@pytest.mark.parametrize("victim", ["0", "1"])
@pytest.mark.parametrize("step", ["1", "12", "20", "47"])
@pytest.mark.parametrize("mode", ["model", "loop"])
def test_a_worker_that_comes_back_with_an_empty_disk_costs_no_step(tmp_path, unbroken, mode, step, victim):
    with Drill(tmp_path, mode, victims=victim, step=step) as drill:
        victim = int(victim)
        assert drill.job.workers[victim].wait() == -signal.SIGKILL
        drill.lose_folder(victim)
        drill.start_again(victim)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken(mode)
    assert made(outputs[1 - victim]) == list(range(1, 49))
    assert f"begun {48 if mode == 'model' else 0} " in outputs[1 - victim]
    assert made(outputs[victim]) == list(range(int(made(outputs[victim])[0]), 49))
    assert made(outputs[victim])[0] >= int(step)
    # Files of one training, so that all find the same ones when they are started again.
    assert {path.name.partition("-")[0] for path in tmp_path.glob("died_*/*")} <= {"run"}


@pytest.mark.parametrize("mode", ["model", "loop"])
def test_a_worker_that_dies_behind_its_last_step_takes_the_end(tmp_path, unbroken, mode):
    with Drill(tmp_path, mode, victims="1", step="48") as drill:
        assert drill.job.workers[1].wait() == -signal.SIGKILL
        drill.lose_folder(1)
        drill.start_again(1)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken(mode)
    assert made(outputs[0]) == list(range(1, 49))


def test_a_group_of_steps_is_gone_on_with_in_its_middle(tmp_path, unbroken):
    with Drill(tmp_path, "sink", victims="1", step="10") as drill:
        assert drill.job.workers[1].wait() == -signal.SIGKILL
        drill.lose_folder(1)
        drill.start_again(1)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken("sink")


def test_several_are_served_at_once(tmp_path, unbroken):
    with Drill(tmp_path, "model", workers=4, victims="1,3", step="20") as drill:
        for victim in (1, 3):
            assert drill.job.workers[victim].wait() == -signal.SIGKILL
            drill.lose_folder(victim)
            drill.start_again(victim)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken("model", workers=4)
    assert made(outputs[0]) == list(range(1, 25))


def test_when_all_have_died_one_disk_is_enough(tmp_path, unbroken):
    with Drill(tmp_path, "model", victims="0,1", step="20") as drill:
        for worker in drill.job.workers:
            assert worker.wait() == -signal.SIGKILL
        drill.lose_folder(1)
        for rank in (0, 1):
            drill.start_again(rank)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken("model")
    assert re.search(r"resuming job \w+ at step (12|18);", outputs[1])


def test_the_end_of_a_call_that_is_over_comes_from_another_disk(tmp_path, unbroken):
    with Drill(tmp_path, "model", victims="1", step="65", TWICE="1") as drill:
        assert drill.job.workers[1].wait() == -signal.SIGKILL
        drill.lose_folder(1)
        drill.start_again(1)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken("model", TWICE="1")


@pytest.mark.parametrize("mode", ["model", "own"])
def test_a_disk_that_was_full_at_the_end_of_a_call_keeps_nobody_out(tmp_path, unbroken, mode):
    with Drill(tmp_path, mode, victims="1", step="65", TWICE="1", FULL="40-50") as drill:
        assert drill.job.workers[1].wait() == -signal.SIGKILL
        assert "was NOT saved" in drill.job.workers[1].output()
        drill.start_again(1)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken(mode, TWICE="1")


@pytest.mark.parametrize("mode", ["model", "own"])
def test_a_disk_that_is_full_for_many_saves_keeps_the_point_that_all_have(tmp_path, unbroken, mode):
    with Drill(tmp_path, mode, victims="1", step="47", FULL="13-99") as drill:
        assert drill.job.workers[1].wait() == -signal.SIGKILL
        drill.start_again(1)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken(mode)
    assert re.search(r"resuming job \w+ at step (6|12|47|48);", outputs[1])


@pytest.mark.parametrize("mode", ["model", "loop"])
@pytest.mark.parametrize("full", ["0", "0,1"])
def test_disks_that_are_full_before_the_first_step_keep_nobody_from_beginning(tmp_path, unbroken, mode, full):
    over_tcp = {"MUSTER_TRANSPORT": "tcp"}  # no shared memory is made where no file may grow
    with Drill(tmp_path, mode, victims="1", step="20", FULL="0-99", FULL_OF=full, **over_tcp) as drill:
        assert drill.job.workers[1].wait() == -signal.SIGKILL
        drill.start_again(1)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken(mode)
    assert "no recovery points can be kept" in outputs[0]


def test_a_folder_that_cannot_be_written_does_not_keep_a_worker_out(tmp_path, unbroken):
    with Drill(tmp_path, "model", victims="1", step="20") as drill:
        assert drill.job.workers[1].wait() == -signal.SIGKILL
        drill.lose_folder(1)
        drill.start_again(1, MS_RECOVERY_PATH="/proc/muster-recovery")  # where nobody can make a folder
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken("model")


@pytest.mark.parametrize(("mode", "variables"), [("own", {}), ("model", {"NORM": "1"})])
def test_state_of_ones_own_goes_back_to_a_point_that_all_have(tmp_path, unbroken, mode, variables):
    with Drill(tmp_path, mode, victims="1", step="20", **variables) as drill:
        assert drill.job.workers[1].wait() == -signal.SIGKILL
        drill.start_again(1)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken(mode, **variables)
    assert re.search(r"resuming job \w+ at step (12|18);", outputs[1])
    assert "back" in outputs[0] and "step" in outputs[0]


@pytest.mark.parametrize(("mode", "variables"), [("own", {}), ("model", {"NORM": "1"})])
def test_state_of_ones_own_that_is_lost_is_an_error_that_names_all(tmp_path, mode, variables):
    with Drill(tmp_path, mode, victims="1", step="20", **variables) as drill:
        assert drill.job.workers[1].wait() == -signal.SIGKILL
        before = drill.points(0)
        drill.lose_folder(1)
        drill.start_again(1)
        codes = [process.wait() for process in drill.job.everybody()]
        output = drill.job.workers[0].output()
    assert 0 not in codes
    assert re.search(
        r"worker 0 has points up to step 1[28] of call 0; worker 1 has nothing of call 0", output
    )
    assert "MUSTER_FRESH=1" in output and "muster checkpoint rm" in output
    assert before <= drill.points(0)


def test_a_callback_may_say_that_its_state_is_everybodys(tmp_path, unbroken):
    with Drill(tmp_path, "shared", victims="1", step="20") as drill:
        assert drill.job.workers[1].wait() == -signal.SIGKILL
        drill.lose_folder(1)
        drill.start_again(1)
        outputs = drill.end()
    assert [state(output) for output in outputs] == unbroken("shared")
    assert made(outputs[0]) == list(range(1, 49))
