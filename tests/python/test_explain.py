"""`muster explain` and Model.explain: the plan of a step, and the traces of a script."""

import re
import subprocess

import numpy
import pytest
from digits import write_digits
from job import Job, clean_environment, run_alone
from places import BUILD, SEARCH_PATH

import muster
from muster import dataset as ds
from muster import nn

HEAD = """
import sys
import numpy
import muster
from muster import dataset, nn, train

muster.init()
net = nn.SequentialCell(nn.Flatten(), nn.Dense(784, 10))
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
print("worker", muster.get_rank(), "of", muster.get_group_size(), *sys.argv[1:])
"""
MODEL = """
data = dataset.MnistDataset("digits").map(dataset.vision.Rescale(1 / 255.0, 0), "image")
data = data.map(dataset.transforms.TypeCast(muster.int32), "label").batch(20)
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
saver = train.ModelCheckpoint("net", "checkpoints")
"""
LOOP = """
grad_fn = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
reducer = nn.DistributedGradReducer(optimizer.parameters)
for step in range(1000):
    size = SIZE
    x = muster.Tensor(numpy.ones((size, 784), numpy.float32))
    loss, gradients = grad_fn(x, muster.Tensor(numpy.zeros(size, numpy.int32)))
    optimizer(reducer(gradients))
    print("step", step)
"""


def explain(folder, script, *flags):
    (folder / "script.py").write_text(script)
    environment = clean_environment()
    environment["PATH"] = SEARCH_PATH
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    command = [BUILD / "apps/muster/muster", "explain", *flags, "script.py", "--own", "3"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_step_of_a_model_is_shown_and_not_taken(tmp_path):
    write_digits(tmp_path / "digits", rows=40)
    text = explain(
        tmp_path,
        HEAD
        + MODEL
        + "train.Model(net, loss_fn, optimizer).train(3, data, [saver, train.LossMonitor()])\n"
        + "print('behind')",
    )
    assert text.startswith("worker 0 of 1 --own 3\n")
    assert "TrainOneStepCell(float32 (20, 28, 28, 1), int32 (20,))" in text and "plan" in text
    assert re.search(r"^ +\d+  momentum ", text, re.MULTILINE)
    assert re.search(r"^  moments.1.weight +float32 \(10, 784\)$", text, re.MULTILINE)
    assert re.search(r"^memory: .* at the peak: arena ", text, re.MULTILINE)
    assert "loss is" not in text and "behind" not in text
    assert not (tmp_path / "checkpoints").exists()


def test_the_step_of_an_evaluation_is_shown(tmp_path):
    write_digits(tmp_path / "digits", rows=40)
    text = explain(tmp_path, HEAD + MODEL + "train.Model(net, loss_fn, metrics={'accuracy'}).eval(data)")
    assert "WithEvalCell(" in text and "momentum" not in text


def test_a_loop_written_by_hand_runs_once_and_its_plans_are_shown(tmp_path):
    text = explain(tmp_path, HEAD + LOOP.replace("SIZE", "8"))
    assert [line for line in text.splitlines() if line.startswith("step")] == ["step 0"]
    names = re.findall(r"^(\S+)\(.*\): a plan of ", text, re.MULTILINE)
    assert names == ["<lambda>", "Momentum"]


def test_a_script_that_ends_early_shows_what_it_has(tmp_path):
    text = explain(tmp_path, HEAD + "net(muster.Tensor(numpy.ones((2, 784), numpy.float32)))\nprint('last')")
    assert text.index("last") < text.index("SequentialCell(float32 (2, 784)): a plan of ")
    text = explain(tmp_path, HEAD + "muster.set_context(mode='eager')")
    assert text.endswith("called no cell and no traced function, or it runs in eager mode.\n")


def test_traces_are_shown_with_their_reasons_while_the_script_runs(tmp_path):
    loop = LOOP.replace("1000", "4").replace("SIZE", "8 if step < 2 else 9")
    lines = explain(tmp_path, HEAD + loop, "--trace").splitlines()
    was = "input 0 is float32 (9, 784), was float32 (8, 784)"
    assert [line.split(";")[0] for line in lines if not line.startswith("worker")] == [
        "trace 1 of <lambda>: float32 (8, 784), int32 (8,): first call",
        "trace 1 of Momentum: float32 (10, 784), float32 (10,): first call",
        "step 0",
        "step 1",
        f"trace 2 of <lambda>: float32 (9, 784), int32 (9,): {was}",
        "step 2",
        "step 3",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a script: muster explain train.py"),
        (["missing.py"], "there is no script 'missing.py'"),
        (["--traces", "x.py"], "there is no option '--traces'"),
        (["./no_such_program"], "there is no program './no_such_program'"),
    ],
)
def test_what_cannot_be_explained_is_said(tmp_path, arguments, message):
    command = [BUILD / "apps/muster/muster", "explain", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"muster explain: {message}")


def test_a_model_explains_itself():
    net = nn.Dense(4, 2)
    model = muster.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    rows = numpy.ones((6, 4), numpy.float32), numpy.ones((6, 2), numpy.float32)
    data = ds.NumpySlicesDataset(rows, ["x", "y"]).batch(3)
    before = net.weight.asnumpy().copy()
    explanation = model.explain(data)
    assert explanation.name == "TrainOneStepCell"
    assert [step["op"] for step in explanation.steps if step["flops"]] == ["dense", "matmul"]
    assert explanation.parameters["weight"] == "float32 (2, 4)"
    assert explanation.flops == 2 * 2 * 3 * 4 * 2
    assert explanation.peak_bytes > explanation.arena_bytes + explanation.parameters_bytes
    assert str(explanation).startswith("TrainOneStepCell(float32 (3, 4), float32 (3, 2)): a plan of ")
    numpy.testing.assert_array_equal(net.weight.asnumpy(), before)
    assert model.explain(data, train=False).name == "WithEvalCell"


MESH = """
muster.set_seed(1)
muster.parallel.mesh(data=2, model=2)
layout = [muster.parallel.shard(net[1].weight, (None, "model"))]
rows = [(numpy.ones((28, 28), numpy.float32), numpy.int32(0)) for _ in range(8)]
data = dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(8)
train.Model(net, loss_fn, nn.Adam(net.trainable_params(), 0.1)).train(1, data)
"""


def test_the_first_of_several_workers_is_shown_without_the_others(tmp_path):
    text = explain(tmp_path, HEAD + MESH, "--parallel", "4")
    assert "worker 0 of 4 --own 3" in text
    assert re.search(r"mesh: data=2, model=2", text)
    assert re.search(r"matmul: \(-, model\) \(-, model\) to \(-, -\)", text)
    assert re.search(r"all_reduce of 2 workers with 320 B, each sends 320 B", text)
    weight, others = 784 * 10 * 4, 10 * 4
    assert f"training: updates {(weight / 2 + others) / 1024:.1f} KiB of parameters" in text
    alone = explain(tmp_path, HEAD + MESH)
    assert "mesh" not in alone
    assert f"training: updates {(weight + others) / 1024:.1f} KiB of parameters" in alone


TIME = r"[\d.]+ (?:us|ms|s)"


def in_ms(text):
    number, unit = text.split()
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def predicted(text):
    """The sum, and (time, bytes or '', steps) by the name of a group, of the first prediction."""
    head = re.search(
        rf"predicted step of each of (\d+) workers?: ({TIME}) \(computing {TIME}, calls {TIME}", text
    )
    assert head, text
    rows = re.findall(
        rf"^ +({TIME}|not timed) +(?:([\d.]+) %)? +((?:[\d.]+ [KMG]?i?B)?) +(\d+)  (\S.*)$",
        text[head.start() :],
        re.MULTILINE,
    )
    return in_ms(head[2]), {
        name: (time, share, sends, int(steps)) for time, share, sends, steps, name in rows
    }


def test_the_time_of_the_step_is_predicted_by_group_of_ops(tmp_path):
    text = explain(tmp_path, HEAD + MESH, "--parallel", "4")
    total, groups = predicted(text)
    plan = re.findall(r"^ +\d+  (\w+) ", text[: text.index("parameters:")], re.MULTILINE)
    names = {name.split(" of ")[0] for name in groups}
    assert names == {*plan, "(from step to step)"}
    assert sum(steps for *_, steps in groups.values()) == len(plan)
    assert all(time != "not timed" for time, *_ in groups.values()), groups
    assert sum(in_ms(time) for time, *_ in groups.values()) == pytest.approx(total, rel=0.05, abs=0.01)
    assert sum(float(share) for _, share, *_ in groups.values()) == pytest.approx(100, abs=2)
    sends = {name: sent for name, (_, _, sent, _) in groups.items() if sent}
    assert "all_reduce of 2 workers" in sends and all(" of " in name for name in sends)
    assert "calls: measured between 4 workers of this machine just now" in text


def test_calls_are_measured_once_and_anew_where_that_is_asked_for(tmp_path):
    explain(tmp_path, HEAD + MESH, "--parallel", "4")
    (table,) = (tmp_path / "cache/muster").iterdir()
    first = table.read_text()
    old = re.sub(r"^workers 4 \d+$", "workers 4 1000", first, flags=re.MULTILINE)
    table.write_text(old)
    text = explain(tmp_path, HEAD + MESH, "--parallel", "4")
    assert re.search(r"calls: measured between 4 workers of this machine \d+ days ago", text)
    assert table.read_text() == old
    explain(tmp_path, HEAD + MESH, "--parallel", "4", "--measure")
    assert table.read_text() != old


def test_one_worker_is_predicted_without_calls(tmp_path):
    text = explain(tmp_path, HEAD + MESH, "--parallel", "1")
    _, groups = predicted(text)
    assert "matmul" in " ".join(groups) or "dense" in groups
    assert "calls: measured" not in text
    assert "predicted" not in explain(tmp_path, HEAD + MESH)


def test_a_network_with_convolutions_over_three_workers_is_predicted(tmp_path):
    script = """
muster.parallel.mesh(data=3)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.pool, self.flatten = nn.Conv2d(1, 4, 3), nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc = nn.Dense(4 * 14 * 14, 10)
    def construct(self, x):
        x = muster.parallel.shard(x, ("data", None, None, None))
        return self.fc(self.flatten(self.pool(self.conv(x))))
net = Net()
rows = [(numpy.ones((1, 28, 28), numpy.float32), numpy.int32(0)) for _ in range(6)]
data = dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(6)
train.Model(net, loss_fn, nn.Momentum(net.trainable_params(), 0.1, 0.9)).train(1, data)
"""
    _, groups = predicted(explain(tmp_path, HEAD + script, "--parallel", "3"))
    assert any(name.startswith("conv2d") for name in groups), groups
    assert "all_reduce of 3 workers" in groups


WATCHED = """
muster.set_seed(1)
if muster.get_group_size() > 1:
    muster.parallel.mesh(data=1, model=2)
    muster.parallel.shard(net[1].weight, (None, "model"))
rows = [(numpy.full((28, 28), at % 7, numpy.float32), numpy.int32(at % 10)) for at in range(8 * 14)]
data = dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(8)
train.Model(net, loss_fn, nn.Adam(net.trainable_params(), 0.1)).train(1, data, train.LossMonitor())
"""


def watched(text):
    """(predicted, measured) by op of the table of MUSTER_EXPLAIN_COSTS, and behind which step it came."""
    before, table = text.split("predicted beside measured: a step of rank 0 of ")
    rows = re.findall(rf"^ +({TIME}|-) +({TIME}|-) +(?:[\d.]+)? +(\S.*)$", table, re.MULTILINE)
    return {what: (first, second) for first, second, what in rows}, before.count("loss is")


def test_predicted_and_measured_stand_side_by_side_behind_ten_steps(tmp_path):
    environment = {"MUSTER_EXPLAIN_COSTS": "1", "XDG_CACHE_HOME": str(tmp_path)}
    with Job(HEAD + WATCHED, 2, **environment) as job:
        assert [worker.wait() for worker in job.workers] == [0, 0]
        texts = [worker.output() for worker in job.workers]
    rows, losses = watched(texts[0])
    assert losses == 11  # two steps are not counted, then ten; the callback of the last comes later
    assert all("-" not in rows[what] for what in ("adam", "the whole step")), rows
    assert rows["all_reduce"][0] == "-" and rows["all_reduce"][1] != "-"
    assert "calls: not timed: muster explain --parallel 2 SCRIPT measures them" in texts[0]
    assert rows["between the ops: data, Python, callbacks"][0] != "-"
    whole, ops = in_ms(rows["the whole step"][1]), rows.keys() - {"the whole step"}
    assert sum(in_ms(rows[op][1]) for op in ops if rows[op][1] != "-") == pytest.approx(whole, rel=0.02)
    assert "predicted beside" not in texts[1]


def test_numbers_are_the_same_where_costs_are_watched(tmp_path):
    losses = []
    for costs in ("0", "1"):
        code, text, _ = run_alone(HEAD + WATCHED, MUSTER_EXPLAIN_COSTS=costs, XDG_CACHE_HOME=str(tmp_path))
        assert code == 0, text
        assert ("predicted beside" in text) == (costs == "1")
        losses.append(re.findall(r"loss is (\S+)", text))
    assert losses[0] == losses[1] and len(losses[0]) == 14


def test_a_prediction_of_stages_says_that_it_is_of_the_busiest(tmp_path):
    stages = 'muster.parallel.mesh(model=2, stages=2)\nnet[1].place("MS_WORKER", 1)'
    script = HEAD + MESH.replace("muster.parallel.mesh(data=2, model=2)", stages)
    text = explain(tmp_path, script, "--parallel", "4")
    assert "stages: 2, each timed by itself, that then run beside each other" in text
    assert "(waiting for other stages)" in text
    assert "stages: " not in explain(tmp_path, HEAD + MESH, "--parallel", "4")


def test_a_planned_step_is_explained_without_the_other_workers(tmp_path):
    for line, mesh in (("plan(2, 2, 1)", "data=2, model=2"), ("plan()", r"data=\d, model=\d")):
        script = HEAD.replace("net =", f"muster.parallel.{line}\nnet =", 1)
        script = script.replace("nn.Dense(784, 10)", "nn.Dense(784, 64)")  # large enough for Zero
        script += MESH[MESH.index("rows") :]
        text = explain(tmp_path, script, "--parallel", "4")
        assert re.search(rf"^mesh: {mesh};", text, re.MULTILINE)
        predicted(text)
