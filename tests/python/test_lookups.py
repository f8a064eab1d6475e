"""Tables of embeddings on parameter servers, of which workers look rows up."""

import contextlib
import json
import random
import re
import subprocess
import sys

import pytest
from digits import write_digits
from job import PATIENCE, Job, clean_environment
from places import ROOT
from unbroken import unbroken_ends

sys.path.insert(0, str(ROOT / "tests/chaos"))
import faults
import recovering_job

# Trains a table and a dense layer; says a hash of the rows, and what `TOLD` says.
SCRIPT = """
import hashlib
import numpy as np
import muster
from muster import nn, ops, Tensor

muster.set_ps_context(enable_ps=True, staleness=STALENESS_)
muster.init()
rank, workers = muster.get_rank(), muster.get_group_size()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.set_seed(3)
VOCABULARY, WIDTH = 50, 4

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(TABLE_)
        self.fc = nn.Dense(WIDTH, 1)

    def construct(self, ids, more):
        return self.fc(ROWS_)

class Both:  # the optimizer of the table, and that of all else
    def __init__(self, of_table, of_others):
        self.of_table, self.of_others = of_table, of_others
        self.parameters = [*of_table.parameters, *of_others.parameters]

    def __call__(self, gradients):
        self.of_table(gradients[:1])
        self.of_others(gradients[1:])

net = Net()
MARKED_
first = net.table(Tensor(np.arange(4))).asnumpy() if FIRST_ else None
optimizer = OPTIMIZER_
loss_fn = nn.MSELoss()
reducer = nn.DistributedGradReducer(optimizer.parameters)
grad_fn = muster.value_and_grad(lambda ids, more, y: loss_fn(net(ids, more), y), None, optimizer.parameters)
random = np.random.default_rng(7)
for step in range(STEPS_):
    ids = random.integers(0, 20, (8, 3)).astype(np.int32)
    more = random.integers(0, 20, 8)
    y = random.standard_normal((8, 1)).astype(np.float32)
    IDS_
    own = slice(rank * 8 // workers, (rank + 1) * 8 // workers)
    loss, gradients = grad_fn(Tensor(ids[own]), Tensor(more[own]), Tensor(y[own]))
    GRADIENTS_
    optimizer(reducer(gradients))
rows = net.table(Tensor(np.arange(30, dtype=np.int32))).asnumpy()
weights = rows.tobytes() + net.fc.weight.asnumpy().tobytes()
print("told", TOLD_)
print("weights", hashlib.sha256(weights).hexdigest(), flush=True)
"""
DEFAULTS = {
    "TABLE": "VOCABULARY, WIDTH, where='servers'",
    "OPTIMIZER": "nn.SGD(net.trainable_params(), 0.1)",
    "STALENESS": "0",
    "STEPS": "5",
    "FIRST": "False",
    "ROWS": "ops.reduce_sum(self.table(ids), 1) + self.table(more)",
    "MARKED": "",
    "GRADIENTS": "",
    "IDS": "",
    "TOLD": "''",
}


def script(**options):
    text = SCRIPT
    for name, value in {**DEFAULTS, **options}.items():
        text = text.replace(f"{name}_", str(value))
    return text


@contextlib.contextmanager
def job(servers, workers=2, variables=None, **options):
    with Job(script(**options), workers, MS_SERVER_NUM=str(servers), **(variables or {})) as started:
        started.servers = [started.start(f"server {n}", MS_ROLE="MS_PSERVER") for n in range(servers)]
        try:
            yield started
        finally:
            for server in started.servers:
                server.end()


def ended(servers, workers=2, **options):
    """What worker 0 has printed, once all have ended well, with equal weights."""
    with job(servers, workers, **options) as started:
        outputs = [worker.output() for worker in started.workers]
        statuses = [process.wait() for process in [*started.everybody(), *started.servers]]
    assert set(statuses) == {0}, "\n".join(outputs)
    assert len({weights(output) for output in outputs}) == 1
    return outputs[0]


def weights(output):
    return re.search(r"weights (\w+)", output)[1]


def told(output):
    return re.search(r"^told (.*)$", output, re.MULTILINE)[1]


def alone(**options):
    return run_alone(script(**options))


def run_alone(text):
    """The output of a process without a job."""
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def failure(servers=1, workers=1, **options):
    with job(servers, workers, **options) as started:
        outputs = [worker.output() for worker in started.workers]
        assert all(worker.wait() != 0 for worker in started.workers), outputs
    return "\n".join(outputs)


OPTIMIZERS = [
    "nn.SGD(net.trainable_params(), 0.1, momentum=0.5)",
    "nn.Momentum(net.trainable_params(), 0.1, 0.9, weight_decay=0.01)",
    "nn.Adam(net.trainable_params(), nn.cosine_decay_lr(0.0, 0.1, 5, 5, 2), weight_decay=0.01)",
    "nn.Adagrad(net.trainable_params(), learning_rate=0.1)",
    "nn.FTRL(net.trainable_params(), learning_rate=0.1, l1=0.001)",
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda text: text.partition("(")[0].removeprefix("nn."))
def test_the_number_of_servers_changes_no_bit(optimizer):
    ends = [weights(ended(servers, OPTIMIZER=optimizer)) for servers in (1, 3)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("optimizer", ["nn.SGD(net.trainable_params(), 0.1)", OPTIMIZERS[3]])
def test_one_worker_with_servers_has_the_bits_of_a_process_alone(optimizer):
    options = {"OPTIMIZER": optimizer, "ROWS": "ops.reduce_sum(self.table(ids), 1)"}
    assert weights(ended(2, workers=1, **options)) == weights(alone(**options))


@pytest.mark.parametrize("begin", ["'normal'", "'uniform'", "0.25", "'truncated_normal'", "'xavier_uniform'"])
def test_rows_begin_as_those_of_a_dense_parameter(begin):
    table = f"VOCABULARY, WIDTH, where='servers', embedding_table={begin}"
    rows = "rows[:, :2].tolist()"
    untouched = {"TABLE": table, "TOLD": rows, "STEPS": "0"}
    begun = told(ended(2, **untouched))
    assert begun == told(alone(**untouched))
    # Those that no step has touched stay; the others do not.
    trained = told(ended(2, **{**untouched, "STEPS": "2"}))
    assert json.loads(trained)[20:] == json.loads(begun)[20:]
    assert json.loads(trained)[:20] != json.loads(begun)[:20]


def test_two_optimizers_share_the_servers():
    of_table, of_others = "nn.FTRL(net.table.trainable_params())", "nn.Adam(net.fc.trainable_params(), 0.1)"
    options = {"MARKED": "net.fc.set_param_ps()", "OPTIMIZER": f"Both({of_table}, {of_others})"}
    assert weights(ended(1, **options)) == weights(ended(3, **options))


def test_a_table_without_a_vocabulary_takes_any_number():
    options = {"TABLE": "None, WIDTH, where='servers'", "TOLD": "net.table(Tensor(np.array([2**62]))).shape"}
    outputs = [ended(servers, **options) for servers in (1, 3)]
    assert weights(outputs[0]) == weights(outputs[1])
    assert told(outputs[0]) == "(1, 4)"
    # Rows that were updated are no longer those of the beginning.
    assert weights(ended(1, **options)) != weights(ended(1, **{**options, "STEPS": "0"}))


def test_a_checkpoint_has_a_tables_rows_for_any_number_of_servers(tmp_path):
    path = f"{tmp_path}/saved"
    saved = ended(1, TOLD=f"muster.save_checkpoint(net, f'{path}_{{rank}}.ckpt')")
    load = f"muster.load_param_into_net(net, muster.load_checkpoint('{path}_0.ckpt'))"
    loaded = {"MARKED": load, "STEPS": "0"}
    assert weights(ended(3, **loaded)) == weights(saved) == weights(alone(**loaded))
    trained = [weights(ended(servers, MARKED=load)) for servers in (1, 3)]
    assert trained[0] == trained[1] != weights(saved)
    assert "before its first lookup" in failure(GRADIENTS=load)


@pytest.mark.parametrize(
    "table", ["None, WIDTH, where='servers'", "10, WIDTH, out_of_range='grow', where='servers'"]
)
def test_a_checkpoint_has_the_updated_rows_of_a_table_that_takes_any_number(tmp_path, table):
    path = f"{tmp_path}/saved"
    far = "ids = ids.astype(np.int64); ids[:2] = 2**40"  # what no vocabulary has
    more = {"TABLE": table, "IDS": far}
    saved = ended(1, TOLD=f"muster.save_checkpoint(net, f'{path}_{{rank}}.ckpt')", **more)
    load = f"muster.load_param_into_net(net, muster.load_checkpoint('{path}_0.ckpt'))"
    rows = "net.table(Tensor(np.array([3, 2**40, 10**15]))).asnumpy().tolist()"
    again = ended(3, MARKED=load, STEPS="0", TOLD=rows, **more)
    assert weights(again) == weights(saved)
    assert told(again) == told(ended(1, MARKED=load, STEPS="0", TOLD=rows, **more))
    assert told(again) != told(ended(1, STEPS="0", TOLD=rows, **more))  # 2**40 was updated
    # Trained on from there, and saved anew from what the servers have by then.
    save = f"muster.save_checkpoint(net, '{path}_' + str(rank) + '.again')"
    trained = [ended(servers, MARKED=load, TOLD=save, **more) for servers in (1, 3)]
    assert weights(trained[0]) == weights(trained[1]) != weights(saved)
    load = load.replace("_0.ckpt", "_1.again")
    assert weights(ended(2, MARKED=load, STEPS="0", **more)) == weights(trained[0])


def test_a_table_that_grows_begins_with_the_checkpoint_of_one_with_a_vocabulary(tmp_path):
    saved = ended(2, TOLD=f"muster.save_checkpoint(net, '{tmp_path}/saved_' + str(rank))")
    load = f"muster.load_param_into_net(net, muster.load_checkpoint('{tmp_path}/saved_1'))"
    table = "30, WIDTH, where='servers', out_of_range='grow'"
    assert weights(ended(1, TABLE=table, MARKED=load, STEPS="0")) == weights(saved)


def rows_counted(output):
    """Rows looked up, those that came ahead of their step, and those of the cache."""
    return [
        int(number)
        for number in re.search(r"servers: (\d+), of which (\d+) .* and (\d+) were", output).groups()
    ]


# What the script's next step will look up, from numbers that begin as its own do.
PREFETCH = """
if step == 0:
    ahead = np.random.default_rng(7)
    ahead.integers(0, 20, (8, 3)), ahead.integers(0, 20, 8), ahead.standard_normal((8, 1))
next_ids, next_more = ahead.integers(0, 20, (8, 3)), ahead.integers(0, 20, 8)
ahead.standard_normal((8, 1))
net.table.prefetch(Tensor(next_ids[own]))
net.table.prefetch(Tensor(next_more[own]))
""".replace("\n", "\n    ")


@pytest.mark.parametrize("optimizer", [0, 2])
def test_a_prefetch_and_a_cache_change_no_bit(optimizer):
    table = "VOCABULARY, WIDTH, where='servers', cached_rows=10"
    expected = weights(ended(2, OPTIMIZER=OPTIMIZERS[optimizer]))
    for options in ({"GRADIENTS": PREFETCH}, {"TABLE": table}, {"TABLE": table, "GRADIENTS": PREFETCH}):
        output = ended(2, OPTIMIZER=OPTIMIZERS[optimizer], variables={"MUSTER_LOG": "info"}, **options)
        assert weights(output) == expected
        looked_up, ahead, _ = rows_counted(output)
        # All that training looked up behind the first step; then come 30 rows, which nobody foresaw.
        assert (ahead > (looked_up - 30) / 2) == ("GRADIENTS" in options)


MODEL = """
import hashlib
import numpy as np
import muster
from muster import dataset as ds, nn, train

muster.set_ps_context(enable_ps=True)
muster.init()
muster.set_seed(3)
random = np.random.default_rng(7)
ids = random.integers(0, 50, (40, 3)).astype(np.int32)
y = random.standard_normal((40, 1)).astype(np.float32)
data = ds.NumpySlicesDataset((ids, y), ["ids", "y"], shuffle=True)
net = nn.SequentialCell(nn.Embedding(50, 4, where="servers"), nn.Flatten(), nn.Dense(12, 1))
model = train.Model(net, nn.MSELoss(), nn.Adagrad(net.trainable_params(), learning_rate=0.1))
model.train(3, data.batch(8))
rows = net[0](muster.Tensor(np.arange(50))).asnumpy()
print("weights", hashlib.sha256(rows.tobytes() + net[2].weight.asnumpy().tobytes()).hexdigest())
"""


def test_a_model_asks_for_the_rows_of_its_next_batch_and_changes_no_bit():
    with Job(MODEL, 1, MS_SERVER_NUM="2", MUSTER_LOG="info") as started:
        servers = [started.start(f"server {n}", MS_ROLE="MS_PSERVER") for n in range(2)]
        try:
            output = started.workers[0].output()
            assert [process.wait() for process in [*started.everybody(), *servers]] == [0] * 4, output
        finally:
            for server in servers:
                server.end()
    looked_up, ahead, _ = rows_counted(output)
    # Of the five batches of an epoch four are foreseen, in the first one three.
    assert ahead > (looked_up - 50) * 0.6
    assert weights(output) == weights(run_alone(MODEL))


def test_cached_rows_are_not_asked_for_again_while_they_may_be_seen():
    table = "VOCABULARY, WIDTH, where='servers', cached_rows=50"
    looks_again = "[net.table(Tensor(np.arange(30))).asnumpy().tobytes() == rows.tobytes() for _ in range(3)]"
    output = ended(2, TABLE=table, TOLD=looks_again, variables={"MUSTER_LOG": "info"})
    assert told(output) == "[True, True, True]"
    assert rows_counted(output)[2] >= 90
    with job(2, TABLE=table, STALENESS="2", STEPS="8", variables={"MUSTER_LOG": "info"}) as started:
        outputs = [worker.output() for worker in started.workers]
        assert [worker.wait() for worker in started.workers] == [0, 0], outputs
    assert all(rows_counted(output)[2] > 0 for output in outputs)


def test_a_table_that_grows_takes_numbers_beyond_its_vocabulary():
    table = "20, WIDTH, where='servers', out_of_range='grow'"
    grown = "net.table(Tensor(np.array([10**12])))"
    output = ended(2, TABLE=table.replace("20", "10"), TOLD=f"np.isfinite({grown}.asnumpy()).all()")
    assert told(output) == "True"
    assert weights(output) == weights(ended(3, TABLE=table))
    text = failure(TABLE=table, TOLD="net.table(Tensor(np.array([-1])))")
    assert "id -1 " in text and "id & (2**63 - 1)" in text


def test_rows_that_nobody_updates_leave_a_table_without_vocabulary():
    table = "None, WIDTH, where='servers', age_max=10"
    # Row 10**9 is updated in the first step alone, and servers look for rows that leave behind step 63.
    rare = "ids[:1, 0] = 10**9 if step == 0 else 0"
    row = "net.table(Tensor(np.array([10**9])))"
    options = {"GRADIENTS": "", "TOLD": f"{row}.asnumpy().tolist()"}
    script_of = {"TABLE": table, "OPTIMIZER": "nn.SGD(net.trainable_params(), 0.1)", **options}

    def row_behind(steps, table):
        return told(ended(2, workers=1, **{**script_of, "TABLE": table}, STEPS=steps, IDS=rare))

    fresh = row_behind("0", table)
    assert row_behind("63", table) != fresh
    assert row_behind("65", table) == fresh
    assert row_behind("65", table.replace(", age_max=10", "")) != fresh
    assert row_behind("65", table.replace("age_max=10", "rows_max=3")) == fresh
    text = failure(TABLE="VOCABULARY, WIDTH, where='servers', age_max=10")
    assert "rows leave only tables without one" in text


def test_workers_that_are_ahead_of_the_servers_end_well():
    for staleness in ("3", "None"):
        with job(2, STALENESS=staleness) as started:
            outputs = [worker.output() for worker in started.workers]
            assert [worker.wait() for worker in started.workers] == [0, 0], outputs


def test_numbers_that_a_table_does_not_have_are_named():
    for wrong in ("50", "-1"):
        text = failure(TOLD=f"net.table(Tensor(np.array([[0, 1], [{wrong}, 2]])))")
        assert f"id {wrong} (number 2 of the ids)" in text
        assert "table.embedding_table" in text and "0 to 49" in text


def test_numbers_that_a_table_does_not_have_can_be_zeros():
    options = {
        "TABLE": "VOCABULARY, WIDTH, where='servers', out_of_range='zeros'",
        "TOLD": "net.table(Tensor(np.array([50, 1, -1]))).asnumpy().any(1).tolist()",
        "GRADIENTS": "net.table(Tensor(np.array([99])))",
    }
    output = ended(2, workers=1, **options)
    assert told(output) == "[False, True, False]"
    assert told(alone(**options)) == told(output)


def test_a_gradient_that_is_no_number_is_named():
    text = failure(OPTIMIZER="nn.SGD(net.trainable_params(), 1e30)", STEPS="9")
    row = r"the gradient of row \d+ of table 'table.embedding_table' is -?(nan|inf) in step"
    assert re.search(row, text), text


@pytest.mark.parametrize(
    "change",
    [
        "gradients = tuple(each * 0.5 for each in gradients)",
        "grad_fn(Tensor(ids[own]), Tensor(more[own]), Tensor(y[own]))",
    ],
)
def test_gradients_of_a_table_that_a_script_changes_or_leaves_out_are_an_error(change):
    text = failure(GRADIENTS=change)
    assert "the gradient of table 'table.embedding_table' was changed or left out" in text
    assert "loss_scale" in text


def test_a_table_that_is_looked_up_before_it_has_an_optimizer_is_an_error():
    assert "make the optimizer before the first lookup" in failure(FIRST="True")


RECOVERING = {"CHAOS_EPOCHS": "12", "CHAOS_ON_SERVERS": "1", "CHAOS_NET": "lookups"}


def recovering(folder, mode, digits, **variables):
    return recovering_job.Job(folder / "job", 2, mode, digits, servers=2, **RECOVERING, **variables)


@pytest.fixture(name="digits", scope="module")
def digits_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    write_digits(folder, rows=640)
    return folder


@pytest.fixture(name="unbroken_end", scope="module")
def unbroken_end_fixture(tmp_path_factory, digits):
    return unbroken_ends(tmp_path_factory, "lookups", lambda folder, mode: recovering(folder, mode, digits))


@pytest.mark.parametrize(
    ("fault", "mode"),
    [
        (faults.kill_server, "model"),
        (faults.kill_server, "loop"),
        (faults.kill_worker, "model"),
        (faults.kill_worker, "loop"),
        (faults.kill_server_and_worker, "model"),
        (faults.kill_everybody, "model"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_broken_training_ends_with_the_bits_of_an_unbroken_one(tmp_path, digits, unbroken_end, fault, mode):
    expected = unbroken_end(mode)
    with recovering(tmp_path, mode, digits) as job:
        job.wait_for_progress(())
        fault(job, random.Random(1))
        assert job.wait() == expected
