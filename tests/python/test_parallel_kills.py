"""Killed workers and schedulers of jobs whose workers share a training, in every kind of layout: the bits of
an unbroken run. Data parallel and placed networks are in test_recovery, Zero in test_parallel, shard in
test_mesh.
"""

import re

import pytest
from parallel_jobs import KILLED, SETUP, ends_by_hand, ends_of_a_script

NET = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Dense(12, 16), nn.Dense(16, 8), nn.Dense(8, 4)
        self.dropout = nn.Dropout(p=DROPS)

    def construct(self, x):
        return self.head(ops.tanh(self.fc2(self.dropout(ops.gelu(self.fc1(x))))))

net = Net()
"""
TRAIN = """
optimizer = nn.Adam(net.trainable_params(), 0.01)
model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
callbacks = [Dies()]
if POINTS:  # each checkpoint is a recovery point, too: pieces, where the start is whole
    config = train.CheckpointConfig(save_checkpoint_steps=2)
    callbacks.insert(0, train.ModelCheckpoint("net", f"saved/{rank}", config))
model.train(4, rows(sharded=SHARDED), callbacks, micro_batches=PARTS)
show(SHOWN)
"""
PLACED = 'net.fc1.place("MS_WORKER", 0); net.fc2.place("MS_WORKER", 1)\n'
SHARDED = """
parallel.shard(net.fc1.weight, ("model", None))
parallel.shard(net.fc2.weight, (None, "model"))
"""
ZERO_OF_DATA = """
muster.set_auto_parallel_context(
    parallel_mode="data_parallel", gradients_mean=True, zero=parallel.Zero(3, threshold_bytes=0)
)
"""
ZERO_OF_MESH = "muster.set_auto_parallel_context(zero=parallel.Zero(2, threshold_bytes=0))\n"


# As many cells as a network can be cut into.
CHAIN = """
net = nn.SequentialCell(nn.Dense(12, 16), nn.GELU(), nn.Dense(16, 8), nn.Tanh(), nn.Dense(8, 4))
parallel.place(net, Tensor(np.zeros((8, 12), np.float32)))
"""


def training(before="", behind="", parts=1, drops=0.3, sharded=False, net=NET):
    text = before + net + behind + TRAIN
    is_placed = "place(" in text  # then no worker has all of the optimizer
    text = text.replace("SHOWN", "[net]" if is_placed else "[net, optimizer]")
    for name, value in {"PARTS": parts, "DROPS": drops, "SHARDED": sharded}.items():
        text = text.replace(name, repr(value))
    return text


# Workers, and what they do.
LAYOUTS = {
    "a plan of samples, Zero 3": (2, training("parallel.plan(2, 1, parallel.Zero(3, 0))\n")),
    "a plan of samples, Zero 1": (2, training("parallel.plan(2, 1, parallel.Zero(1, 0))\n")),
    "a plan of weights": (2, training("parallel.plan(1, 2)\n")),
    "a plan of both, Zero 3": (4, training("parallel.plan(2, 2, parallel.Zero(3, 0))\n")),
    "a mesh with Zero": (4, training("parallel.mesh(data=2, model=2)\n" + ZERO_OF_MESH, SHARDED)),
    "stages of a mesh in parts": (
        4,
        training("parallel.mesh(model=2, stages=2)\n", PLACED + SHARDED, 2, 0.0),
    ),
    "stages with Zero": (4, training(ZERO_OF_DATA, PLACED, sharded=False)),
    "chosen stages": (2, training(net=CHAIN)),
    "a batch in parts": (2, training(ZERO_OF_DATA, "", 2, 0.0, sharded=True)),
}


def ends_of(folder, layout, dies, points):
    folder.mkdir()
    workers, script = LAYOUTS[layout]
    script = SETUP + KILLED.replace("DIES", repr(dies)) + script.replace("POINTS", repr(points))
    return ends_of_a_script(folder, script, workers, dies)


@pytest.mark.parametrize("points", [False, True], ids=["from the start", "from pieces"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_job_ends_with_the_same_bits_whoever_is_killed(tmp_path, layout, points):
    workers, _ = LAYOUTS[layout]
    unbroken = ends_of(tmp_path / "unbroken", layout, None, points)
    assert len(unbroken) >= 6 * workers
    for dies in ("scheduler", workers - 1):
        assert ends_of(tmp_path / str(dies), layout, dies, points) == unbroken, dies


def test_the_first_worker_which_decides_for_all_may_be_killed(tmp_path):
    unbroken, killed = (
        ends_of(tmp_path / str(dies), "a plan of both, Zero 3", dies, True) for dies in (None, 0)
    )
    assert killed == unbroken


def test_a_worker_is_killed_in_a_loop_by_hand_under_a_plan(tmp_path):
    setup = "parallel.plan(2, 2, parallel.Zero(3, 0))\n" + NET.replace("DROPS", "0.3")
    setup += "optimizer = nn.Adam(net.trainable_params(), 0.01)\n"
    setting = (4, setup, False, "reducer = lambda gradients: gradients")
    unbroken = ends_by_hand(tmp_path / "unbroken", None, *setting)
    assert len(unbroken) == 24
    for dies in (0, 3):
        assert ends_by_hand(tmp_path / str(dies), dies, *setting) == unbroken


# A plan is chosen by measured times: another one where all choose anew, with the numbers of one process.
SUMS = """
for name, value in gathered(net).items():
    print("value", name, repr(float(np.abs(value.asnumpy()).astype(np.float64).sum())))
"""


def sums(ends):
    assert ends
    return {name: float(value) for name, value in (re.split(" ", end)[1:] for end in ends)}


@pytest.mark.parametrize("points", [False, True], ids=["from the start", "from pieces"])
@pytest.mark.parametrize("dies", [0, 1, "scheduler"])
def test_who_comes_back_to_a_searched_plan_has_that_of_the_others(tmp_path, dies, points):
    found = []
    for each in (None, dies):
        script = training("parallel.plan()\n").partition("show(")[0] + SUMS
        script = SETUP + KILLED.replace("DIES", repr(each)) + script.replace("POINTS", repr(points))
        folder = tmp_path / str(each)
        folder.mkdir()
        found.append(sums(ends_of_a_script(folder, script, 2, each)))
    assert found[1] == pytest.approx(found[0], rel=1e-5)


MINDSPORE = """
import hashlib, os, pathlib, signal
import numpy as np
import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops, train
from mindspore import dataset as ds
from mindspore.communication import get_rank, init

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(3)
rank = get_rank()
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", **SETTINGS)

class Part(nn.Cell):
    def __init__(self, rows, columns, strategy):
        super().__init__()
        weight = np.random.RandomState(rows).randn(rows, columns) * 0.1
        self.weight = Parameter(Tensor(weight, ms.float32), name="weight")
        self.product = ops.MatMul().shard(strategy)

    def construct(self, x):
        return self.product(x, self.weight)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = Part(12, 16, FIRST), Part(16, 4, SECOND)
        if "pipeline_stages" in SETTINGS:
            self.first.pipeline_stage, self.second.pipeline_stage = 0, 1

    def construct(self, x):
        return self.second(ops.tanh(self.first(x)))

DIES_HERE
net = Net()
model = train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01))
numbers = np.random.RandomState(0)
data = [(numbers.randn(12).astype(np.float32), np.int32(numbers.randint(4))) for _ in range(32)]
rows = ds.GeneratorDataset(data, ["x", "y"], shuffle=False).batch(8)
config = train.CheckpointConfig(save_checkpoint_steps=2)
model.train(4, rows, [train.ModelCheckpoint("net", f"saved/{rank}", config), Dies()], dataset_sink_mode=False)
for name, value in train.Model(net).gather_parameters().items():
    print("value", name, hashlib.sha256(value.asnumpy().tobytes()).hexdigest())
"""
SQUARE = {"FIRST": "((2, 1), (1, 2))", "SECOND": "((2, 2), (2, 1))"}
ROWS = {"FIRST": "((2, 1), (1, 1))", "SECOND": "((1, 2), (2, 1))"}
STRATEGIES = {
    "strategies": {"SETTINGS": "{}", **SQUARE},
    "strategies and an optimizer in pieces": {
        "SETTINGS": "{'enable_parallel_optimizer': True, 'parallel_optimizer_config': "
        "{'parallel_optimizer_threshold': 0}}",
        **SQUARE,
    },
    "strategies in stages": {"SETTINGS": "{'pipeline_stages': 2}", **ROWS},
}


def ends_of_strategies(folder, name, dies):
    folder.mkdir()
    script = MINDSPORE.replace("DIES_HERE", KILLED.replace("DIES", repr(dies)))
    for word, text in STRATEGIES[name].items():
        script = script.replace(word, text)
    return ends_of_a_script(folder, script, 4, dies)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_job_of_mindspores_strategies_ends_with_the_same_bits_whoever_is_killed(tmp_path, name):
    unbroken = ends_of_strategies(tmp_path / "unbroken", name, None)
    assert len(unbroken) == 8
    for dies in ("scheduler", 3):
        assert ends_of_strategies(tmp_path / str(dies), name, dies) == unbroken, dies
