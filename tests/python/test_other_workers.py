"""Model.train(resume=...) with another number of workers: each row of the epoch comes once."""

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from job import Job, run_alone
from places import BUILD

ROWS = 48
MUSTER = str(BUILD / "apps/muster/muster")

SCRIPT = """
import os
import numpy
import muster
from muster import dataset as ds, nn, train

workers = int(os.environ.get("MS_WORKER_NUM", "0"))
if workers:
    zero = int(os.environ.get("ZERO", "0"))
    more = {"zero": muster.parallel.Zero(zero, threshold_bytes=0)} if zero else {}
    muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, **more)
muster.init()
muster.set_seed(3)
rank, size = (muster.get_rank(), muster.get_group_size()) if workers else (0, 1)
rows = ROWS
x = numpy.random.default_rng(1).standard_normal((rows, 4)).astype(numpy.float32)
y = numpy.arange(rows, dtype=numpy.float32).reshape(rows, 1)
data = ds.NumpySlicesDataset((x, y), ["x", "y"], num_shards=size, shard_id=rank)
data = data.map(lambda v: v * numpy.float32(0.5), "x")
data = eval(os.environ.get("THEN", "data")).batch(int(os.environ["BATCH"]))

class Stop(Exception):
    pass

class Note(train.Callback):
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass

    def on_train_step_end(self, run_context):
        context = run_context.original_args()
        batch = context.train_dataset_element or (None, muster.Tensor(numpy.zeros(0, numpy.float32)))
        for row in batch[1].asnumpy().ravel():
            print("row", context.cur_epoch_num, context.cur_step_num, int(row), flush=True)

class Interruption(Note):
    def on_train_step_begin(self, run_context):
        killed = os.environ.get("KILLED", "") + str(rank)
        step = f"{run_context.cur_step_num} of {rank}"
        if step in os.environ.get("KILL", "").split(",") and not os.path.exists(killed):
            open(killed, "w").close()
            os.kill(os.getpid(), 9)
        if run_context.cur_step_num == int(os.environ.get("STOP", "-1")) + 1:
            raise Stop

    def on_train_step_end(self, run_context):
        pass

muster.set_seed(3)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 1))
optimizer = nn.Momentum(net.trainable_params(), 0.001, 0.9)
model = muster.Model(net, nn.MSELoss(), optimizer)
folder = os.environ["FOLDER"].format(rank=rank)
saver = train.ModelCheckpoint("net", folder, train.CheckpointConfig(int(os.environ.get("EVERY", "1"))))
sink = {"sink_size": int(os.environ["SINK"])} if "SINK" in os.environ else {}
try:
    model.train(
        2, data, [saver, Note(), Interruption()], resume=os.environ.get("RESUME", "last"),
        dataset_sink_mode=bool(sink), **sink,
    )
    print("steps", optimizer.global_step.asnumpy().item())
    whole = model.gather_parameters()
    print("end", [v for p in net.trainable_params() for v in whole[p.name].asnumpy().ravel().tolist()])
except Stop:
    pass
"""


def samples(folder, code=0):
    """What `muster verify --samples` says."""
    done = subprocess.run([MUSTER, "verify", "--samples", str(folder)], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


class Runs:
    """Jobs of some workers, one after the other in one folder, each goes on where the last one was."""

    def __init__(self, folder):
        self.folder = folder
        self.samples = folder.parent / "samples"
        self.script = SCRIPT

    def run(self, workers, batch, fails=False, **variables):
        told = {"FOLDER": str(self.folder), "BATCH": str(batch), "MUSTER_SAMPLE_LOG": str(self.samples)}
        told |= variables
        script = self.script.replace("ROWS", str(ROWS))
        if workers == 1:
            code, text, _ = run_alone(script, **told)
            codes, texts = [code], [text]
        else:
            with Job(script, workers, **told) as job:
                codes = [process.wait(60) for process in job.everybody()][1:]
                texts = [worker.output() for worker in job.workers]
        assert fails or codes == [0] * workers, texts[0]
        return texts


def rows_of(texts, last_step=None):
    """Of each epoch, how often which row came, up to a step."""
    seen = {}
    for text in texts:
        for epoch, step, row in re.findall(r"^row (\d+) (\d+) (\d+)$", text, re.M):
            if last_step is None or int(step) <= last_step:
                seen.setdefault(int(epoch), Counter())[int(row)] += 1
    return seen


def end_of(text):
    return ast.literal_eval(re.search(r"^end (.*)$", text, re.M)[1])


EACH_ONCE = Counter(range(ROWS))


@pytest.fixture(name="runs")
def runs_fixture(tmp_path):
    return Runs(tmp_path / "checkpoints")


@pytest.mark.parametrize(
    ("first", "then", "stop", "begins_at"),
    [
        ((4, 2), (2, 4), 2, 3),  # the same rows in each step
        ((2, 4), (4, 2), 5, 6),
        ((1, 8), (4, 1), 2, 5),
        ((4, 3), (1, 5), 1, 3),  # the last step of the epoch has fewer
        ((3, 4), (2, 4), 4, 7),  # behind the last step of an epoch
    ],
)
def test_each_row_of_the_epoch_comes_once(runs, first, then, stop, begins_at):
    before = rows_of(runs.run(*first, STOP=str(stop)), stop)
    texts = runs.run(*then)
    after = rows_of(texts)
    assert before[1] + after.get(1, Counter()) == EACH_ONCE
    assert after[2] == EACH_ONCE
    steps = [int(step) for step in re.findall(r"^row \d+ (\d+) ", texts[0], re.M)]
    an_epoch = -(-ROWS // (then[0] * then[1]))
    assert sorted(set(steps)) == list(range(begins_at, 2 * an_epoch + 1))
    assert re.search(rf"^pass 0: {ROWS} rows .*: each once$", samples(runs.samples), re.M)
    assert re.search(rf"^pass 1: {ROWS} rows \({ROWS} by {then[0]} worker", samples(runs.samples), re.M)


def test_the_workers_may_change_more_than_once_in_an_epoch(runs):
    seen = rows_of(runs.run(4, 1, STOP="3"), 3)[1]
    for workers, batch, stop in [(2, 5, 3), (3, 1, 12)]:
        seen += rows_of(runs.run(workers, batch, STOP=str(stop)), stop)[1]
    after = rows_of(runs.run(2, 2))
    assert seen + after[1] == EACH_ONCE and after[2] == EACH_ONCE
    assert "(30 by 2 workers, 6 by 3 workers, 12 by 4 workers): each once" in samples(runs.samples)
    worker = runs.samples / "samples.4.1.log"
    worker.write_text(re.sub(r"^item 0 1 .*\n", "", worker.read_text(), flags=re.M))
    assert "1 rows that pass 1 has did not come" in samples(runs.samples, code=1)


def test_with_as_many_rows_in_each_step_it_ends_as_one_that_never_changed(tmp_path):
    whole = Runs(tmp_path / "whole").run(4, 2)
    runs = Runs(tmp_path / "changed")
    runs.run(4, 2, STOP="4")
    changed = runs.run(2, 4)
    assert "steps 12" in changed[0]
    assert end_of(changed[0]) == pytest.approx(end_of(whole[0]), rel=1e-5, abs=1e-7)
    assert end_of(changed[0]) == end_of(changed[1])


def test_a_worker_whose_folder_is_empty_is_given_the_state(tmp_path):
    runs = Runs(tmp_path / "of_{rank}")
    before = rows_of(runs.run(2, 4, STOP="3"), 3)
    texts = runs.run(4, 2)
    after = rows_of(texts)
    assert before[1] + after[1] == EACH_ONCE
    assert len({tuple(end_of(text)) for text in texts}) == 1
    # The next start finds what all have saved since.
    again = runs.run(4, 2)
    assert re.search(r"going on from '.*of_0/net_1-2_6.ckpt'", again[0])
    assert rows_of(again) == {}


def test_a_named_checkpoint_is_gone_on_with(runs):
    before = rows_of(runs.run(4, 2, STOP="5"), 2)
    after = rows_of(runs.run(2, 4, RESUME=str(Path(runs.folder) / "net-1_2.ckpt")))
    assert before[1] + after[1] == EACH_ONCE


@pytest.mark.parametrize("level", ["1", "3"])
def test_divided_optimizers_are_divided_anew(runs, level):
    before = rows_of(runs.run(4, 2, ZERO=level, STOP="2"), 2)
    texts = runs.run(2, 4, ZERO=level)
    assert before[1] + rows_of(texts)[1] == EACH_ONCE
    alone = Runs(Path(runs.folder) / "alone").run(1, 8)
    assert end_of(texts[0]) == pytest.approx(end_of(alone[0]), rel=1e-5, abs=1e-7)


def test_a_job_that_recovers_goes_on_in_the_same_way(runs, tmp_path):
    recovers = {"MS_ENABLE_RECOVERY": "1"}
    before = rows_of(runs.run(4, 2, STOP="2", MS_RECOVERY_PATH=str(tmp_path / "first"), **recovers), 2)
    after = rows_of(runs.run(2, 4, MS_RECOVERY_PATH=str(tmp_path / "then"), **recovers))
    assert before[1] + after[1] == EACH_ONCE and after[2] == EACH_ONCE


@pytest.mark.parametrize("victims", [[1], [0, 1]])
def test_workers_that_are_killed_there_come_back_to_the_same_rows(runs, tmp_path, victims):
    runs.run(4, 2, STOP="2")
    told = {
        "MS_ENABLE_RECOVERY": "1",
        "MS_RECOVERY_PATH": str(tmp_path / "points"),
        "FOLDER": str(runs.folder),
    }
    told |= {"BATCH": "5", "KILLED": str(tmp_path / "killed"), "MUSTER_SAMPLE_LOG": str(runs.samples)}
    told |= {"KILL": ",".join(f"4 of {rank}" for rank in victims)}
    with Job(SCRIPT.replace("ROWS", str(ROWS)), 2, **told) as job:
        for rank in victims:
            assert job.workers[rank].wait(60) == -9
        for rank in victims:
            job.workers[rank] = job.start(f"worker {rank}", MS_ROLE="MS_WORKER", MS_NODE_ID=str(rank))
        assert [process.wait(60) for process in job.everybody()] == [0, 0, 0]
        ends = {tuple(end_of(worker.output())) for worker in job.workers}
    assert len(ends) == 1
    for number in (0, 1):
        assert re.search(rf"^pass {number}: {ROWS} rows .*: each once$", samples(runs.samples), re.M)


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"THEN": "data.shuffle(8)"}, "mixes"),
        ({"THEN": "data.repeat(2)"}, "repeats"),
        ({"SINK": "3"}, "sink_size"),
    ],
)
def test_what_is_left_of_an_epoch_may_not_be_known(runs, variables, why):
    runs.run(4, 2, STOP="2", **variables)
    text = runs.run(2, 4, fails=True, **variables)[0]
    assert why in text and "Start 4 workers" in text


def test_behind_an_epoch_nothing_has_to_be_known(runs):
    before = rows_of(runs.run(4, 2, STOP="6", THEN="data.shuffle(8)"), 6)
    after = rows_of(runs.run(2, 4, THEN="data.shuffle(8)"))
    assert before[1] == EACH_ONCE and after == {2: EACH_ONCE}


# ---- Loops by hand ----------------------------------------------------------------------------------------

LOOP = """
import os, sys
import numpy
import muster
from muster import dataset as ds, nn

workers = int(os.environ.get("MS_WORKER_NUM", "0"))
if workers:
    muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.init()
muster.set_seed(3)
rank, size = (muster.get_rank(), muster.get_group_size()) if workers else (0, 1)
x = numpy.random.default_rng(1).standard_normal((ROWS, 4)).astype(numpy.float32)
y = numpy.arange(ROWS, dtype=numpy.float32).reshape(ROWS, 1)
rows = ds.NumpySlicesDataset((x, y), ["x", "y"], num_shards=size, shard_id=rank)
rows = rows.batch(int(os.environ["BATCH"]))
net = nn.Dense(4, 1)
optimizer = nn.Momentum(net.trainable_params(), 0.001, 0.9)
loss_fn = nn.MSELoss()
step_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
reducer = nn.DistributedGradReducer(optimizer.parameters) if workers else lambda gradients: gradients
state, stop, given = os.environ["FOLDER"] + ".state", int(os.environ.get("STOP", "-1")), rows
if os.environ.get("WITHOUT"):
    given = None
first, done = muster.load_state(state, net, optimizer, given, missing_ok=True)
print("from", first, done)
for epoch in range(first, 2):
    for step, (x, y) in enumerate(rows, done):
        if epoch == 0 and step == stop:
            sys.exit()
        loss, gradients = step_fn(x, y)
        optimizer(reducer(gradients))
        muster.save_state(state, net, optimizer, given)
        for row in y.asnumpy().ravel():
            print("row", epoch + 1, step + 1, int(row), flush=True)
    done = 0
print("end", [v for p in net.trainable_params() for v in p.asnumpy().ravel().tolist()])
"""


def test_a_loop_by_hand_goes_on_with_other_workers_as_often_as_one_likes(runs):
    runs.script = LOOP
    seen = Counter()
    for workers, batch, stop in [(4, 1, 3), (2, 5, 3), (4, 1, 10), (1, 4, 11)]:
        seen += rows_of(runs.run(workers, batch, STOP=str(stop)))[1]
    texts = runs.run(2, 2)
    after = rows_of(texts)
    assert seen + after[1] == EACH_ONCE and after[2] == EACH_ONCE
    assert "from 0 11" in texts[0] and end_of(texts[0]) == end_of(texts[1])


def test_a_loop_by_hand_that_does_not_give_its_data_needs_as_many(runs):
    runs.script = LOOP
    runs.run(4, 1, STOP="3", WITHOUT="1")
    texts = runs.run(2, 2, fails=True, WITHOUT="1")
    assert "is the state of worker 0 of 4" in texts[0]
