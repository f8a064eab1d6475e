"""muster.recoverable in jobs whose workers are killed in the middle of a body, and callbacks of a script."""

import re

import numpy
import pytest
from job import Job, run_alone

import muster
from muster import dataset as ds
from muster import nn

LOOP = """
import hashlib, os, signal
from pathlib import Path
import numpy
import muster
from muster import dataset as ds, nn

muster.set_context(mode=os.environ.get("MODE", "graph"))
muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.init()
muster.set_seed(7)
rank, workers = muster.get_rank(), muster.get_group_size()
rows = numpy.random.default_rng(1).random((48, 6), numpy.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :2]), ["x", "y"], num_shards=workers, shard_id=rank).batch(4)
inner, outer = nn.Dense(6, 8), nn.Dense(8, 2)
if os.environ.get("PLACED"):
    muster.reset_auto_parallel_context()
    data = ds.NumpySlicesDataset((rows, rows[:, :2]), ["x", "y"]).batch(8)
    inner.place("MS_WORKER", 0)
    outer.place("MS_WORKER", 1)
net = nn.SequentialCell(inner, nn.ReLU(), nn.Dropout(p=0.2), outer)
net.set_train()
loss_fn = nn.MSELoss()
optimizer = getattr(nn, os.environ.get("OPTIMIZER", "Adam"))(net.trainable_params(), learning_rate=0.01)
victim, place, when = int(os.environ["VICTIM"]), os.environ["PLACE"], 11
done = 0
once = Path(os.environ["ONCE"])

def die(here):
    if rank == victim and here == place and done == when and not once.exists():
        once.touch()
        os.kill(os.getpid(), signal.SIGKILL)

def forward(x, y):
    if muster._core._context()["mode"] == "eager":
        die("inside grad_fn")
    return loss_fn(net(x), y)

grad_fn = muster.value_and_grad(forward, None, net.trainable_params())
reducer = nn.DistributedGradReducer(optimizer.parameters)
steps = muster.recoverable(net, optimizer, data, epochs=4, save_steps=3)
for epoch, step, (x, y) in steps:
    done = epoch * 6 + step
    die("before grad_fn")
    loss, gradients = grad_fn(x, y)
    die("before the reducer")
    gradients = reducer(gradients)
    die("before the optimizer")
    optimizer(gradients)
    die("behind the optimizer")
    if os.environ.get("ASKS_TWICE"):
        everywhere = float(muster.ops.all_reduce(loss))
        print("void" if steps.is_aborted else "counts", done, everywhere)
state = hashlib.sha256()
for parameter in [*net.get_parameters(), *optimizer.get_parameters()]:
    try:
        state.update(parameter.asnumpy().tobytes())
    except ValueError:
        pass
print("state", state.hexdigest(), "last", done)
"""


def run(folder, script, place, victim=1, **variables):
    """The last lines of the workers, of which `victim` is started again when it has died."""
    recovery = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(folder / "recovery")}
    told = {"PLACE": place, "VICTIM": str(victim), "ONCE": str(folder / "died"), "MS_NODE_TIMEOUT": "30"}
    with Job(script, 2, **recovery, **told, **variables) as job:
        if place != "nowhere":
            assert job.workers[victim].wait() == -9
            name = f"worker {victim}"
            job.workers[victim] = job.start(name, MS_ROLE="MS_WORKER", MS_NODE_ID=str(victim))
        for process in job.everybody():
            assert process.wait() == 0, process.output()
        outputs = [worker.output() for worker in job.workers]
    assert "differ" not in "".join(outputs), "a recovery or a placed network is no mistake of the script"
    return [re.search(r"state (\w+ last \d+)", output)[1] for output in outputs], outputs


@pytest.fixture(name="unbroken", scope="module")
def unbroken_fixture(tmp_path_factory):
    ends = {}

    def of(**variables):
        key = tuple(variables.items())
        if key not in ends:
            ends[key], _ = run(tmp_path_factory.mktemp("whole"), LOOP, "nowhere", **variables)
        return ends[key]

    return of


@pytest.mark.parametrize(
    ("place", "victim", "variables", "step"),
    [
        ("before grad_fn", 1, {}, "11"),
        ("before the reducer", 0, {}, "11"),
        ("before the optimizer", 1, {}, "12"),
        ("behind the optimizer", 1, {}, "12"),
        ("inside grad_fn", 1, {"MODE": "eager"}, "11"),
        ("before the reducer", 1, {"OPTIMIZER": "Lamb"}, "11"),
        ("behind the optimizer", 1, {"OPTIMIZER": "FTRL"}, "12"),
        ("before grad_fn", 1, {"PLACED": "1"}, "[69]"),
        ("before the reducer", 0, {"PLACED": "1"}, "[69]"),
    ],
)
def test_a_worker_killed_in_a_body_costs_nothing_but_time(tmp_path, unbroken, place, victim, variables, step):
    ends, outputs = run(tmp_path, LOOP, place, victim, **variables)
    assert ends == unbroken(**variables)
    assert re.search(
        rf"resuming job \w+ at step {step}; delete \S+ of every process to start fresh", outputs[victim]
    )
    assert "resuming" not in outputs[1 - victim]


def test_a_body_that_was_cut_off_in_its_second_call_says_that_it_is_void(tmp_path):
    unbroken_ends, whole = run(tmp_path / "whole", LOOP, "nowhere", ASKS_TWICE="1")
    ends, outputs = run(tmp_path / "broken", LOOP, "behind the optimizer", ASKS_TWICE="1")
    assert ends == unbroken_ends
    assert re.findall(r"^void (\d+) ", outputs[0], re.MULTILINE) == ["11"]
    counted = re.findall(r"^counts (\d+ \S+)$", outputs[0], re.MULTILINE)
    assert set(counted) == set(re.findall(r"^counts (\d+ \S+)$", whole[0], re.MULTILINE))
    assert len(counted) > 24  # those behind the recovery point are made again


def test_a_body_that_keeps_what_no_point_has_is_told_of_it(tmp_path):
    told = "no optimizer has made a step in the first step of the loop"
    _, whole = run(tmp_path / "whole", LOOP, "nowhere")
    assert told not in "".join(whole)
    accumulating = LOOP.replace("    optimizer(gradients)", "    if step % 2: optimizer(gradients)")
    _, outputs = run(tmp_path / "accumulating", accumulating, "nowhere")
    assert [text.count(told) for text in outputs] == [1, 1]


def test_a_script_that_comes_back_with_fewer_epochs_is_refused(tmp_path):
    script = LOOP.replace("epochs=4", "epochs=2 if once.exists() else 4")
    recovery = {"MS_ENABLE_RECOVERY": "1", "MS_RECOVERY_PATH": str(tmp_path / "recovery")}
    place = {"PLACE": "before the reducer", "VICTIM": "1", "ONCE": str(tmp_path / "died")}
    with Job(script, 2, **recovery, **place) as job:
        assert job.workers[1].wait() == -9
        again = job.start("worker 1", MS_ROLE="MS_WORKER", MS_NODE_ID="1")
        assert again.wait() == 1
        assert "the training that goes on has 4 epochs, and the script asks for 2 now" in again.output()


DRAWING = LOOP.replace(
    "    loss, gradients = grad_fn(x, y)",
    """    share = muster.Tensor(numpy.float32(numpy.random.beta(0.3, 0.3) * random.random()))
    loss, gradients = grad_fn(x * share, y)""",
).replace(
    "done = 0\n",
    "done = 0\nimport random\nnumpy.random.seed(7 + rank)\nrandom.seed(5 + rank)\n",
)


@pytest.mark.parametrize("place", ["before the reducer", "behind the optimizer"])
def test_a_body_that_draws_from_random_and_numpy_draws_the_same_again(tmp_path, place):
    script = DRAWING + "print('next', numpy.random.rand(), random.random())"
    whole, outputs = run(tmp_path / "whole", script, "nowhere")
    ends, outputs_of_broken = run(tmp_path / "broken", script, place)
    assert ends == whole
    following = [re.search("next .*", output)[0] for output in outputs]
    assert [re.search("next .*", output)[0] for output in outputs_of_broken] == following
    assert following[0] != following[1], "what workers seed apart stays apart"


def test_a_body_that_sets_the_seed_is_told_of_it(tmp_path):
    script = LOOP.replace("    loss, gradients", "    muster.set_seed(epoch)\n    loss, gradients", 1)
    _, outputs = run(tmp_path, script, "nowhere")
    assert [text.count("the body of the loop calls set_seed()") for text in outputs] == [1, 1]


SEEDED_ONE = LOOP.replace(
    "    loss, gradients = grad_fn(x, y)",
    """    share = muster.Tensor(numpy.float32(numpy.random.beta(0.3, 0.3)))
    loss, gradients = grad_fn(x * share, y)""",
).replace("done = 0\n", "done = 0\nimport random\nnumpy.random.seed(7 + rank)\n")


def test_a_body_that_draws_from_the_one_generator_that_is_seeded_draws_the_same_again(tmp_path):
    whole, _ = run(tmp_path / "whole", SEEDED_ONE, "nowhere")
    ends, _ = run(tmp_path / "broken", SEEDED_ONE, "before the reducer")
    assert ends == whole


NOISY = LOOP.replace(
    "    loss, gradients = grad_fn(x, y)",
    """    noise = muster._core._random_numbers("random_normal", x.shape)
    loss, gradients = grad_fn(x + noise, y)""",
)


@pytest.mark.parametrize("place", ["before the reducer", "behind the optimizer"])
def test_a_body_that_draws_by_ops_of_its_own_draws_the_same_again(tmp_path, place):
    script = NOISY + "print('next', muster._core._random_numbers('random_normal', [1]).item())"
    whole, outputs = run(tmp_path / "whole", script, "nowhere")
    ends, outputs_of_broken = run(tmp_path / "broken", script, place)
    assert ends == whole
    following = [re.search("next .*", output)[0] for output in outputs]
    assert [re.search("next .*", output)[0] for output in outputs_of_broken] == following


SEVERAL = (
    LOOP.replace(
        "loss_fn = nn.MSELoss()",
        """loss_fn = nn.MSELoss()
optimizers = [nn.Adam(inner.trainable_params(), 0.01), nn.Momentum(outer.trainable_params(), 0.01, 0.9)]""",
    )
    .replace("recoverable(net, optimizer,", "recoverable(net, optimizers,")
    .replace("    optimizer(gradients)", "    optimizers[0](gradients[:2])\n    optimizers[1](gradients[2:])")
    .replace(
        "*optimizer.get_parameters()", "*optimizers[0].get_parameters(), *optimizers[1].get_parameters()"
    )
)


@pytest.mark.parametrize("place", ["before the reducer", "behind the optimizer"])
def test_each_of_several_optimizers_goes_on_with_what_it_keeps(tmp_path, place):
    whole, _ = run(tmp_path / "whole", SEVERAL, "nowhere")
    ends, _ = run(tmp_path / "broken", SEVERAL, place)
    assert len(set(whole)) == 1
    assert ends == whole


def test_an_optimizer_that_was_not_given_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match=r"give all of them, as in muster.recoverable"):
        run(
            tmp_path,
            SEVERAL.replace("recoverable(net, optimizers,", "recoverable(net, optimizers[0],"),
            "nowhere",
        )


FIT = """
import os, signal
from pathlib import Path
import numpy
import muster
from muster import dataset as ds, nn, train

muster.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
muster.init()
muster.set_seed(7)
rank, workers = muster.get_rank(), muster.get_group_size()
rows = numpy.random.default_rng(1).random((48, 6), numpy.float32)
data = ds.NumpySlicesDataset((rows, rows[:, :2]), ["x", "y"], num_shards=workers, shard_id=rank).batch(4)
once = Path(os.environ["ONCE"])

def saved():
    return sum(name.endswith(".state") for name in os.listdir(os.environ["ONCE"] + f"_{rank}"))

class Losses(train.Callback):
    def __init__(self):
        super().__init__()
        self.seen, self.last = [], None

    def on_train_step_end(self, run_context):
        self.seen.append(float(run_context.net_outputs))
        self.last = run_context.net_outputs.asnumpy()
        is_time = os.environ["PLACE"] == str(len(self.seen))
        if rank == int(os.environ["VICTIM"]) and is_time and not once.exists():
            while saved() < {"6": 1, "15": 6}.get(os.environ["PLACE"], 0):
                pass  # files are written beside the next steps; a death may cost the last one
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def state_dict(self):
        return {"seen": self.seen, "last": self.last}

    def load_state_dict(self, state):
        self.seen, self.last = list(state["seen"]), state["last"]

class Rendezvous(train.Callback):
    # Waits for the others in each step, by a collective call of its own.
    def __init__(self, parameters):
        super().__init__()
        self.reducer = nn.DistributedGradReducer(parameters)

    def on_train_step_begin(self, run_context):
        self.reducer([p * 0 + 1 for p in run_context.network.trainable_params()])

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass

class Forgetful(train.Callback):
    def __init__(self):
        super().__init__()
        self.count = 0

net = nn.Dense(6, 2)
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
model = train.Model(net, nn.MSELoss(), optimizer, {"mae"})
first, second = Losses(), Losses()
config = train.CheckpointConfig(save_checkpoint_steps=4)
saving = lambda: train.ModelCheckpoint("run", os.environ["ONCE"] + f"_{rank}", config)
plateau = train.ReduceLROnPlateau("mae", patience=1)
model.fit(2, data, data, callbacks=[first, Rendezvous(net.trainable_params()), plateau, saving()])
after_first = model.eval(data)
model.fit(3, data, data, callbacks=[second, Forgetful(), train.EarlyStopping("mae", patience=9), saving()])
bits = "".join(p.asnumpy().tobytes().hex() for p in net.get_parameters())
files = sorted(os.listdir(os.environ["ONCE"] + f"_{rank}"))
import hashlib
told = (first.seen, second.seen, second.last.tobytes(), after_first, bits, files)
print("state", hashlib.sha256(repr(told).encode()).hexdigest(), "last", len(second.seen))
"""


@pytest.mark.parametrize("step", ["1", "6", "15"])
def test_fit_its_callbacks_metrics_and_files_go_on(tmp_path, step):
    (tmp_path / "whole").mkdir()
    (tmp_path / "broken").mkdir()
    whole, _ = run(tmp_path / "whole", FIT, "nowhere")
    ends, outputs = run(tmp_path / "broken", FIT, step)
    assert ends == whole
    assert all("Forgetful has attributes but no state_dict" in output for output in outputs)
    assert all(output.count("Forgetful") == 1 for output in outputs)


def data():
    rows = numpy.arange(24, dtype=numpy.float32).reshape(12, 2) / 24
    return ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"]).batch(4)


def made_loop(dataset, **options):
    net = nn.Dense(2, 1)
    return muster.recoverable(net, nn.SGD(net.trainable_params(), 0.1), dataset, **options)


def test_alone_it_is_the_two_loops():
    muster.set_seed(3)
    wanted = data()
    by_hand = [(e, i, item[0].asnumpy().tobytes()) for e in range(3) for i, item in enumerate(wanted)]
    given = data()
    made = [(e, i, x.asnumpy().tobytes()) for e, i, (x, _) in made_loop(given, epochs=3)]
    assert made == by_hand
    assert [x.asnumpy().tobytes() for x, _ in given] == [x.asnumpy().tobytes() for x, _ in wanted]


def test_stop_makes_the_step_the_last():
    steps = made_loop(data(), epochs=9)
    seen = 0
    for epoch, _step, _item in steps:
        seen += 1
        if epoch == 1:
            steps.stop()
    assert seen == 4


def test_mistakes_are_errors():
    with pytest.raises(ValueError, match=r"is 0.*save_steps 100.*both.*least 1"):
        next(made_loop(data(), epochs=0))


OTHER_NAMES = """
import numpy, mindspore, muster
import mindspore.dataset as ds
from mindspore import nn
rows = numpy.ones((4, 2), numpy.float32)
data_set = ds.NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"]).batch(2)
net = nn.Dense(2, 1)
optimizer = nn.SGD(net.trainable_params(), 0.1)
for epoch, step, (data, label) in muster.recoverable(net, optimizer, data_set, epochs=2):
    print(epoch, step, data.shape, label.shape)
"""


def test_it_takes_what_has_the_other_names():
    code, output, _ = run_alone(OTHER_NAMES)
    assert code == 0, output
    assert output.splitlines() == [f"{epoch} {step} (2, 2) (2, 1)" for epoch in (0, 1) for step in (0, 1)]
