"""Checkpoints of trainings with parameter servers: they have what the optimizer keeps."""

import os
import re
import shutil
import signal

import pytest
from job import Job, output_alone

SCRIPT = """
import hashlib, os
import numpy
import muster
from muster import nn, ops, train
from muster.dataset import NumpySlicesDataset

servers = int(os.environ["SERVERS"])
if servers:
    muster.set_ps_context(enable_ps=True)
muster.init()
muster.set_seed(1)
rank, workers = muster.get_rank(), muster.get_group_size()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.has_table = os.environ["TABLE"] != "none"
        if self.has_table:
            rows = None if os.environ["TABLE"] == "any" else 30
            dtype = getattr(muster, os.environ["ROW_DTYPE"]) if "ROW_DTYPE" in os.environ else None
            self.table = nn.Embedding(rows, 6, where="servers", row_dtype=dtype)
        self.hidden = nn.Dense(6, 8)
        self.out = nn.Dense(8, 3)

    def construct(self, ids, x):
        if self.has_table:
            x = x + ops.reduce_mean(self.table(ids), 1)
        return self.out(ops.relu(self.hidden(x)))

net = Net()
if servers:
    net.hidden.set_param_ps()
    net.out.set_param_ps()
random = numpy.random.default_rng(1)
ids = random.integers(0, 30, (40, 3)).astype(numpy.int32)
x = random.standard_normal((40, 6)).astype(numpy.float32)
labels = random.integers(0, 3, 40).astype(numpy.int32)
columns = ["ids", "x", "label"]
rows = NumpySlicesDataset((ids, x, labels), columns, num_shards=workers, shard_id=rank).batch(4)
optimizer = eval("nn." + os.environ["OPTIMIZER"])
loss_fn = nn.CrossEntropyLoss()

class WithLoss(nn.Cell):
    def __init__(self):
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, ids, x, label):
        return loss_fn(self.net(ids, x), label)

class Gate(train.Callback):
    def on_train_begin(self, run_context):
        self.wait(0)

    def on_train_step_begin(self, run_context):
        self.wait(-run_context.original_args().cur_step_num)

    def on_train_step_end(self, run_context):
        self.wait(run_context.original_args().cur_step_num)

    def wait(self, step):
        if str(rank) == os.environ.get("WAITS") and step == int(os.environ["AT"]):
            print("at the gate", flush=True)
            open(os.environ["GATE"]).read()  # a pipe: until the test writes there

together = "APART" not in os.environ
config = train.CheckpointConfig(save_checkpoint_steps=5, integrated_save=together)
saver = train.ModelCheckpoint("net", os.environ["FOLDER"], config)
model = train.Model(WithLoss(), optimizer=optimizer)
model.train(int(os.environ["EPOCHS"]), rows, [saver, Gate()], resume="last")
parameters = [*net.get_parameters(), *optimizer.get_parameters()]
muster.save_checkpoint(parameters, os.environ["FOLDER"] + f"/end_{rank}.ckpt", together)
end = muster.load_checkpoint(os.environ["FOLDER"] + f"/end_{rank}.ckpt")
for name in sorted(end):
    print("end", name, hashlib.sha256(end[name].asnumpy().tobytes()).hexdigest()[:16], flush=True)
"""

OPTIMIZERS = [
    "SGD(net.trainable_params(), 0.05, momentum=0.9)",
    "Momentum(net.trainable_params(), 0.05, 0.9)",
    "Adam(net.trainable_params(), 0.01)",
    "Adagrad(net.trainable_params(), learning_rate=0.05)",
    "FTRL(net.trainable_params(), learning_rate=0.05)",
]


def start(job, role, number, **variables):
    roles = {"worker": "MS_WORKER", "server": "MS_PSERVER"}
    return job.start(f"{role} {number}", MS_ROLE=roles[role], MS_NODE_ID=str(number), **variables)


def ended(folder, epochs, servers, optimizer=OPTIMIZERS[2], table="none", meanwhile=None, **variables):
    """Hashes of all that the network and the optimizer have, by name. `meanwhile` is called with the job."""
    told = {"SERVERS": str(servers), "MS_SERVER_NUM": str(servers), "EPOCHS": str(epochs)}
    told |= {"FOLDER": str(folder), "OPTIMIZER": optimizer, "TABLE": table}
    told |= {"MS_NODE_TIMEOUT": "25", **variables}
    job = Job(SCRIPT, 0, hosts=[[]], MS_WORKER_NUM="2", **told)
    job.workers = [start(job, "worker", number) for number in range(2)]
    job.servers = [start(job, "server", number) for number in range(servers)]
    with job:
        try:
            if meanwhile:
                meanwhile(job)
            outputs = [worker.output() for worker in job.workers]
            statuses = [process.wait() for process in [*job.everybody(), *job.servers]]
        finally:
            for server in job.servers:
                server.end()
    assert set(statuses) == {0}, "\n".join(outputs)
    ends = [dict(re.findall(r"^end (\S+) (\w+)$", output, re.MULTILINE)) for output in outputs]
    assert ends[0] == ends[1]
    return ends[0]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_training_goes_on_with_what_the_optimizer_had_on_other_servers(tmp_path, optimizer):
    expected = ended(tmp_path / "unbroken", 4, 2, optimizer)
    ended(tmp_path / "broken", 2, 2, optimizer)
    assert ended(tmp_path / "broken", 4, 3, optimizer) == expected
    assert any("." in name.replace(".weight", "").replace(".bias", "") for name in expected)


def test_a_checkpoint_goes_from_servers_to_workers_alone_and_back(tmp_path):
    for optimizer in OPTIMIZERS[:3]:
        folder = tmp_path / optimizer[:4]
        expected = ended(folder / "alone", 6, 0, optimizer)
        for epochs, servers in ((2, 2), (4, 0), (6, 1)):
            end = ended(folder / "mixed", epochs, servers, optimizer)
        assert end == expected


@pytest.mark.parametrize("table", ["vocabulary", "any"])
def test_so_does_a_training_with_a_table(tmp_path, table):
    expected = ended(tmp_path / "unbroken", 4, 2, table=table)
    ended(tmp_path / "broken", 2, 2, table=table)
    assert ended(tmp_path / "broken", 4, 3, table=table) == expected
    assert any(name.startswith("moment1.") and "table" in name for name in expected)


def broken_once(folder, role, table, at, waits=0, **told):
    """The end of a training that goes on from a checkpoint; a process dies while worker `waits` waits behind
    step `at` (-n: before step n)."""
    gate = folder / "gate"
    os.mkfifo(gate)

    def kill_and_start_again(job):
        job.workers[waits].wait_for_line("at the gate")
        processes = job.servers if role == "server" else job.workers
        processes[1].signal(signal.SIGKILL)
        assert processes[1].wait() == -signal.SIGKILL
        processes[1] = start(job, role, 1, WAITS="")
        if waits == 0:
            gate.write_text("go on")

    variables = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(folder / "points"), **told}
    ended(folder / "broken", 2, 2, table=table, **variables)
    shutil.rmtree(folder / "points")  # another job: it has the checkpoint alone
    variables |= {"GATE": str(gate), "AT": str(at), "WAITS": str(waits)}
    return ended(folder / "broken", 4, 3, table=table, meanwhile=kill_and_start_again, **variables)


@pytest.mark.parametrize("table", ["none", "vocabulary", "any"])
@pytest.mark.parametrize("role", ["server", "worker"])
def test_a_process_may_die_in_a_training_that_goes_on(tmp_path, role, table):
    expected = ended(tmp_path / "unbroken", 4, 2, table=table)
    assert broken_once(tmp_path, role, table, at=13) == expected


@pytest.mark.parametrize(("role", "table"), [("server", "any"), ("worker", "none"), ("worker", "any")])
def test_it_may_die_before_the_first_step(tmp_path, role, table):
    expected = ended(tmp_path / "unbroken", 4, 2, table=table)
    assert broken_once(tmp_path, role, table, at=0) == expected


def test_a_worker_that_does_not_know_a_tables_loaded_rows_says_so(tmp_path):
    with pytest.raises(AssertionError, match="does not know the rows of table 'table"):
        broken_once(tmp_path, "worker", "vocabulary", at=-11, waits=1)


# Each step takes 1 from what it trains. Worker 1 makes its last four steps when worker 0 has made all of its.
AHEAD = """
import os
import numpy
import muster
from muster import nn, ops

muster.set_ps_context(enable_ps=True, staleness=4)
muster.init()
rank = muster.get_rank()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        begin = {"where": "servers", "cached_rows": 10, "embedding_table": "zeros"}
        self.table, self.growing = nn.Embedding(10, 4, **begin), nn.Embedding(None, 4, **begin)
        self.dense = nn.Dense(4, 1, weight_init="zeros", has_bias=False)
        self.dense.set_param_ps()

    def construct(self, ids):
        rows = ops.reduce_sum(self.table(ids)) + ops.reduce_sum(self.growing(ids))
        return rows + ops.reduce_sum(self.dense.weight)

net = Net()
optimizer = nn.Momentum(net.trainable_params(), 1.0, 0.0)
gradients_of = muster.value_and_grad(net, None, optimizer.parameters)
for step in range(20):
    if (rank, step) == (1, 16):
        open(os.environ["GATE"]).read()
    optimizer(gradients_of(muster.Tensor(numpy.array([3], numpy.int32)))[1])
if rank == 0:
    open(os.environ["GATE"], "w").close()
muster.save_checkpoint(net, os.environ["FOLDER"] + f"/{rank}.ckpt", os.environ["TOGETHER"] == "True")
"""

READ = """
import muster
found = muster.load_checkpoint(FILE)
row = 3 if found["table.embedding_table"].shape == (10, 4) else 0
first = [found[name][0, 0] for name in ("growing.embedding_table", "dense.weight")]
print(found["table.embedding_table"][row, 0], *first)
"""


@pytest.mark.parametrize("together", [True, False])
def test_a_checkpoint_has_all_steps_however_far_a_worker_is_ahead(tmp_path, together):
    os.mkfifo(tmp_path / "gate")
    told = {"GATE": str(tmp_path / "gate"), "FOLDER": str(tmp_path), "TOGETHER": str(together)}
    with Job(AHEAD, 2, MS_SERVER_NUM="2", **told) as job:
        job.servers = [start(job, "server", number) for number in range(2)]
        try:
            outputs = [worker.output() for worker in job.workers]
            assert [process.wait() for process in [*job.everybody(), *job.servers]] == [0] * 5, outputs
        finally:
            for server in job.servers:
                server.end()
    for rank in (0, 1) if together else (0,):
        text = output_alone(READ.replace("FILE", repr(f"{tmp_path}/{rank}.ckpt")))
        assert text.split() == ["-20.0"] * 3, text


LOOP = """
import hashlib, os
import numpy
import muster
from muster import nn, ops

muster.set_ps_context(enable_ps=True)
muster.init()
muster.set_seed(1)
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(ROWS, 4, where="servers")
        self.hidden, self.out = nn.Dense(4, 8), nn.Dense(8, 1)

    def construct(self, ids):
        return self.out(ops.relu(self.hidden(self.table(ids))))

net = Net()
net.hidden.set_param_ps()
optimizer = nn.Adam(net.trainable_params(), 0.05)
parameters = optimizer.parameters
grad_fn = muster.value_and_grad(lambda ids: ops.reduce_mean(ops.square(net(ids) - 1.0)), None, parameters)
reducer = nn.DistributedGradReducer(parameters)
file, first, last = os.environ["FILE"], int(os.environ["FIRST"]), int(os.environ["LAST"])
if first > 0:
    print("begins at", muster.load_state(file, net, optimizer))
for step in range(first, last):
    ids = numpy.array([step, step + 1, 3], numpy.int64) + muster.get_rank()
    optimizer(reducer(grad_fn(muster.Tensor(ids))[1]))
if last < 8:
    muster.save_state(file, net, optimizer, epoch=0, step=last)
rows = net.table(muster.Tensor(numpy.arange(12))).asnumpy()
dense = [each.asnumpy().tobytes() for layer in (net.hidden, net.out) for each in layer.get_parameters()]
print("bits", hashlib.sha256(rows.tobytes() + b"".join(dense)).hexdigest())
"""


def bits_of_loop(folder, first, last, rows, servers):
    script = LOOP.replace("ROWS", rows)
    told = {"FILE": str(folder / "loop"), "FIRST": str(first), "LAST": str(last)}
    with Job(script, 2, MS_SERVER_NUM=str(servers), **told) as job:
        running = [start(job, "server", number) for number in range(servers)]
        try:
            said = [worker.output() for worker in job.workers]
            assert [worker.wait() for worker in job.workers] == [0, 0], said
        finally:
            for server in running:
                server.end()
    bits = [re.search(r"bits (\w+)", each)[1] for each in said]
    assert bits[0] == bits[1]
    return bits[0]


@pytest.mark.parametrize("rows", ["20", "None"])
def test_a_loop_by_hand_goes_on_with_what_servers_had_when_its_state_was_saved(tmp_path, rows):
    """Tables began anew, in silence."""
    whole = bits_of_loop(tmp_path, 0, 8, rows, servers=2)
    bits_of_loop(tmp_path, 0, 5, rows, servers=2)
    assert bits_of_loop(tmp_path, 5, 8, rows, servers=3) == whole
