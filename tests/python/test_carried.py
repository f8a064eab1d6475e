"""What the body of muster.recoverable changes beside what points hold, in jobs whose workers are killed."""

import re

import pytest
from job import Job
from test_recoverable import LOOP, run

CHANGES = {
    "numbers": ("total = 0.0", "total = total + float(loss)", "total"),
    "a list": ("seen = []", "seen.append(float(loss))", "seen"),
    "a function": ("count = 0\ndef counted():\n    global count\n    count += 1", "counted()", "count"),
    "an object": (
        "class Trainer:\n    def __init__(self):\n        self.steps = 0\ntrainer = Trainer()",
        "trainer.steps += 1",
        "trainer.steps",
    ),
    "a tensor": ("sums = None", "sums = gradients[0] if sums is None else sums + gradients[0]", "sums"),
    "an array": ("mean = numpy.zeros(3)", "mean += 1", "mean"),
    "a generator": ("draws = numpy.random.default_rng(7)", "draws.random()", "draws"),
    "a dict of arrays": (
        "ema = {'all': numpy.zeros(3)}",
        "ema['all'] = ema['all'] * 0.9 + float(loss)",
        "ema",
    ),
}
TOLD_AT_ONCE = ("a tensor", "an array", "a generator", "a dict of arrays")
BEFORE = r"the body of the loop changes '{}', and no recovery point holds that"
BEHIND = r"the training goes on at epoch 1, step 5\. .*'{}'.*, which the body of the loop changes"


def changing(how):
    setup, change, name = CHANGES[how]
    script = LOOP.replace("grad_fn = ", setup + "\ngrad_fn = ", 1)
    return script.replace("    optimizer(gradients)\n", f"    optimizer(gradients)\n    {change}\n"), name


@pytest.mark.parametrize("how", CHANGES)
def test_a_process_that_comes_back_is_told_what_did_not(tmp_path, how):
    script, name = changing(how)
    _, outputs = run(tmp_path, script, "before the reducer")
    told = [len(re.findall(BEHIND.format(name), text)) for text in outputs]
    assert told == [0, 1], "the other one has gone on as it was"


@pytest.mark.parametrize("how", CHANGES)
def test_what_holds_many_numbers_is_told_before_anybody_dies(tmp_path, how):
    script, name = changing(how)
    _, outputs = run(tmp_path, script, "nowhere")
    told = [len(re.findall(BEFORE.format(name), text)) for text in outputs]
    assert told == ([1, 1] if how in TOLD_AT_ONCE else [0, 0])


@pytest.mark.parametrize("place", ["nowhere", "before the reducer"])
def test_what_each_body_makes_anew_is_not_told(tmp_path, place):
    script = LOOP.replace(
        "    optimizer(gradients)\n",
        "    optimizer(gradients)\n    kind = 'even' if step % 2 else 'odd'\n    text = [kind, loss]\n",
    )
    _, outputs = run(tmp_path, script, place)
    assert "of the loop changes" not in "".join(outputs)


TAKES = {
    "an iterator": ("other = iter(data.repeat(9))", "next(other)", ["other"]),
    "one that begins again": (
        "other = iter(data)",
        "item = next(other, None)\n    if item is None:\n        other = iter(data)",
        ["other"],
    ),
    "a function": ("other = itertools.count()\ndef take():\n    return next(other)", "take()", ["other"]),
    "an object": (
        "class Taker:\n    def __init__(self):\n        self.items = (n for n in range(99))\ntaker = Taker()",
        "next(taker.items)",
        ["taker.items"],
    ),
    "what the body makes": ("", "next(iter(data))", []),
    "the steps": ("", "steps.is_aborted", []),
}


@pytest.mark.parametrize("how", TAKES)
def test_an_iterator_beside_the_loop_is_told_before_anybody_dies(tmp_path, how):
    setup, take, names = TAKES[how]
    script = LOOP.replace("grad_fn = ", f"import itertools\n{setup}\ngrad_fn = ", 1)
    script = script.replace("    optimizer(gradients)\n", f"    optimizer(gradients)\n    {take}\n")
    _, outputs = run(tmp_path, script, "nowhere")
    told = [re.findall(r"the body of the loop takes from '(.*)', and no", text) for text in outputs]
    assert told == [names, names]


IN_A_MODEL = """
import numpy
import muster
from muster import dataset as ds, nn, train

muster.init()
muster.set_context(mode="eager")
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
rows = numpy.random.default_rng(1).random((24, 6), numpy.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :2]), ["x", "y"], num_shards=2, shard_id=muster.get_rank())

class Counting(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.steps = nn.Dense(6, 2), 0

    def construct(self, x):
        self.steps += 1
        return self.fc(x)

net = Counting()
train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(2, data.batch(4))
"""


def test_an_attribute_that_steps_of_a_model_change_is_told_in_a_job_that_recovers(tmp_path):
    with Job(IN_A_MODEL, 2, MS_ENABLE_RECOVERY="1", MS_RECOVERY_PATH=str(tmp_path / "recovery")) as job:
        assert [process.wait() for process in job.everybody()] == [0, 0, 0]
        texts = [worker.output() for worker in job.workers]
    assert [text.count("steps of the training change 'Counting.steps'") for text in texts] == [1, 1]


OF_CALLBACKS = """
import numpy
import muster
from muster import dataset as ds, nn, train

muster.init()
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
rows = numpy.random.default_rng(1).random((24, 6), numpy.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :2]), ["x", "y"], num_shards=2, shard_id=muster.get_rank())

class Counter:
    def __init__(self):
        self.calls = 0

    def __call__(self, rate, step):
        self.calls += 1
        return rate

def remembering():
    calls = []

    def rate(rate, step):
        calls.append(step)
        return 0.1 * 0.98 ** len(calls)

    return rate

seen, draws, half = [], numpy.random.default_rng(2), 0.5

def note(epoch):
    seen.append(epoch)

class Noting(train.Callback):
    def on_train_epoch_end(self, run_context):
        note(run_context.cur_epoch_num)

class Keeping(Noting):
    def state_dict(self):
        return {"seen": seen}

    def load_state_dict(self, state):
        seen[:] = state["seen"]

net = nn.Dense(6, 2)
optimizer = nn.SGD(net.trainable_params(), 0.1)
train.Model(net, nn.MSELoss(), optimizer).train(2, data.batch(4), callbacks=CALLBACK)
"""
SCHEDULER = "train.LearningRateScheduler"
CHANGED_BY = {
    f"{SCHEDULER}(remembering())": "calls",
    f"{SCHEDULER}(Counter())": "Counter.calls",
    f"{SCHEDULER}(learning_rate_function=lambda rate, step: rate * draws.random())": "draws",
    "train.LambdaCallback(on_train_epoch_end=lambda context: note(context.cur_epoch_num))": "seen",
    "Noting()": "seen",
    "Keeping()": None,
    f"[{SCHEDULER}(lambda rate, step: rate * half), train.LossMonitor()]": None,
}


@pytest.mark.parametrize("callback", CHANGED_BY)
def test_a_variable_that_callbacks_change_is_told_in_a_job_that_recovers(tmp_path, callback):
    script = OF_CALLBACKS.replace("CALLBACK", callback)
    with Job(script, 2, MS_ENABLE_RECOVERY="1", MS_RECOVERY_PATH=str(tmp_path / "recovery")) as job:
        assert [process.wait() for process in job.everybody()] == [0, 0, 0]
        texts = [worker.output() for worker in job.workers]
    told = [
        re.findall(r"callbacks of the training change '(.*)', and no recovery point", text) for text in texts
    ]
    assert told == [[CHANGED_BY[callback]] if CHANGED_BY[callback] else []] * 2


SWITCHING = """
import hashlib, os, signal
import numpy
import muster
from muster import dataset as ds, nn, train

muster.init()
muster.set_seed(3)
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
rank = muster.get_rank()
rows = numpy.random.default_rng(1).random((24, 6), numpy.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :2]), ["x", "y"], num_shards=2, shard_id=rank)
net = nn.SequentialCell(nn.Dense(6, 8), nn.Dropout(p=0.4), nn.ReLU(), nn.Dropout(p=0.3), nn.Dense(8, 2))

class Switching(train.Callback):
    def on_train_begin(self, run_context):
        net[1].set_train(False)

    def on_train_epoch_begin(self, run_context):
        if run_context.cur_epoch_num == 2:
            net[3].set_train(False)
            net[0].bias.requires_grad = False

    def on_train_step_end(self, run_context):
        is_time = os.environ["PLACE"] == str(run_context.cur_step_num) and rank == int(os.environ["VICTIM"])
        if is_time and not os.path.exists(os.environ["ONCE"]):
            open(os.environ["ONCE"], "w")
            os.kill(os.getpid(), signal.SIGKILL)

optimizer = nn.Adam(net.trainable_params(), 0.01)
train.Model(net, nn.MSELoss(), optimizer).train(4, data.batch(4), callbacks=Switching())
state = hashlib.sha256(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest()
print("state", state, "last", len(net.trainable_params()))
"""


def test_modes_that_a_callback_switched_before_are_there_again(tmp_path):
    whole, _ = run(tmp_path / "whole", SWITCHING, "nowhere")
    ends, outputs = run(tmp_path / "broken", SWITCHING, "8")
    assert whole[0] == whole[1]
    assert whole[0].endswith(" last 3")
    assert ends == whole
    assert "all go back" not in "".join(outputs)
