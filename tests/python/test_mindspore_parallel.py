"""MindSpore's interface to parallel training: one process and several give the same numbers, and what cannot
be is an error at its line."""

import json
import re
import signal

import pytest
from job import Job, output_alone, outputs_of_workers

SETUP = """
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops, train
from mindspore import dataset as ds
from mindspore.communication import get_group_size, get_rank, init
from mindspore.parallel.auto_parallel import AutoParallel
from mindspore.parallel.nn import GradAccumulation, MicroBatchInterleaved, Pipeline, PipelineGradReducer

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(3)

def rows(sharded=True, batch=8):
    numbers = np.random.RandomState(0)
    data = [(numbers.randn(6).astype(np.float32), np.int32(numbers.randint(3))) for _ in range(32)]
    shards = dict(num_shards=get_group_size(), shard_id=get_rank()) if sharded else {}
    dataset = ds.GeneratorDataset(data, ["x", "y"], shuffle=False, **shards)
    return dataset.batch(batch // get_group_size() if sharded else batch)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.relu, self.fc2 = nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3)

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(x)))

def show(network):
    for parameter in network.trainable_params():
        print("sum", parameter.name, repr(float(np.abs(parameter.asnumpy().astype(np.float64)).sum())))
"""


def outputs(code, workers):
    return [output_alone(SETUP + code)] if workers == 1 else outputs_of_workers(SETUP + code, workers)


def sums(text):
    found = {name: float(value) for name, value in re.findall(r"sum (\S+) (\S+)", text)}
    assert found
    return found


REDUCERS = """
from mindspore.communication import create_group
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
rank = get_rank()
pair = [rank % 2, rank % 2 + 2]  # of 0 and 2, or of 1 and 3
create_group(str(pair), pair)
weight = nn.Dense(2, 1).weight
gradient = Tensor(np.full((1, 2), 1.0 + rank, np.float32))
for arguments in [{}, {"degree": 2}, {"degree": 2, "mean": False}, {"group": "mccl_world_group"},
                  {"group": str(pair)}, {"group": str(pair), "degree": 2},
                  {"group": str(pair), "mean": False}]:
    reducer = nn.DistributedGradReducer([weight], fusion_type=2, **arguments)
    given = (gradient,) if arguments else gradient  # one tensor alone gives one
    for reduced in (reducer(given), ms.jit(lambda given: reducer(given))(given)):
        print("reduced", float((reduced[0] if arguments else reduced).asnumpy()[0, 1]))
"""


def test_a_reducer_of_gradients_takes_a_divisor_of_its_own_and_a_group_of_workers():
    """Without a divisor sums are divided by the number of all workers, also those of a group."""
    for rank, text in enumerate(outputs(REDUCERS, 4)):
        pair = 4.0 + 2 * (rank % 2)  # 1 + 3, or 2 + 4
        expected = [2.5, 5.0, 10.0, 2.5, pair / 4, pair / 2, pair]
        found = [float(each) for each in re.findall(r"reduced (\S+)", text)]
        assert found == [each for each in expected for _ in range(2)], text


GROUP_UNDER_ZERO = """
from mindspore.communication import create_group
ms.set_auto_parallel_context(parallel_mode="data_parallel", enable_parallel_optimizer=True)
create_group(str(get_rank() % 2), [get_rank() % 2, get_rank() % 2 + 2])
weight = nn.Dense(2, 1).weight
try:
    nn.DistributedGradReducer([weight], group=str(get_rank() % 2))((Tensor(np.ones((1, 2), np.float32)),))
except NotImplementedError as error:
    print("refused:", error)
"""


def test_gradients_of_a_group_are_refused_where_zero_divides_the_optimizer_over_all():
    for text in outputs(GROUP_UNDER_ZERO, 4):
        assert "Zero divides an optimizer over all workers" in text


def test_what_carries_the_calls_of_all_workers_can_be_asked():
    code = "import mindspore.communication as c\nprint('carried by', c.GlobalComm.BACKEND)"
    assert all("carried by mccl" in text for text in outputs(code, 2))


MODEL = """
net = AutoParallel(Net(), parallel_mode="semi_auto")
net.hsdp(optimizer_level="level1", threshold=0)
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
model.train(2, rows())
show(net)
"""

LOOP = """
net, loss_fn = Net(), nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), 0.05)
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())

@ms.jit
def train_step(x, y):
    loss, gradients = grad_fn(x, y)
    optimizer(gradients)
    return loss

step = AutoParallel(train_step, parallel_mode="semi_auto")
for epoch in range(2):
    for x, y in rows():
        step(x, y)
show(net)
"""

CONTEXT = """
ms.set_auto_parallel_context(
    parallel_mode=ms.ParallelMode.SEMI_AUTO_PARALLEL, enable_parallel_optimizer=True, full_batch=True,
    parallel_optimizer_config={"parallel_optimizer_threshold": 0, "optimizer_level": "level2"},
)
net = Net()
optimizer = nn.Adam(net.trainable_params(), 0.05)
train.Model(net, nn.CrossEntropyLoss(), optimizer).train(2, rows(sharded=False))
show(net)
"""

ACCUMULATION = """
net = GradAccumulation(nn.WithLossCell(Net(), nn.CrossEntropyLoss()), 4)
net = AutoParallel(net, parallel_mode="semi_auto")
optimizer = nn.SGD(net.trainable_params(), 0.05)
train.Model(net, optimizer=optimizer).train(2, rows())
show(net)
"""

STEP = """
class Both(nn.Cell):
    def __init__(self, *steps):
        super().__init__()
        self.first, self.others = steps[0], nn.CellList(steps[1:])

    def construct(self, x, y):
        return self.first(x, y) + self.others[0](x, y)

nets = Net(), Net()
steps = [
    nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params(), 0.05))
    for net in nets
]
step = AutoParallel(Both(*steps), parallel_mode="semi_auto")
for x, y in rows():
    step(x, y)
for name, net in zip("ab", nets):
    net.update_parameters_name(name + ".")
    show(net)
"""


@pytest.mark.parametrize(
    "script",
    [MODEL, LOOP, CONTEXT, ACCUMULATION, STEP],
    ids=["model", "loop", "keys", "parts", "steps made before"],
)
def test_two_workers_train_as_one_does(script):
    alone = sums(outputs(script, 1)[0])
    for text in outputs(script, 2):
        assert sums(text) == pytest.approx(alone, rel=1e-5)


PIPELINE = """
class Stages(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.relu, self.fc2 = nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3)
        BY_ATTRIBUTE

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(x)))

with_loss = nn.WithLossCell(Stages(), nn.CrossEntropyLoss())
net = AutoParallel(Pipeline(with_loss, 4, stage_config=CONFIG), parallel_mode="semi_auto")
net.pipeline(stages=2, scheduler="1f1b")
optimizer = nn.SGD(net.trainable_params(), 0.05)
model = train.Model(net, optimizer=optimizer)
model.train(2, rows(sharded=False))
for name, value in model.gather_parameters().items():
    print("sum", name, repr(float(np.abs(value.asnumpy().astype(np.float64)).sum())))
"""
BY_ATTRIBUTE = PIPELINE.replace("BY_ATTRIBUTE", "self.fc1.pipeline_stage, self.fc2.pipeline_stage = 0, 1")
BY_CONFIG = PIPELINE.replace("BY_ATTRIBUTE", "pass").replace(
    "CONFIG", '{"_backbone.fc1": 0, "_backbone.fc2": 1}'
)


@pytest.mark.parametrize("script", [BY_ATTRIBUTE.replace("CONFIG", "None"), BY_CONFIG], ids=["cells", "dict"])
def test_two_stages_train_as_one_process_does(script):
    one_stage = script.replace("self.fc1.pipeline_stage, self.fc2.pipeline_stage = 0, 1", "pass")
    one_stage = one_stage.replace('{"_backbone.fc1": 0, "_backbone.fc2": 1}', "None")
    alone = sums(outputs(one_stage.replace("stages=2", "stages=1"), 1)[0])
    for text in outputs(script, 2):
        assert sums(text) == pytest.approx(alone, rel=1e-6)


STAGES_OF_OPERATORS = """
class Product(nn.Cell):
    def __init__(self, shape, cuts):
        super().__init__()
        self.weight = ms.Parameter(ms.common.initializer.initializer("normal", shape, ms.float32), "weight")
        self.matmul, self.relu = ops.MatMul().shard(cuts), ops.ReLU()

    def construct(self, x):
        return self.relu(self.matmul(x, self.weight))

class Stages(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = Product((6, 8), ((2, 1), (1, 2))), Product((8, 4), ((2, 2), (2, 1)))
        STAGE

    def construct(self, x):
        return self.second(self.first(x))

with_loss = nn.WithLossCell(Stages(), nn.CrossEntropyLoss())
NETWORK
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
model = train.Model(net, optimizer=optimizer)
TRAINING
for parameter in net.trainable_params():
    print("held", parameter.name, muster.parallel.held_bytes(net))
for name, value in model.gather_parameters().items():
    print("sum", name, repr(float(np.abs(value.asnumpy().astype(np.float64)).sum())))
"""


IN_PARTS = """ms.set_auto_parallel_context(dataset_strategy="full_batch")
net = AutoParallel(Pipeline(with_loss, 2), parallel_mode="semi_auto")
net.pipeline(stages=STAGES)"""
MODEL_OF_STAGES = """
model.train(2, rows(sharded=False))
"""
SCALED_STEPS = """
update = nn.DynamicLossScaleUpdateCell(256, 2, 3)
step = nn.TrainOneStepWithLossScaleCell(net, optimizer, update)
for epoch in range(2):
    for x, y in rows(sharded=False):
        step(x, y)
"""
STEPS_MADE_BEFORE = """
step = AutoParallel(nn.TrainOneStepCell(with_loss, optimizer), parallel_mode="semi_auto")
step.pipeline(stages=STAGES)
step.dataset_strategy("full_batch")
for epoch in range(2):
    for x, y in rows(sharded=False):
        step(x, y)
"""


@pytest.mark.parametrize(
    ("network", "training"),
    [(IN_PARTS, MODEL_OF_STAGES), (IN_PARTS, SCALED_STEPS), ("net = with_loss", STEPS_MADE_BEFORE)],
    ids=["model", "scaled steps", "steps made before"],
)
def test_stages_whose_operators_are_divided_train_as_one_process_does(network, training):
    script = STAGES_OF_OPERATORS.replace("NETWORK", network).replace("TRAINING", training)
    script = "import muster\n" + script
    placed = "self.first.pipeline_stage, self.second.pipeline_stage = 0, 1"
    alone = outputs(script.replace("STAGES", "1").replace("STAGE", "pass"), 1)[0]
    for rank, text in enumerate(outputs(script.replace("STAGES", "2").replace("STAGE", placed), 8)):
        assert sums(text) == pytest.approx(sums(alone), rel=1e-5)
        assert "note: shard" not in text
        of_stage = 4 * (6 * 8 if rank % 2 == 0 else 8 * 4)
        assert re.search(rf"held \S+ {of_stage // 2}\n", text)  # half of the weight of its stage


ERRORS = """
from mindspore import Layout
from mindspore.parallel import shard

def told(what, call):
    try:
        call()
        print(what, "nothing")
    except (KeyError, NotImplementedError, TypeError, ValueError) as error:
        print(what, type(error).__name__, error)

x = Tensor(np.zeros((6, 8), np.float32))
told("workers:", lambda: ops.MatMul().shard(((4, 1), (1, 2))))
told("parts:", lambda: ops.MatMul().shard(((0, 1), (1, 2))))
told("kind:", lambda: ops.MatMul().shard([(1, 1), (1, 1)]))
told("summed:", lambda: ops.MatMul().shard(((1, 2), (1, 2))))
told("shape:", lambda: ops.Add().shard(((2, 1), (2, 1)))(Tensor(np.zeros((3, 8), np.float32)), x))
told("rank:", lambda: ops.ReLU().shard(((2,),))(x))
told("layout:", lambda: ops.ReLU().shard((Layout((4, 2), ("dp", "mp"))("dp", "mp"),)))
told("plan:", lambda: shard(Net(), ((2, 1),), parameter_plan={"fc3.weight": (2, 1)}))
told("plan cut:", lambda: shard(Net(), ((2, 1),), parameter_plan={"fc2.weight": (2, 1)}))
told("stages:", lambda: AutoParallel(Net()).pipeline(3))
told("stage:", lambda: Pipeline(Net(), 4, stage_config={"fc9": 0}))
told("level:", lambda: AutoParallel(Net()).hsdp(optimizer_level="level4"))
told("mode:", lambda: AutoParallel(Net(), "automatic"))
told("key:", lambda: ms.set_auto_parallel_context(pipeline_config={"pipeline_steps": 1}))
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
told("plan in semi-automatic mode:", lambda: shard(Net(), ((2, 1),), parameter_plan={"fc2.weight": (2, 1)}))
told("right:", lambda: print(shard(ops.ReLU(), ((2, 1),))(x).shape))
"""


def test_what_cannot_be_is_an_error_at_its_line():
    text = outputs(ERRORS, 2)[0]
    assert re.search(
        r"workers: ValueError MatMul \(shard at .*\): in_strategy\[0\] is \(4, 1\), .* this job has 2", text
    )
    assert re.search(r"parts: ValueError .*1 part or more", text)
    assert re.search(r"kind: TypeError", text)
    assert re.search(r"summed: ValueError .*cut into 2 parts by \(1, 2\) and into 1 by \(1, 2\)", text)
    assert re.search(r"shape: ValueError .*input 0 is \(3, 8\), whose dimension 0 .* one of 1, 3", text)
    assert re.search(r"rank: ValueError .*of 2 dimensions, and its strategy \(2,\) has 1", text)
    assert re.search(r"layout: ValueError .*takes 8 workers; this job has 2", text)
    assert "plan: nothing" in text
    assert re.search(r"names 'fc3.weight', which is ignored: the parameters are fc1.weight", text)
    assert re.search(r"plan cut: ValueError .*parameter 'fc2.weight' is \(3, 8\)", text)
    assert re.search(r"plan in semi-automatic mode: ValueError .*parameter 'fc2.weight' is \(3, 8\)", text)
    assert re.search(r"stages: ValueError .*3 stages cannot share 2 workers equally", text)
    assert re.search(r"stage: KeyError .*names 'fc9'; the cells are fc1, relu, fc2", text)
    assert re.search(r"level: ValueError .*level1, level2, level3", text)
    assert re.search(r"mode: ValueError", text)
    assert re.search(r"key: ValueError", text)
    assert "right: nothing" in text
    assert len(re.findall(r"shard\(\) has no effect", text)) == 1


UNLIKE_STAGES = """
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", full_batch=True, pipeline_stages=2)
net = Net()
net.fc1.pipeline_stage = get_rank()
net.fc2.pipeline_stage = 1
train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1)).train(1, rows(False))
"""


def test_stages_that_differ_between_workers_are_an_error_with_the_lines_of_the_script():
    with Job(SETUP + UNLIKE_STAGES, 2) as job:
        for rank, worker in enumerate(job.workers):
            place = rf"rank {rank} has placed Dense 'fc1' on worker {rank} \(<string>:\d+\)"
            worker.wait_for_line(f"ValueError: the workers place the network differently: .*{place}")


EXIT = """
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
net = Net()
optimizer = nn.Adam(net.trainable_params(), 0.05)

class Told(train.Callback):
    def on_train_step_end(self, run_context):
        print("step", run_context.original_args().cur_step_num, flush=True)

callbacks = [Told(), train.OnRequestExit(save_mindir=False, directory=FOLDER, config_file=FILE)]
train.Model(net, nn.CrossEntropyLoss(), optimizer).train(EPOCHS, rows(), callbacks)
print("ended", int(optimizer.global_step.asnumpy()[0]))
"""


def exit_script(folder, epochs):
    text = EXIT.replace("FOLDER", repr(str(folder))).replace("FILE", repr(str(folder / "exit.json")))
    return SETUP + text.replace("EPOCHS", str(epochs))


@pytest.mark.parametrize("asked_by", ["signal", "signal to all", "file"])
def test_a_request_to_exit_ends_all_workers_behind_one_step_with_what_they_have(tmp_path, asked_by):
    (tmp_path / "exit.json").write_text('{"GracefulExit": 0}')
    with Job(exit_script(tmp_path, 100000), 2) as job:
        for worker in job.workers:
            worker.wait_for_line("step 3$")
        if asked_by == "signal":
            job.workers[1].signal(signal.SIGTERM)
        elif asked_by == "signal to all":  # as batch systems do it; the scheduler may be the first to get it
            for process in [job.scheduler, *job.workers]:
                process.signal(signal.SIGTERM)
        else:
            (tmp_path / "exit.json").write_text(json.dumps({"GracefulExit": 1}))
        assert [process.wait() for process in job.everybody()] == [0, 0, 0]
        ends = [int(re.search(r"ended (\d+)", worker.output())[1]) for worker in job.workers]
    assert ends[0] == ends[1] >= 3
    (tmp_path / "exit.json").unlink()
    with Job(exit_script(tmp_path, 1), 2) as job:
        assert [process.wait() for process in job.everybody()] == [0, 0, 0]
        for worker in job.workers:
            assert int(re.search(r"ended (\d+)", worker.output())[1]) == ends[0] + 4


@pytest.mark.parametrize("text", ['{"GracefulExit": ', "[1]"])
def test_a_file_that_cannot_ask_to_end_is_named_in_a_warning(tmp_path, text):
    (tmp_path / "exit.json").write_text(text)
    said = output_alone(exit_script(tmp_path, 1))
    assert re.search("ended [1-9]", said)
    assert len(re.findall(r"warning: OnRequestExit: '.*exit.json' is not .*\"GracefulExit\": 1", said)) == 1


KEEPS_NOTHING = """
callbacks = [
    train.OnRequestExit(save_mindir=False, directory=FOLDER), train.BackupAndRestore(FOLDER),
    train.History(), train.LossMonitor(), train.TimeMonitor(), train.LambdaCallback(),
    train.ReduceLROnPlateau("loss"), train.EarlyStopping("loss"),
    train.LearningRateScheduler(lambda lr, _: lr),
]
net = Net()
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"loss"})
model.fit(1, rows(), rows(), callbacks=callbacks)
"""


def test_a_recovering_job_warns_of_no_callback_of_the_library(tmp_path):
    script = SETUP + KEEPS_NOTHING.replace("FOLDER", repr(str(tmp_path)))
    with Job(script, 2, MS_ENABLE_RECOVERY="1", MS_RECOVERY_PATH=str(tmp_path / "points")) as job:
        assert [process.wait() for process in job.everybody()] == [0, 0, 0]
        for worker in job.workers:
            assert "no state_dict" not in worker.output()


FITTED = """
import os
import signal

folder = FOLDER + f"/rank_{get_rank()}"
net = Net()
os.makedirs(folder)
ms.save_checkpoint(net, folder + "/Net_train.ckpt")  # of an earlier training that was asked to end

class Sums(train.Callback):
    def on_train_epoch_end(self, run_context):
        print("trained", float(np.abs(net.fc1.weight.asnumpy()).sum()))
    def on_eval_begin(self, run_context):
        print("judged", float(np.abs(net.fc1.weight.asnumpy()).sum()))

model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"loss"})
before = signal.getsignal(signal.SIGTERM)
leave = train.OnRequestExit(save_mindir=False, directory=FOLDER)
model.fit(3, rows(), rows(), callbacks=[leave, Sums()])
print("listens", signal.getsignal(signal.SIGTERM) != before)
"""


def test_a_fit_goes_on_with_what_it_has_trained_and_then_listens_no_more(tmp_path):
    text = output_alone(SETUP + FITTED.replace("FOLDER", repr(str(tmp_path))))
    trained, judged = (re.findall(rf"{word} (\S+)", text) for word in ("trained", "judged"))
    assert trained == judged and len(set(trained)) == 3
    assert "listens False" in text


def test_more_workers_than_before_all_go_on_with_what_was_saved(tmp_path):
    (tmp_path / "exit.json").write_text(json.dumps({"GracefulExit": 1}))
    ends = []
    for workers, epochs in ((1, 5), (2, 1)):
        texts = outputs(exit_script(tmp_path, epochs).removeprefix(SETUP), workers)
        ends.append({int(re.search(r"ended (\d+)", text)[1]) for text in texts})
        (tmp_path / "exit.json").unlink(missing_ok=True)
    assert ends == [{1}, {1 + 4}]
