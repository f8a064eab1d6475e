"""What the body of muster.recoverable keeps from one step to the next, in jobs whose workers are killed."""

import pytest
from test_recoverable import LOOP, made_loop, run

import muster
from muster import dataset as ds
from muster import nn

ACCUMULATING = LOOP.replace(
    """    gradients = reducer(gradients)
    die("before the optimizer")
    optimizer(gradients)
""",
    """    add(gradients)
    die("behind the sum")
    if done % 4 == 3:
        summed = reducer(tuple(kept["sums"]))
        die("before the optimizer")
        optimizer(summed)
        clear()
""",
)
IN_A_DICT = """
kept = states = {"sums": None, "count": 0}

def add(gradients):
    kept["sums"] = [g if kept["count"] == 0 else s + g for s, g in zip(kept["sums"] or gradients, gradients)]
    kept["count"] += 1

def clear():
    kept.update(sums=None, count=0)
"""
IN_PARAMETERS = """
kept = states = {"sums": [muster.Parameter(p * 0, name="sum_" + p.name) for p in net.trainable_params()]}

def add(gradients):
    for sum, gradient in zip(kept["sums"], gradients):
        sum.set_data(sum + gradient)

def clear():
    for sum in kept["sums"]:
        sum.set_data(sum * 0)
"""
IN_AN_OBJECT = """
class Sums:
    def __init__(self):
        self.now = []

    def state_dict(self):
        return {"now": self.now}

    def load_state_dict(self, state):
        self.now = state["now"]

sums = Sums()
kept, states = {}, [sums]

def add(gradients):
    sums.now = [s + g for s, g in zip(sums.now, gradients)] if sums.now else list(gradients)
    kept["sums"] = sums.now

def clear():
    sums.now = []
"""
IN_A_LIST_MADE_ANEW = """
kept = states = {"sums": [], "other": 1}

def add(gradients):
    kept["sums"] = [s + g for s, g in zip(kept["sums"], gradients)] if kept["sums"] else list(gradients)

def clear():
    kept["sums"] = []
"""
KEPT = {
    "a list made anew": IN_A_LIST_MADE_ANEW,
    "a dict": IN_A_DICT,
    "Parameters": IN_PARAMETERS,
    "an object": IN_AN_OBJECT,
}


def keeping(how, script=ACCUMULATING, states="states=states"):
    return script.replace("grad_fn = ", KEPT[how] + "grad_fn = ", 1).replace(
        "save_steps=3)", f"save_steps=3, {states})"
    )


@pytest.mark.parametrize("place", ["behind the sum", "before the optimizer", "behind the optimizer"])
@pytest.mark.parametrize("how", KEPT)
def test_what_is_named_goes_back_with_the_steps(tmp_path, how, place):
    whole, _ = run(tmp_path / "whole", keeping(how), "nowhere")
    ends, _ = run(tmp_path / "broken", keeping(how), place)
    assert len(set(whole)) == 1
    assert ends == whole


def test_a_parameter_that_nobody_has_named_is_an_error(tmp_path):
    script = keeping("Parameters", states="epochs=4").replace("epochs=4, save_steps=3, ", "save_steps=3, ")
    with pytest.raises(AssertionError, match=r"changed parameter 'sum_.*states=\{'sum_"):
        run(tmp_path, script, "nowhere")


def test_a_parameter_that_the_body_makes_for_itself_is_none_of_the_loops_business(tmp_path):
    script = LOOP.replace(
        "    optimizer(gradients)", "    muster.Parameter(loss * 1).set_data(loss)\n    optimizer(gradients)"
    )
    run(tmp_path, script, "nowhere")


COUNTING = """
class Schedule:
    state_is_shared = True
    count = 0

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]

schedule = Schedule()
"""


@pytest.mark.parametrize("place", ["before the reducer", "behind the optimizer"])
def test_a_state_that_all_share_is_taken_from_the_others(tmp_path, place):
    script = (
        LOOP.replace("grad_fn = ", COUNTING + "grad_fn = ", 1)
        .replace("save_steps=3)", "save_steps=3, states={'schedule': schedule})")
        .replace("    loss, gradients", "    schedule.count += 1\n    loss, gradients")
        .replace('"last", done', '"last", done + schedule.count')
    )
    whole, _ = run(tmp_path / "whole", script, "nowhere")
    ends, outputs = run(tmp_path / "broken", script, place)
    assert whole[0].endswith(" last 47")
    assert ends == whole
    assert "all go back" not in "".join(outputs)


AT_ITS_BEGIN = """
    if step == 0:
        net.set_train(True)
    if done == 7:
        inner.bias.requires_grad = False
    die("before grad_fn")
"""
AT_ITS_END = """
    die("behind the optimizer")
    if step == 5:
        net.set_train(False)
"""
SWITCHING = (
    LOOP.replace("net.set_train()\n", "", 1)
    .replace('"PLACE"], 11', '"PLACE"], 8')
    .replace('\n    die("before grad_fn")\n', AT_ITS_BEGIN)
    .replace('\n    die("behind the optimizer")\n', AT_ITS_END)
    .replace('"last", done', '"last", 100 * len(net.trainable_params()) + done')
)


@pytest.mark.parametrize("place", ["before the reducer", "behind the optimizer"])
def test_modes_that_a_body_switches_at_some_steps_go_on(tmp_path, place):
    whole, _ = run(tmp_path / "whole", SWITCHING, "nowhere")
    ends, outputs = run(tmp_path / "broken", SWITCHING, place)
    assert whole[0].endswith(" last 323")
    assert ends == whole
    assert "all go back" not in "".join(outputs)


SECOND_LOOP = """
for epoch, step, (x, y) in muster.recoverable(net, optimizer, data, epochs=2, save_steps=3):
    done = 10 + epoch * 6 + step
    die("in the second loop")
    optimizer(reducer(grad_fn(x, y)[1]))
state = hashlib.sha256()
"""


def test_what_is_named_is_there_behind_a_loop_that_was_over_before_the_process_came_back(tmp_path):
    script = (
        LOOP.replace("grad_fn = ", "seen = []\ngrad_fn = ", 1)
        .replace("save_steps=3)", "save_steps=3, states={'seen': seen})", 1)
        .replace("    loss, gradients", "    seen.append(done)\n    loss, gradients", 1)
        .replace("state = hashlib.sha256()\n", SECOND_LOOP, 1)
        .replace('"last", done', '"last", done + len(seen)')
    )
    whole, _ = run(tmp_path / "whole", script, "nowhere")
    ends, _ = run(tmp_path / "broken", script, "in the second loop")
    assert whole[0].endswith(" last 45")
    assert ends == whole


GROUPS = """
from mindspore.experimental import optim
optimizer = optim.Adam(net.trainable_params(), lr=0.01)
schedule = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
"""


@pytest.mark.parametrize("place", ["before the reducer", "behind the optimizer"])
def test_optimizers_with_parameter_groups_go_on_with_their_schedules(tmp_path, place):
    script = (
        LOOP.replace("victim, place", GROUPS + "victim, place", 1)
        .replace(
            "nn.DistributedGradReducer(optimizer.parameters)",
            "nn.DistributedGradReducer(net.trainable_params())",
        )
        .replace('    die("behind the optimizer")', '    schedule.step()\n    die("behind the optimizer")')
        .replace("*optimizer.get_parameters()", "*optimizer.kept_parameters()")
    )
    whole, _ = run(tmp_path / "whole", script, "nowhere")
    ends, outputs = run(tmp_path / "broken", script, place)
    assert ends == whole
    assert "all go back" not in "".join(outputs)


DRAWN = (
    LOOP.replace(
        "grad_fn = ",
        """import collections, random
draws, plain = numpy.random.default_rng(7 + rank), random.Random(5 + rank)
old, last = numpy.random.RandomState(3 + rank), collections.deque(maxlen=3)
grad_fn = """,
        1,
    )
    .replace("save_steps=3)", "save_steps=3, states=[draws, plain, old, last])")
    .replace(
        "    loss, gradients = grad_fn(x, y)",
        """    last.append(draws.standard_normal() * plain.random() * old.standard_normal())
    loss, gradients = grad_fn(x * muster.Tensor(numpy.float32(sum(last))), y)""",
    )
)


@pytest.mark.parametrize("place", ["before the reducer", "behind the optimizer"])
def test_generators_of_numbers_and_deques_go_back_with_the_steps(tmp_path, place):
    whole, _ = run(tmp_path / "whole", DRAWN, "nowhere")
    ends, outputs = run(tmp_path / "broken", DRAWN, place)
    assert ends == whole
    assert "of the loop changes" not in "".join(outputs)


COUNTING_AVERAGE = """
class Average:
    def __init__(self):
        self.count = 0
        self.weights = [muster.Parameter(p * 0, name="mean_" + p.name) for p in net.trainable_params()]

    def add(self):
        self.count += 1
        for mean, p in zip(self.weights, net.trainable_params()):
            mean.set_data(mean + (p - mean) / self.count)

average = Average()
"""


@pytest.mark.parametrize("place", ["before the reducer", "behind the optimizer"])
def test_numbers_beside_the_parameters_of_an_object_go_back_with_them(tmp_path, place):
    script = (
        LOOP.replace("grad_fn = ", COUNTING_AVERAGE + "grad_fn = ", 1)
        .replace("save_steps=3)", "save_steps=3, states=[average])")
        .replace("    optimizer(gradients)\n", "    optimizer(gradients)\n    average.add()\n")
        .replace("*optimizer.get_parameters()", "*optimizer.get_parameters(), *average.weights")
        .replace('"last", done', '"last", done + average.count')
    )
    whole, _ = run(tmp_path / "whole", script, "nowhere")
    ends, _ = run(tmp_path / "broken", script, place)
    assert whole[0].endswith(" last 47")
    assert ends == whole


def test_what_cannot_be_set_again_is_named():
    rows = ds.NumpySlicesDataset(([[1.0, 2.0]], [[3.0]]), ["x", "y"]).batch(1)
    with pytest.raises(TypeError, match=r"states: '0' is int.*state_dict"):
        made_loop(rows, states=[3])
    net = nn.Dense(2, 1)
    with pytest.raises(TypeError, match=r"one of muster\.nn or a cell, not str"):
        muster.recoverable(net, "sgd", rows)


ACCUMULATING_CELL = """
class Accumulating(nn.Cell):
    def __init__(self):
        super().__init__(auto_prefix=False)
        self.net, self.optimizer = net, optimizer
        self.reducer = nn.DistributedGradReducer(optimizer.parameters)
        self.sums = [muster.Parameter(p * 0, name="sum_" + p.name) for p in net.trainable_params()]
        for sum in self.sums:
            self.insert_param_to_cell(sum.name.replace(".", "_"), sum)
        self.count = muster.Parameter(muster.Tensor(0), name="count")
        self.grad_fn = muster.value_and_grad(forward, None, net.trainable_params())

    def construct(self, x, y):
        loss, gradients = self.grad_fn(x, y)
        for sum, gradient in zip(self.sums, gradients):
            muster.ops.assign_add(sum, gradient)
        self.count += 1
        die("behind the sum")
        if self.count % 4 == 0:
            reduced = self.reducer(tuple(self.sums))
            die("before the optimizer")
            self.optimizer(reduced)
            for sum in self.sums:
                muster.ops.assign(sum, sum * 0)
        return loss

step_cell = Accumulating()
step_cell.set_train()
"""
BY_HAND = """
for epoch, step, (x, y) in muster.recoverable(step_cell, optimizer, data, epochs=4, save_steps=3):
    done = epoch * 6 + step
    step_cell(x, y)
"""
BY_A_MODEL = """
class Done(muster.train.Callback):
    state_is_shared = True

    def on_train_step_end(self, run_context):
        global done
        done = run_context.cur_step_num

    def state_dict(self):
        return {"done": done}

    def load_state_dict(self, state):
        global done
        done = state["done"]

muster.train.Model(step_cell).train(4, data, callbacks=[Done()], dataset_sink_mode=False)
"""


def stepping(loop):
    head, tail = LOOP.index("grad_fn = "), LOOP.index("state = hashlib")
    return LOOP[:head] + ACCUMULATING_CELL + loop + LOOP[tail:]


@pytest.mark.parametrize("place", ["behind the sum", "before the optimizer"])
@pytest.mark.parametrize("loop", ["by hand", "by a Model"])
def test_sums_that_a_step_cell_keeps_are_each_workers_own(tmp_path, loop, place):
    script = stepping({"by hand": BY_HAND, "by a Model": BY_A_MODEL}[loop])
    whole, _ = run(tmp_path / "whole", script, "nowhere", MODE="eager")
    ends, _ = run(tmp_path / "broken", script, place, MODE="eager")
    assert len(set(whole)) == 1
    assert ends == whole


def test_averages_of_weights_are_equal_in_all_workers_and_are_taken_from_the_others(tmp_path):
    averages = """
averages = [
    muster.Parameter(p * 1, name="average_" + p.name, requires_grad=False) for p in net.trainable_params()
]
for number, average in enumerate(averages):
    net.insert_param_to_cell(f"average_{number}", average)
"""
    script = LOOP.replace("grad_fn = ", averages + "grad_fn = ", 1).replace(
        '    die("behind the optimizer")',
        "    for average, p in zip(averages, optimizer.parameters):\n"
        "        muster.ops.assign(average, average * 0.9 + p * 0.1)\n"
        '    die("behind the optimizer")',
    )
    whole, _ = run(tmp_path / "whole", script, "nowhere")
    ends, outputs = run(tmp_path / "broken", script, "before the reducer")
    assert ends == whole
    assert "all go back" not in "".join(outputs)
