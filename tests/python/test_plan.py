"""`muster plan`, parallel.plan() and MindSpore's recursive_programming: steps that are divided without a
layout in the script."""

import json
import re
import subprocess

import pytest
from job import Job, clean_environment, run_alone
from places import BUILD, SEARCH_PATH

SETUP = """
import sys
import numpy
import muster
from muster import dataset, nn, ops, parallel, train

muster.init()
muster.set_seed(7)
PLAN

def rows(shape=(12,), batch=8):
    numbers = numpy.random.RandomState(0)
    data = [(numbers.randn(*shape).astype(numpy.float32), numpy.int32(numbers.randint(4))) for _ in range(24)]
    return dataset.GeneratorDataset(data, ["x", "y"], shuffle=False).batch(batch)

class Losses(train.Callback):
    def on_train_step_end(self, run):
        print("loss", repr(float(run.net_outputs.asnumpy())))
"""
DENSE = """
net = nn.SequentialCell(nn.Dense(12, 32), nn.ReLU(), nn.Dense(32, 16), nn.Tanh(), nn.Dense(16, 4))
optimizer = nn.Adam(net.trainable_params(), 0.01)
train.Model(net, nn.CrossEntropyLoss(), optimizer).train(2, rows(batch=BATCH), Losses())
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
"""
LAID_OUT = 'parallel.shard(net[0].weight, ("rows", None))\n'
CONVOLUTION = """
net = nn.SequentialCell(
    nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(36, 4)
)
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
train.Model(net, nn.CrossEntropyLoss(), optimizer).train(1, rows((1, 6, 6)), Losses())
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
"""
LOOP = """
net = nn.SequentialCell(nn.Dense(12, 32), nn.GELU(), nn.Dropout(p=0.2), nn.Dense(32, 4))
optimizer = nn.Adam(net.trainable_params(), 0.01)
loss_fn = nn.CrossEntropyLoss()
net.set_train()
grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
for x, y in rows():
    loss, gradients = grad_fn(x, y)
    optimizer(gradients)
    print("loss", repr(float(loss.asnumpy())))
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
"""
NETS = {"dense": DENSE, "convolution": CONVOLUTION, "loop": LOOP}


def code(net, plan="", batch=8):
    return (SETUP + NETS[net]).replace("PLAN", plan).replace("BATCH", str(batch))


def plan(folder, script, *flags, code=0):
    (folder / "script.py").write_text(script)
    environment = {**clean_environment(), "PATH": SEARCH_PATH, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        [BUILD / "apps/muster/muster", "plan", *flags, "script.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def found(folder, script, *flags):
    return json.loads(plan(folder, script, "--json", *flags).splitlines()[-1])


def key(plan):
    return plan["data"], plan["model"], plan["zero"]


@pytest.mark.parametrize("net", NETS)
def test_every_mesh_is_in_the_table_and_the_fastest_comes_first(tmp_path, net):
    made = found(tmp_path, code(net), "-n", "4")
    every = {(4, 1, 0), (4, 1, 1), (4, 1, 3), (2, 2, 0), (2, 2, 1), (2, 2, 3), (1, 4, 0)}
    assert {key(each) for each in made["plans"] + made["dropped"]} == every
    assert made["dropped"] == []
    times = [each["step_s"] for each in made["plans"]]
    assert times == sorted(times)
    for each in made["plans"]:
        assert each["step_s"] == pytest.approx(each["computing_s"] + each["calls_s"] + each["reading_s"])
        assert each["sent_bytes"] > 0 and each["peak_bytes"] > 0
    if net == "dense":
        by_key = {key(each): each for each in made["plans"]}
        assert by_key[1, 4, 0]["peak_bytes"] < by_key[4, 1, 0]["peak_bytes"]


SLOW_ROWS = """
import time

class Slow:
    def __len__(self):
        return 80

    def __getitem__(self, index):
        begin = time.thread_time()
        while time.thread_time() - begin < 1e-3:
            pass
        return numpy.zeros(12, numpy.float32), numpy.int32(index % 4)

def rows(batch=8):
    return dataset.GeneratorDataset(Slow(), ["x", "y"], shuffle=False).batch(batch)
"""


def test_reading_counts_that_takes_longer_than_the_step(tmp_path):
    script = code("dense").replace("\nnet =", SLOW_ROWS + "\nnet =")
    for each in found(tmp_path, script, "-n", "2")["plans"]:
        assert each["reading_s"] + each["computing_s"] > 7e-3  # eight rows of 1 ms of processor time


def test_the_table_ends_with_the_line_for_the_script(tmp_path):
    text = plan(tmp_path, code("dense"), "-n", "2")
    first = re.search(r"^ +1  .*  (data=\d, model=\d(?:, zero=[13])?)$", text, re.MULTILINE)
    assert text.splitlines()[-2].strip() == f"muster.parallel.plan({first[1]})"
    assert "loss" not in text
    assert "calls: measured between 2 workers of this machine just now" in text


def test_a_layout_of_the_script_is_not_among_the_plans_and_that_is_said(tmp_path):
    script = code("dense", "parallel.mesh(rows=2)").replace("optimizer =", LAID_OUT + "optimizer =")
    text = plan(tmp_path, script, "-n", "2")
    assert "own layout over rows=2 is not among them: muster explain --parallel 2 SCRIPT" in text
    assert "own layout" not in plan(tmp_path, code("dense"), "-n", "2")


def test_plans_that_need_more_memory_are_dropped(tmp_path):
    script = code("dense")
    peaks = sorted(each["peak_bytes"] for each in found(tmp_path, script, "-n", "2")["plans"])
    made = found(tmp_path, script, "-n", "2", "--memory", str(peaks[-1] - 1))
    assert all(each["peak_bytes"] < peaks[-1] for each in made["plans"]) and made["plans"]
    assert all("it needs" in each["dropped"] for each in made["dropped"]) and made["dropped"]
    error = plan(tmp_path, script, "-n", "2", "--memory", "1KiB", code=1)
    assert re.search(
        r"no plan fits: of the smallest, data=\d, model=\d.*, it needs [\d.]+ KiB, and 1.0 KiB", error
    )


def test_what_cannot_be_cut_says_so(tmp_path):
    made = found(tmp_path, code("dense", batch=6), "-n", "4")
    reasons = {key(each): each["dropped"] for each in made["dropped"]}
    assert reasons[4, 1, 0] == "a batch of 6 samples cannot be cut into 4 equal parts"
    assert "no plan is possible" in plan(tmp_path, code("dense"), "-n", "5", code=1)
    alone = found(tmp_path, code("dense"), "-n", "1")
    assert [key(each) for each in alone["plans"]] == [(1, 1, 0)] and alone["plans"][0]["calls_s"] == 0


@pytest.mark.parametrize(
    "script",
    [
        "import muster",
        "import muster\nraise RuntimeError('early')",
        "import muster\nmuster.init()\nmuster.nn.Dense(2, 2)(muster.ops.ones((2, 2)))",
    ],
)
def test_a_script_without_a_step_is_an_error(tmp_path, script):
    error = plan(tmp_path, script, "-n", "2", code=1)
    assert "before its first step that trains" in error
    assert ("early" in error) == ("early" in script)


def test_a_script_in_eager_mode_is_told_to_use_graph_mode(tmp_path):
    eager = code("loop", 'muster.set_context(mode="eager")')
    assert "use graph mode" in plan(tmp_path, eager, "-n", "2", code=1)


def results(text):
    numbers = [float(loss) for loss in re.findall(r"loss (\S+)", text)]
    return numbers, tuple(map(int, re.search(r"held (\d+) (\d+)", text).groups()))


def run(script, workers):
    with Job(script, workers) as job:
        codes = [process.wait(60) for process in job.everybody()]
        texts = [worker.output() for worker in job.workers]
        assert codes == [0] * (workers + 1), texts
    return [results(text) for text in texts]


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("layout", [(2, 1, 0), (2, 1, 1), (1, 2, 0), (2, 2, 1), (None,)])
def test_a_planned_step_has_the_numbers_of_one_process(net, layout):
    data, *others = layout
    line = "parallel.plan()" if data is None else f"parallel.plan({data}, {others[0]}, {others[1]})"
    status, text, _ = run_alone(code(net, line))
    assert status == 0, text
    losses, held = results(text)
    of_ranks = run(code(net, line), 2 if data is None else data * others[0])
    for of_rank, held_there in of_ranks:
        assert of_rank == pytest.approx(losses, rel=2e-6)
        assert held_there == of_ranks[0][1]  # all have the same plan
    if data is not None:
        assert (held_there[0] < held[0]) == (others[0] > 1)


WIDE = """
net = nn.SequentialCell(nn.Dense(12, 8192), nn.ReLU(), nn.Dense(8192, 16), nn.Tanh(), nn.Dense(16, 4))
optimizer = nn.Adam(net.trainable_params(), 0.001)
model = train.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"loss"})
model.train(2, rows(), Losses())
print("loss", float(model.eval(rows())["loss"]))
print("loss", float(numpy.abs(model.gather_parameters()["0.weight"].asnumpy()).sum()))
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
"""


@pytest.mark.parametrize(("data", "model"), [(2, 1), (2, 2), (4, 1)])
def test_level_3_shares_the_parameters_with_the_numbers_of_one_process(data, model):
    script = (SETUP + WIDE).replace("PLAN", "parallel.plan(DATA, MODEL, 3)")
    script = script.replace("DATA", str(data)).replace("MODEL", str(model))
    status, text, _ = run_alone(script)
    assert status == 0, text
    losses, held = results(text)
    for of_rank, held_there in run(script, data * model):
        assert of_rank == pytest.approx(losses, rel=1e-5)
        assert held_there[0] < 1.2 * held[0] / data / model
        assert held_there[1] < 1.2 * held[1] / data / model


def test_level_3_needs_less_memory_by_prediction_and_sends_no_less(tmp_path):
    made = found(tmp_path, (SETUP + WIDE).replace("PLAN", ""), "-n", "4")
    by_key = {key(each): each for each in made["plans"]}
    assert by_key[4, 1, 3]["peak_bytes"] < by_key[4, 1, 1]["peak_bytes"] < by_key[4, 1, 0]["peak_bytes"]
    assert by_key[4, 1, 3]["sent_bytes"] >= by_key[4, 1, 1]["sent_bytes"]


def test_a_plan_that_does_not_fit_is_an_error_at_its_line_or_before_the_first_step():
    for line, message in [
        ("parallel.plan(data=3)", "data=3,model=1 has 3 workers, this job has 2"),
        ("parallel.plan(data=2, zero=2)", "zero is 2"),
        ("parallel.plan(data=2.0)", "data is a whole number"),
        ("muster.set_context(mode='eager'); parallel.plan()", "choose graph mode"),
        ("parallel.plan(data=2)", "a batch of 5 samples cannot be cut into 2 equal parts"),
        ("parallel.plan(memory='1KiB')", "needs 1.0 KiB or less at its peak: that which needs least, data="),
        ("parallel.plan(memory='2 apples')", "memory is a number of bytes"),
        ("parallel.plan(data=2, memory='2GiB')", "leave one away"),
    ]:
        with Job(code("dense", line, batch=5), 2) as job:
            assert all(worker.wait(60) != 0 for worker in job.workers)
            assert message in job.workers[0].output()


ENDS = """
net = nn.SequentialCell(nn.Dense(12, 32), nn.ReLU(), nn.Dense(32, 4))
optimizer = nn.Adam(net.trainable_params(), 0.01)
model = train.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.train(2, rows(batch=10), Losses())
print("accuracy", model.eval(rows(batch=7)))
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
"""


def test_the_last_batch_of_an_epoch_and_evaluations_may_have_any_size():
    of_one, of_two = (SETUP + ENDS).replace("PLAN", ""), (SETUP + ENDS).replace("PLAN", "parallel.plan(2)")
    # 23 rows: 10, 10 and 3; and 7, 7, 7 and 2
    of_two = of_two.replace("range(24)", "range(23)")
    of_one = of_one.replace("range(24)", "range(23)")
    status, text, _ = run_alone(of_one)
    assert status == 0, text
    with Job(of_two, 2) as job:
        assert [process.wait(60) for process in job.everybody()] == [0, 0, 0], job.workers[0].output()
        texts = [worker.output() for worker in job.workers]
    for each in texts:
        assert results(each)[0] == pytest.approx(results(text)[0], rel=2e-6)
        assert re.search(r"accuracy .*", each)[0] == re.search(r"accuracy .*", text)[0]
        assert "a batch of 3 samples is computed whole by each worker" in each


def test_a_mesh_or_other_settings_end_the_plan():
    for line in ("parallel.mesh()", "muster.reset_auto_parallel_context()"):
        script = code("dense", f"parallel.plan(data=1, model=2); {line}")
        for _, held in run(script, 2):
            assert held == results(run_alone(script)[1])[1]  # nothing is divided


MINDSPORE = """
import numpy as np
import mindspore as ms
import muster
from mindspore import dataset, nn
from mindspore.communication import init
from mindspore.parallel.auto_parallel import AutoParallel

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(3)
BEFORE
net = nn.SequentialCell(nn.Dense(8, 32), nn.ReLU(), nn.Dense(32, 4))
wrapped = WRAPPED
numbers = np.random.RandomState(0)
data = [(numbers.randn(8).astype(np.float32), np.int32(numbers.randint(4))) for _ in range(32)]
data = dataset.GeneratorDataset(data, ["x", "y"], shuffle=False).batch(8)

class Losses(ms.Callback):
    def on_train_step_end(self, run_context):
        print("loss", float(run_context.original_args().net_outputs.asnumpy()))

optimizer = nn.Adam(net.trainable_params(), 0.05)
ms.Model(wrapped, nn.CrossEntropyLoss(), optimizer).train(2, data, Losses(), dataset_sink_mode=False)
context = muster._core._context()
print("mode", ms.get_auto_parallel_context("parallel_mode"), context["parallel_mode"])
print("held", muster.parallel.held_bytes(net), muster.parallel.held_bytes(optimizer))
"""
OLD = 'ms.set_auto_parallel_context(parallel_mode="auto_parallel", full_batch=True, search_mode="{}")'
NEW = 'AutoParallel(net, parallel_mode="recursive_programming")\nwrapped.dataset_strategy("full_batch")'


@pytest.mark.parametrize("before, wrapped", [("", NEW), (OLD.format("recursive_programming"), "net")])
def test_recursive_programming_takes_a_plan_that_all_workers_share(before, wrapped):
    script = MINDSPORE.replace("BEFORE", before).replace("WRAPPED", wrapped)
    status, text, _ = run_alone(MINDSPORE.replace("BEFORE", "").replace("WRAPPED", "net"))
    assert status == 0, text
    losses, held = results(text)
    with Job(script, 2) as job:
        assert [process.wait(60) for process in job.everybody()] == [0, 0, 0], job.workers[0].output()
        texts = [worker.output() for worker in job.workers]
    for text in texts:
        assert results(text)[0] == pytest.approx(losses, rel=2e-6)
        assert results(text)[1] == results(texts[0])[1]
        assert "mode auto_parallel stand_alone" in text  # no worker for itself
    assert len(losses) == 8 and results(texts[0])[1] <= held


def test_in_eager_mode_recursive_programming_shares_the_batch_as_before():
    script = MINDSPORE.replace("BEFORE", "ms.set_context(mode=ms.PYNATIVE_MODE)").replace("WRAPPED", NEW)
    with Job(script, 2) as job:
        assert [process.wait(60) for process in job.everybody()] == [0, 0, 0], job.workers[0].output()
        assert "mode auto_parallel data_parallel" in job.workers[0].output()


def test_other_searches_share_the_batch_as_before():
    script = MINDSPORE.replace("BEFORE", OLD.format("sharding_propagation")).replace("WRAPPED", "net")
    with Job(script, 2) as job:
        assert [process.wait(60) for process in job.everybody()] == [0, 0, 0], job.workers[0].output()
        assert "mode auto_parallel data_parallel" in job.workers[0].output()
