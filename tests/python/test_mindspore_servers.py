"""What MindSpore's scripts do with their gradients and optimizers, with parameters on parameter servers."""

import re
import signal

import pytest
from job import Job, run_alone

# Trains a network of a table and two layers by what stands at BODY_, and says a hash of all of it.
SCRIPT = """
import hashlib, os
import numpy as np
import mindspore as ms
from mindspore import boost, nn, ops, Tensor
from mindspore import dataset as ds

ms.set_ps_context(enable_ps=True)
if "MS_ROLE" in os.environ:
    ms.communication.init()
ms.set_seed(3)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingLookup(50, 4)
        self.hidden = nn.Dense(4, 8)
        self.out = nn.Dense(8, 1)

    def construct(self, ids):
        return self.out(ops.relu(self.hidden(self.table(ids).sum(1))))

net = Net()
net.MARKED_.set_param_ps()
random = np.random.default_rng(7)
ids = random.integers(0, 50, (48, 3)).astype(np.int32)
y = random.standard_normal((48, 1)).astype(np.float32)
data = ds.NumpySlicesDataset((ids, y), ["ids", "y"], shuffle=False).batch(8)
loss_fn = nn.MSELoss()
optimizer = nn.SGD(net.trainable_params(), 0.05, momentum=MOMENTUM_, loss_scale=LOSS_SCALE_)
gradients_of = ms.value_and_grad(lambda ids, y: loss_fn(net(ids), y), None, optimizer.parameters)
BODY_
rows = net.table(Tensor(np.arange(50, dtype=np.int32))).asnumpy().tobytes()
weights = b"".join(layer.weight.asnumpy().tobytes() for layer in (net.hidden, net.out))
print("bits", hashlib.sha256(rows + weights).hexdigest())
print("sum", sum(np.abs(np.frombuffer(each, np.float32)).sum() for each in (rows, weights)))
"""
TABLE, LAYER = "table.embedding_table", "hidden"


def script(body, marked, momentum=0.0, loss_scale=1.0):
    told = {"MARKED": marked, "MOMENTUM": momentum, "LOSS_SCALE": loss_scale, "BODY": body}
    text = SCRIPT
    for name, value in told.items():
        text = text.replace(f"{name}_", str(value))
    return text


def in_job(text):
    """Of one worker with a server: its exit code and what it printed."""
    with Job(text, 1, MS_SERVER_NUM="1") as job:
        server = job.start("server 0", MS_ROLE="MS_PSERVER")
        try:
            return job.workers[0].wait(), job.workers[0].output()
        finally:
            server.end()


def bits(text):
    return re.search(r"bits (\w+)", text)[1]


def total(text):
    return float(re.search(r"sum (\S+)", text)[1])


def told_by_both(body, marked, equal=lambda served, alone: bits(served) == bits(alone), **options):
    """What a worker printed, which ended with the bits of a process alone."""
    text = script(body, marked, **options)
    code, alone, _ = run_alone(text)
    assert code == 0, alone
    code, served = in_job(text)
    assert code == 0, served
    assert equal(served, alone), f"{served}\n{alone}"
    return served


# The third and the fifth batch have an infinite loss.
SCALED = """
scale = nn.DynamicLossScaleUpdateCell(loss_scale_value=2**12, scale_factor=2, scale_window=3)
step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, loss_fn), optimizer, scale)
step.set_train()
for number, (ids, y) in enumerate(data.create_tuple_iterator()):
    loss, overflow, scale = step(ids, y * float("inf") if number in (2, 4) else y)
    print("overflow", bool(overflow), float(scale))
"""


def test_a_step_that_overflows_leaves_marked_parameters_as_they_are():
    served = told_by_both(SCALED, LAYER, momentum=0.9)
    overflows = [match == "True" for match in re.findall(r"overflow (\w+)", served)]
    assert overflows == [False, False, True, False, True, False]


ACCUMULATED = """
accumulate = boost.GradientAccumulation(2, optimizer)
for ids, y in data.create_tuple_iterator():
    loss, gradients = gradients_of(ids, y)
    accumulate(loss, gradients)
"""


def test_gradients_of_marked_parameters_may_be_accumulated():
    told_by_both(ACCUMULATED, LAYER, momentum=0.9)


ADDED_UP = """
totals = ms.ParameterTuple(net.trainable_params()).clone(prefix="total", init="zeros")
for number, (ids, y) in enumerate(data.create_tuple_iterator()):
    loss, gradients = gradients_of(ids, y)
    for total, gradient in zip(totals, gradients):
        ops.assign_add(total, gradient)
    if number % 2 == 1:
        optimizer(totals)
        for total in totals:
            ops.assign(total, ops.zeros_like(total))
"""


def test_gradients_may_be_added_up_in_clones_of_their_parameters():
    told_by_both(ADDED_UP, LAYER, loss_scale=2.0)


def test_so_may_those_of_a_table_whose_rows_are_added_up_in_another_order():
    def are_near(served, alone):
        return total(served) == pytest.approx(total(alone), rel=1e-6)

    told_by_both(ADDED_UP, TABLE, are_near, loss_scale=2.0)


MODEL = "ms.Model(net, loss_fn, optimizer, loss_scale_manager={}).train(1, data, dataset_sink_mode=False)"


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (SCALED, ["TrainOneStepWithLossScaleCell", "loss_scale=sens"]),
        (MODEL.format("ms.DynamicLossScaleManager()"), ["loss scale manager", "FixedLossScaleManager"]),
        (ACCUMULATED, ["GradientAccumulation", "loss_scale"]),
        ("net.table.embedding_table.clone()", ["clone()", "save_checkpoint"]),
        ("print(net.table.embedding_table.asnumpy())", ["on parameter servers", "save_checkpoint"]),
        ("ms.ParameterTuple(net.trainable_params()).clone('ema')", ["clone()", "save_checkpoint"]),
        (
            "ms.export(net, Tensor(ids), file_name='net', file_format='MINDIR')",
            ["parameter servers", "save_checkpoint"],
        ),
    ],
    ids=["loss_scale", "manager", "accumulation", "clone", "elements", "clones", "export"],
)
def test_what_the_rows_of_a_table_cannot_do_is_named_with_a_way_out(body, names):
    code, told = in_job(script(body, TABLE))
    assert code != 0
    error = next(line for line in told.splitlines() if line.startswith("NotImplementedError: "))
    assert all(name in error for name in ["table", *names]), error


def test_a_fixed_loss_scale_is_the_way_out_for_a_table():
    told_by_both(MODEL.format("ms.FixedLossScaleManager(64.0, False)"), TABLE, loss_scale=64.0)


def test_summaries_have_no_histogram_of_a_table(tmp_path):
    """It was one of the row of zeros that stands in its place."""
    summaries = f"callbacks=[ms.SummaryCollector({str(tmp_path)!r}, collect_freq=1)]"
    body = f"ms.Model(net, loss_fn, optimizer).train(1, data, {summaries}, dataset_sink_mode=False)"
    code, told = in_job(script(body, TABLE))
    assert code == 0, told
    assert "of table" not in told
    assert any(b"hidden.weight/auto" in file.read_bytes() for file in tmp_path.glob("*"))


def test_a_network_with_a_table_is_compiled_and_trains_with_the_bits_of_one_that_is_not():
    train = "ms.Model(net, loss_fn, optimizer).train(1, data, dataset_sink_mode=False)"
    told_by_both(f"net.compile(Tensor(ids[:8]))\n{train}", TABLE)


SAVED = """
model = ms.Model(net, loss_fn, optimizer)
model.train(1, data, dataset_sink_mode=False)
ms.save_checkpoint([*net.get_parameters(), *optimizer.get_parameters()], FILE, integrated_save=TOGETHER)
"""
LOADED = """
values = ms.load_checkpoint(FILE)
assert ms.load_param_into_net(net, values)[0] == ms.load_param_into_net(optimizer, values)[0] == []
"""


@pytest.mark.parametrize("together", [True, False])
def test_what_an_optimizer_keeps_on_servers_is_loaded(tmp_path, together):
    def body(text):
        return text.replace("FILE", repr(str(tmp_path / "net.ckpt"))).replace("TOGETHER", str(together))

    again = "ms.Model(net, loss_fn, optimizer).train(1, data, dataset_sink_mode=False)"
    code, whole = in_job(script(SAVED.partition("ms.save")[0] + again, TABLE, momentum=0.9))
    assert code == 0, whole
    code, told = in_job(script(body(SAVED), TABLE, momentum=0.9))
    assert code == 0, told
    code, resumed = in_job(script(body(LOADED) + again, TABLE, momentum=0.9))
    assert code == 0, resumed
    assert bits(resumed) == bits(whole)


def test_rows_that_no_step_has_updated_are_saved_with_what_an_optimizer_begins_with(tmp_path):
    """They had zeros, with which a training that goes on makes other steps."""
    body = SAVED.replace("FILE", repr(str(tmp_path / "net.ckpt"))).replace("TOGETHER", "True")
    body = (
        body.replace("1, data", "1, data.take(1)")
        + """
squares = next(v for k, v in ms.load_checkpoint(FILE).items() if k == "accum.table.embedding_table")
print("least", float(squares.asnumpy().min()))
""".replace("FILE", repr(str(tmp_path / "net.ckpt")))
    )
    sgd = "nn.SGD(net.trainable_params(), 0.05, momentum=0.0, loss_scale=1.0)"
    text = script(body, TABLE).replace(sgd, "nn.Adagrad(net.trainable_params(), learning_rate=0.1)")
    code, told = in_job(text)
    assert code == 0, told
    assert float(re.search(r"least (\S+)", told)[1]) == pytest.approx(0.1)


def test_rows_of_another_table_are_not_loaded(tmp_path):
    file = repr(str(tmp_path / "net.ckpt"))
    code, told = in_job(script(SAVED.replace("FILE", file).replace("TOGETHER", "True"), TABLE))
    assert code == 0, told
    text = script(LOADED.replace("FILE", file), TABLE).replace("Lookup(50, 4)", "Lookup(60, 4)")
    code, told = in_job(text)
    assert code != 0
    assert "RuntimeError: mindspore.load_param_into_net: table.embedding_table is" in told


ASKED_TO_END = """
from mindspore import train

class Told(train.Callback):
    def on_train_step_end(self, run_context):
        print("step", run_context.original_args().cur_step_num, flush=True)

exits = train.OnRequestExit(save_mindir=False, directory=FOLDER, config_file=FOLDER + "/exit.json")
train.Model(net, loss_fn, optimizer).train(100000, data, [Told(), exits], dataset_sink_mode=False)
print("ended in order")
"""


@pytest.mark.parametrize("enabled", [True, False])
def test_servers_that_are_told_to_end_with_everybody_serve_until_the_workers_have_saved(tmp_path, enabled):
    (tmp_path / "exit.json").write_text('{"GracefulExit": 0}')
    text = script(ASKED_TO_END.replace("FOLDER", repr(str(tmp_path))), LAYER)
    if not enabled:
        text = text.replace("enable_ps=True", "enable_ps=False").replace(f"net.{LAYER}.set_param_ps()", "")
    with Job(text, 1, MS_SERVER_NUM="1") as job:
        server = job.start("server 0", MS_ROLE="MS_PSERVER")
        try:
            worker = job.workers[0]
            worker.wait_for_line("step 3$")
            server.signal(signal.SIGTERM)
            server.wait_for_line("it ends when the last worker has left")
            for process in [job.scheduler, worker]:
                process.signal(signal.SIGTERM)
            assert [process.wait() for process in [worker, job.scheduler, server]] == [0, 0, 0]
            assert "ended in order" in worker.output()
        finally:
            server.end()
    assert list(tmp_path.glob("rank_0/*.ckpt"))
