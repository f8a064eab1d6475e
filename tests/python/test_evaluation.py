"""Evaluations of data-parallel jobs: each worker counts its shard, and all have one process's numbers."""

import ast
import re
import signal

import pytest
from job import Job

HEAD = """
import os, pathlib, signal
import numpy
import muster
from muster import nn, train
from muster.dataset import GeneratorDataset, NumpySlicesDataset

muster.init()
muster.set_seed(1)
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
rank, workers = muster.get_rank(), muster.get_group_size()
random = numpy.random.default_rng(1)
x = random.standard_normal((ROWS, 6)).astype(numpy.float32)
label = random.integers(0, 3, ROWS).astype(numpy.int32)

def rows(batch=4, **settings):
    share = {"num_shards": workers, "shard_id": rank, **settings} if workers > 1 else {}
    return NumpySlicesDataset((x, label), ["x", "label"], shuffle=False, **share).batch(batch)

net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3))
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)

def model(net=net, optimizer=optimizer, **metrics):
    return train.Model(net, nn.CrossEntropyLoss(), optimizer, metrics=metrics or {"accuracy"})
"""


def outputs(body, workers, rows=103, **variables):
    """What each worker has printed; all of them have ended well."""
    with Job(HEAD.replace("ROWS", str(rows)) + body, workers, **variables) as job:
        codes = [process.wait() for process in job.everybody()]
        texts = [worker.output() for worker in job.workers]
        assert codes == [0] * (workers + 1), "\n".join(texts)
        return texts


def values(text, name="values"):
    return [ast.literal_eval(found) for found in re.findall(rf"^{name} (.*)$", text, re.MULTILINE)]


COUNTED = """
counted = model(
    accuracy=train.Accuracy(), top=train.TopKCategoricalAccuracy(2), f1=train.F1(),
    precision=train.Precision(), recall=train.Recall(), matrix=train.ConfusionMatrix(3), loss=train.Loss(),
).eval(rows())
print("values", {name: numpy.asarray(value).tolist() for name, value in counted.items()})
"""


@pytest.mark.parametrize(("workers", "rows"), [(3, 103), (2, 64), (3, 2)])
def test_every_worker_has_the_metrics_that_one_process_has(workers, rows):
    [[alone]] = map(values, outputs(COUNTED, 1, rows))
    together = [values(text) for text in outputs(COUNTED, workers, rows)]
    assert all(each == together[0] for each in together)
    [counted] = together[0]
    assert counted.pop("loss") == pytest.approx(alone.pop("loss"), rel=1e-6)
    assert counted == alone  # padded rows count once, and so does a shard that has only such


def test_sums_of_errors_are_those_of_one_process_to_the_last_bit():
    body = """
y = random.standard_normal((103, 6)).astype(numpy.float32)
share = {"num_shards": workers, "shard_id": rank} if workers > 1 else {}
data = NumpySlicesDataset((x, y), ["x", "y"], shuffle=False, **share).batch(5)
errors = train.Model(nn.Identity(), nn.MSELoss(), optimizer, metrics={"mae": train.MAE(), "mse": train.MSE()})
print("values", errors.eval(data))
"""
    ends = [values(text) for workers in (1, 2, 3) for text in outputs(body, workers)]
    assert len(ends) == 6
    assert all(end == ends[0] for end in ends)


def test_where_each_worker_reads_all_rows_one_may_evaluate_alone():
    body = """
whole = NumpySlicesDataset((x, label), ["x", "label"], shuffle=False).batch(4)
if rank == 0:
    print("values", model().eval(whole))
"""
    first, second = outputs(body, 2)
    [[alone]] = map(values, outputs(body, 1))
    assert values(first) == [alone]
    assert values(second) == []


def test_a_shard_that_two_workers_read_counts_once():
    body = 'print("values", model().eval(rows(num_shards=2, shard_id=rank % 2) if workers > 1 else rows()))'
    [[alone]] = map(values, outputs(body, 1))
    assert [values(text) for text in outputs(body, 4)] == [[alone]] * 4


def test_each_copy_of_a_placed_network_counts_its_shard():
    body = """
for place, cell in enumerate((net[0], net[2])):
    cell.place("MS_WORKER", place)
share = {"num_shards": muster.get_replica_count(net), "shard_id": muster.get_replica_rank(net)}
placed = model(accuracy=train.Accuracy())
print("values", placed.eval(rows(**share)))
placed.fit(1, rows(**share), rows(batch=7, **share))
"""
    [[alone]] = map(values, outputs(body, 1))
    texts = outputs(body, 4)
    assert [values(text) for text in texts] == [[alone]] * 4
    assert [len(re.findall("^epoch 1/1: accuracy", text, re.MULTILINE)) for text in texts] == [1, 0, 0, 0]


ROWS = """
class Rows(train.Metric):
    def clear(self):
        self.rows = 0
    def update(self, scores, label):
        self.rows += len(label)
    def eval(self):
        return self.rows
MERGE
class Twice(train.Accuracy):
    def update(self, scores, label):
        super().update(scores, label)
        super().update(scores, label)

print("values", model(rows=Rows(), twice=Twice()).eval(rows()))
"""
MERGE = """
    def state_dict(self):
        return {"rows": self.rows}
    def merge(self, state):
        self.rows += state["rows"]
"""


def test_a_metric_of_ones_own_is_counted_over_all_workers_once_it_can_merge():
    for text in outputs(ROWS.replace("MERGE", MERGE), 2):
        assert values(text)[0]["rows"] == 103
        assert "metric 'twice' is of each worker's rows alone" in text
        assert "merge(state)" in text


def test_a_metric_that_cannot_merge_is_said_to_be_of_one_worker():
    first, second = outputs(ROWS.replace("MERGE", ""), 2)
    assert (values(first)[0]["rows"], values(second)[0]["rows"]) == (52, 51)
    for text in (first, second):
        assert len(re.findall("metrics 'rows', 'twice' are of each worker's rows alone", text)) == 1


def test_a_metric_without_a_state_does_not_end_a_job_that_recovers(tmp_path):
    body = ROWS.replace("MERGE", "").replace("eval(rows())", "fit(1, rows(), rows())")
    recovery = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(tmp_path)}
    assert "epoch 1/1: rows 52, twice 0." in outputs(body, 2, **recovery)[0]


FIT = """
found = []
note = train.LambdaCallback(on_train_epoch_end=lambda run: found.append(dict(run.eval_results)))
fitted = model(accuracy=train.Accuracy())
fitted.fit(3, rows(), VALID, callbacks=note)
for each in found:
    print("values", each)
print("again", fitted.eval(rows()))
"""


def test_fit_has_one_number_on_all_workers_and_prints_it_once():
    texts = outputs(FIT.replace("VALID", "rows(batch=7)"), 2)
    assert values(texts[0]) == values(texts[1])
    assert len(values(texts[0])) == 3
    assert values(texts[0], "again") == [{"accuracy": values(texts[0])[-1]["accuracy"]}]
    lines = [
        re.findall(r"^epoch (\d)/3: accuracy [\d.]+, eval_loss [\d.]+$", text, re.MULTILINE) for text in texts
    ]
    assert lines == [["1", "2", "3"], []]


def test_fit_says_that_workers_differ_which_are_said_to_read_all_rows():
    parts = 'NumpySlicesDataset((x[rank::2], label[rank::2]), ["x", "label"]).batch(4)'
    texts = outputs(FIT.replace("VALID", parts), 2)
    assert values(texts[0]) != values(texts[1])
    assert all("though each evaluates all rows" in text and "mark_shard" in text for text in texts)


def test_rows_that_the_script_has_cut_itself_are_marked_as_shards():
    parts = 'NumpySlicesDataset((x[rank::2], label[rank::2]), ["x", "label"]).batch(4).mark_shard(2, rank)'
    texts = outputs(FIT.replace("VALID", parts), 2)
    assert values(texts[0]) == values(texts[1])
    assert values(texts[0], "again") == [{"accuracy": values(texts[0])[-1]["accuracy"]}]
    assert "though each evaluates all rows" not in texts[0]


def test_a_worker_without_a_valid_dataset_keeps_nobody_waiting():
    first, second = outputs(FIT.replace("VALID", "rows() if rank == 0 else None"), 2)
    assert "worker 1 evaluates nothing" in first
    assert "evaluates nothing" not in second
    assert len(values(first)) == 3 and values(second) == [{}, {}, {}]


STATISTICS = """
net = nn.SequentialCell(nn.Dense(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dense(8, 3))
fitted = model(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))
if workers > 1:
    fitted.train(2, rows())
    print("mean", net[1].moving_mean.asnumpy().tolist())
    if rank == 0:
        muster.save_checkpoint(net, CHECKPOINT)
else:
    muster.load_param_into_net(net, muster.load_checkpoint(CHECKPOINT))
print("values", fitted.eval(rows()))
print("mean", net[1].moving_mean.asnumpy().tolist())
"""


def test_moving_statistics_are_those_of_the_first_worker(tmp_path):
    body = STATISTICS.replace("CHECKPOINT", repr(str(tmp_path / "net.ckpt")))
    first, second = outputs(body, 2)
    [[alone]] = map(values, outputs(body, 1))
    assert values(first) == values(second) == [alone]
    means = [values(text, "mean") for text in (first, second)]
    assert means[0][0] != means[1][0]  # each has seen its own samples
    assert all(before == after for before, after in means)


def test_under_mindspores_names_each_worker_counts_what_it_was_given():
    body = """
import mindspore
alone = mindspore.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy", "loss"})
alone.fit(1, rows(), rows())
if rank == 0:  # no call of all
    print("values", alone.eval(rows()))
    losses = train.LambdaCallback(on_eval_step_end=lambda run: print("loss", float(run.net_outputs[0])))
    alone.eval(rows(), losses)
"""
    first, second = outputs(body, 2)
    batches = values(first, "loss")
    assert values(first)[0]["loss"] == pytest.approx(sum(batches) / len(batches))
    assert "eval_loss" not in first + second


@pytest.mark.parametrize(
    ("evaluation", "parts"),
    [
        ('rows(**({} if rank == 0 else {"num_shards": 3}))', ("rank 0", "2 shards", "rank 1", "of 3")),
        ("rows() + NumpySlicesDataset((x, label), ['x', 'label']).batch(4)", ("rank", "more than once")),
    ],
)
def test_workers_that_evaluate_otherwise_are_named(evaluation, parts):
    with Job(HEAD.replace("ROWS", "103") + f"model().eval({evaluation})", 2) as job:
        assert all(worker.wait() != 0 for worker in job.workers)
        text = job.workers[1].output()
    assert all(part in text for part in parts)


def test_a_worker_that_does_not_come_to_the_evaluation_is_named():
    with Job(HEAD.replace("ROWS", "103") + "if rank == 0:\n    model().eval(rows())", 2) as job:
        assert job.workers[1].wait() == 0
        assert job.workers[0].wait() != 0
        text = job.workers[0].output()
    assert "worker 1" in text and "every worker makes the same calls of eval" in text


# ---- A worker is lost -------------------------------------------------------------------------------------

LOST = """
died = pathlib.Path(DIED)

class Dies(train.Callback):
    evaluations = 0
    state_is_shared = True
    def state_dict(self):
        return {"evaluations": self.evaluations}
    def load_state_dict(self, state):
        self.evaluations = state["evaluations"]
    def on_eval_begin(self, run):
        self.evaluations += 1
    def WHERE(self, run):
        if rank == 1 and self.evaluations == AT and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)

found = []
note = train.LambdaCallback(
    on_train_epoch_end=lambda run: print("values", dict(run.eval_results), flush=True))
fitted = model(accuracy=train.Accuracy(), loss=train.Loss())
fitted.fit(3, rows(), rows(batch=7), callbacks=[note] if AT == 1 else [Dies(), note])
print("again", fitted.eval(rows(), Dies() if AT == 1 else None), flush=True)
print("weights", [p.asnumpy().tolist() for p in net.trainable_params()], flush=True)
"""


def lost(folder, where, at, dies=True):
    body = HEAD.replace("ROWS", "103") + LOST.replace("WHERE", where).replace("AT", str(at))
    body = body.replace("DIED", repr(str(folder / "died")))
    recovery = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(folder / "recovery")}
    if not dies:
        (folder / "died").touch()
    with Job(body, 2, **recovery) as job:
        if dies:
            assert job.workers[1].wait() == -signal.SIGKILL
            job.workers[1] = job.start("worker 1", MS_ROLE="MS_WORKER", MS_NODE_ID="1")
        codes = [process.wait() for process in job.everybody()]
        texts = [worker.output() for worker in job.workers]
        assert codes == [0, 0, 0], "\n".join(texts)
        return texts


@pytest.fixture(name="unbroken", scope="module")
def unbroken_fixture(tmp_path_factory):
    return lost(tmp_path_factory.mktemp("unbroken"), "on_eval_begin", 99, dies=False)


@pytest.mark.parametrize(
    "where", ["on_eval_epoch_begin", "on_eval_step_end", "on_eval_end", "on_train_epoch_end"]
)
def test_fit_goes_on_with_the_same_numbers_when_a_worker_is_lost_while_it_evaluates(
    tmp_path, unbroken, where
):
    texts = lost(tmp_path, where, 2)
    for text, whole in zip(texts, unbroken, strict=True):
        assert values(text)[-1] == values(whole)[-1]
        assert values(text, "again") == values(whole, "again")
        assert values(text, "weights") == values(whole, "weights")
    assert values(texts[0]) == values(unbroken[0])  # who lives has each of them once
    assert "all go back to" not in "".join(texts)  # from memory: no step is made again


@pytest.mark.parametrize("where", ["on_eval_epoch_begin", "on_eval_step_end", "on_eval_end"])
def test_eval_gives_the_same_numbers_when_a_worker_is_lost_in_it(tmp_path, unbroken, where):
    texts = lost(tmp_path, where, 1)
    for text, whole in zip(texts, unbroken, strict=True):
        assert values(text, "again") == values(whole, "again")
        assert values(text, "weights") == values(whole, "weights")
