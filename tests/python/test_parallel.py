"""Workers that share the state of optimizers (Zero) or operators (a mesh), and cells that are computed again:
the numbers of data parallel and of one process, with less memory."""

import itertools
import random
import re
import subprocess

import pytest
from job import Job, clean_environment, run_alone
from places import BUILD, SEARCH_PATH

SETUP = """
import hashlib
import numpy as np
import muster
from muster import Tensor, nn, ops, parallel, train
from muster.dataset import GeneratorDataset

muster.init()
muster.set_seed(7)
rank, workers = muster.get_rank(), muster.get_group_size()

def rows(batch=8, count=32, sharded=True, features=12):
    numbers = np.random.RandomState(0)
    data = [(numbers.randn(features).astype(np.float32), np.int32(numbers.randint(4))) for _ in range(count)]
    shards = dict(num_shards=workers, shard_id=rank) if sharded else {}
    dataset = GeneratorDataset(data, ["x", "y"], shuffle=False, **shards)
    return dataset.batch(batch // workers if sharded else batch)

class Losses(train.Callback):
    def on_train_step_end(self, run):
        print("loss", repr(float(np.asarray(run.net_outputs.asnumpy()))))

def show(cells):
    for cell in cells:
        for name, value in gathered(cell).items():
            print("value", name, hashlib.sha256(value.asnumpy().tobytes()).hexdigest())

def gathered(cell):
    return train.Model(cell).gather_parameters()
"""

ZERO = """
muster.set_auto_parallel_context(
    parallel_mode="data_parallel", gradients_mean=True, zero=parallel.Zero(LEVEL, threshold_bytes=64)
)
net = nn.SequentialCell(nn.Dense(12, 16), nn.ReLU(), nn.Dense(16, 10), nn.Tanh(), nn.Dense(10, 4))
optimizer = OPTIMIZER
model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
model.train(2, rows(), Losses())
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
show([net, optimizer])
"""

OPTIMIZERS = {
    "Adam": "nn.Adam(net.trainable_params(), 0.01)",
    "Momentum": "nn.Momentum(net.trainable_params(), 0.05, 0.9, weight_decay=0.01)",
    "SGD": "nn.SGD(net.trainable_params(), 0.05, momentum=0.9)",
}


def outputs(code, workers, **variables):
    with Job(SETUP + code, workers, **variables) as job:
        codes = [process.wait(120) for process in job.everybody()]
        texts = [worker.output() for worker in job.workers]
        assert codes == [0] * (workers + 1), texts[0]
        return texts


def losses(text):
    return [float(loss) for loss in re.findall(r"loss (\S+)", text)]


def values(text):
    return re.findall(r"value (\S+) (\w+)", text)


def held(text):
    return tuple(map(int, re.search(r"held (\d+) (\d+)", text).groups()))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_level_of_zero_has_the_bits_of_data_parallel_and_holds_less(name):
    texts = {}
    for level in range(4):
        code = ZERO.replace("LEVEL", str(level)).replace("OPTIMIZER", OPTIMIZERS[name])
        texts[level] = outputs(code, 2)
    for level in range(4):
        for text in texts[level]:
            assert values(text) == values(texts[0][0])
        assert [losses(text) for text in texts[level]] == [losses(text) for text in texts[0]]
    net_bytes, state_bytes = held(texts[0][0])
    for level in (1, 2, 3):
        net, state = held(texts[level][0])
        assert state < 0.6 * state_bytes  # of two workers, and some small ones whole
        assert net == net_bytes if level < 3 else net < 0.6 * net_bytes


def test_a_divided_parameter_says_so_when_it_is_read_and_a_formula_of_whole_parameters_is_refused():
    code = ZERO.replace("LEVEL", "1").replace("OPTIMIZER", OPTIMIZERS["Adam"])
    code += """
try:
    print(optimizer.get_parameters()[2].asnumpy())
except ValueError as error:
    print("divided:", error)
lamb = nn.Lamb(net.trainable_params(), 0.01)
try:
    train.Model(net, nn.CrossEntropyLoss(), lamb).train(1, rows())
except NotImplementedError as error:
    print("refused:", error)
"""
    text = outputs(code, 2)[1]
    assert re.search(
        r"divided: '.*' is divided over 2 workers, of which each holds .* gather_parameters", text
    )
    assert re.search(r"refused: Lamb cannot share its state", text)


LOOP = """
muster.set_auto_parallel_context(
    parallel_mode="data_parallel", gradients_mean=True, zero=parallel.Zero(LEVEL, threshold_bytes=64)
)
net = nn.SequentialCell(nn.Dense(12, 16), nn.ReLU(), nn.Dense(16, 4))
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), 0.01)
both = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
reducer = nn.DistributedGradReducer(optimizer.parameters)
for x, y in rows():
    loss, gradients = both(x, y)
    optimizer(reducer(gradients))
    print("loss", repr(float(loss.asnumpy())))
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
show([net, optimizer])
"""


def test_a_loop_by_hand_shares_the_state_too():
    plain = outputs(LOOP.replace("LEVEL", "0"), 2)
    shared = outputs(LOOP.replace("LEVEL", "1"), 2)
    assert values(shared[0]) == values(plain[0]) == values(shared[1])
    assert held(shared[0])[1] < 0.6 * held(plain[0])[1]


CHECKPOINT = """
muster.set_auto_parallel_context(
    parallel_mode="data_parallel", gradients_mean=True, zero=parallel.Zero(LEVEL, threshold_bytes=64)
)
net = nn.SequentialCell(nn.Dense(12, 16), nn.ReLU(), nn.Dense(16, 4))
optimizer = nn.Adam(net.trainable_params(), 0.01)
model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
if LOADED:
    muster.load_param_into_net(model.train_network, muster.load_checkpoint(LOADED))
model.train(1, rows(), Losses())
saved = train.Model(model.train_network).gather_parameters()
if SAVED and rank == 0:
    muster.save_checkpoint(saved, SAVED)
show([net, optimizer])
"""


def test_a_checkpoint_of_shared_state_goes_on_without_sharing_and_the_other_way(tmp_path):
    def trained(level, loaded, saved):
        code = CHECKPOINT.replace("LEVEL", str(level))
        code = code.replace("LOADED", repr(str(loaded or ""))).replace("SAVED", repr(str(saved or "")))
        return values(outputs(code, 2)[0])

    trained(0, None, tmp_path / "whole.ckpt")
    trained(3, None, tmp_path / "shared.ckpt")
    wanted = trained(0, tmp_path / "whole.ckpt", None)
    assert trained(0, tmp_path / "shared.ckpt", None) == wanted
    assert trained(3, tmp_path / "whole.ckpt", None) == wanted


# ---- Recomputing -------------------------------------------------------------------------------------------

RECOMPUTE = """
class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(64, 256), nn.Dense(256, 64)
        self.gelu, self.dropout = nn.GELU(), nn.Dropout(p=0.1)

    def construct(self, x):
        return x + self.dropout(self.second(self.gelu(self.first(x))))

class Net(nn.Cell):
    def __init__(self, recomputes):
        super().__init__()
        self.blocks = nn.CellList([Block() for _ in range(6)])
        self.head = nn.Dense(64, 4)
        if recomputes:
            for block in self.blocks:
                block.recompute()

    def construct(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)

for recomputes in (False, True):
    muster.set_seed(7)
    net = Net(recomputes)
    model = train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01))
    data = lambda: rows(batch=128, count=512, sharded=False, features=64)
    print("arena", recomputes, model.explain(data()).arena_bytes)
    model.train(1, data(), Losses())
    print("run", recomputes)
    show([net])
"""


KILLED = """
import os, pathlib, signal
class Dies(train.Callback):
    def on_train_step_end(self, run):
        flag = pathlib.Path("died")
        if rank == DIES and run.cur_step_num == 5 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    def state_dict(self):
        return {}
    def load_state_dict(self, state):
        pass
"""


# A step that the script writes itself.
STEP = """
class Step(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net, self.loss_fn, self.optimizer = net, nn.CrossEntropyLoss(), optimizer
        self.both = muster.value_and_grad(self.loss, None, optimizer.parameters)
        self.reducer = nn.DistributedGradReducer(optimizer.parameters)

    def loss(self, x, y):
        return self.loss_fn(self.net(x), y)

    def construct(self, x, y):
        loss, gradients = self.both(x, y)
        self.optimizer(ops.clip_by_global_norm(self.reducer(gradients), 0.3))
        return loss

model = train.Model(Step())
"""


def ends_of_a_job(folder, level, dies, step=None):
    folder.mkdir()
    model = "model = train.Model(net, nn.CrossEntropyLoss(), optimizer)\n"
    assert model in ZERO
    script = (
        SETUP
        + KILLED
        + ZERO.replace(model, step or model)
        .replace("LEVEL", str(level))
        .replace("OPTIMIZER", OPTIMIZERS["Adam"])
    )
    script = script.replace("Losses())", "[Dies()])").replace("DIES", str(dies))
    return ends_of_a_script(folder, script, 2, dies)


def ends_of_a_script(folder, script, workers, dies):
    (folder / "train.py").write_text(script)
    environment = {
        **clean_environment(),
        "PATH": SEARCH_PATH,
        "MS_ENABLE_RECOVERY": "1",
        "MS_RECOVERY_PATH": str(folder / "points"),
    }
    command = [BUILD / "apps/muster/muster", "run", "-n", str(workers), "--max-restarts", "2", "train.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "died").exists() == (dies is not None)
    return sorted(re.findall(r"(value .*)", done.stdout))


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_killed_worker_comes_back_to_its_pieces(tmp_path, level):
    unbroken = ends_of_a_job(tmp_path / "unbroken", level, None)
    assert len(unbroken) > 12
    for dies in (0, 1):
        assert ends_of_a_job(tmp_path / str(dies), level, dies) == unbroken


STAGES = """
parallel.mesh(**MESH_AXES)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Dense(12, 16), nn.Dense(16, 8), nn.Dense(8, 4)
        self.dropout = nn.Dropout(p=DROPS)
        PLACES
        parallel.shard(self.fc1.weight, FIRST)
        parallel.shard(self.fc2.weight, (None, "model"))

    def construct(self, x):
        x = parallel.shard(x, SAMPLES)
        return self.head(ops.tanh(self.fc2(self.dropout(ops.gelu(self.fc1(x))))))

net = Net()
optimizer = nn.Adam(net.trainable_params(), 0.01)
model = train.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"acc"})
"""
FIT = """
model.train(2, rows(sharded=False), Losses(), micro_batches=PARTS)
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
print("accuracy", model.eval(rows(sharded=False))["acc"])
for name, value in model.gather_parameters().items():
    print("sum", name, repr(float(np.abs(value.asnumpy().astype(np.float64)).sum())))
"""
PLACES = 'self.fc1.place("MS_WORKER", 0); self.fc2.place("MS_WORKER", 1)'


def stages_script(
    code=FIT, axes=None, places=PLACES, first=("model", None), samples=("data", None), parts=1, drops=0.3
):
    text = STAGES + code
    values = {"MESH_AXES": axes or {"data": 2, "model": 2, "stages": 2}, "FIRST": first, "SAMPLES": samples}
    for name, value in {**values, "PARTS": parts, "DROPS": drops}.items():
        text = text.replace(name, repr(value))
    return text.replace("PLACES", places)


END = """
model.train(4, rows(sharded=False), [Dies()])
show([net])
"""
LOSES_ITS_DISK = """flag.touch()
            import shutil
            for folder in pathlib.Path("points").glob(f"job-*/worker_{rank}"):
                shutil.rmtree(folder)
                flag.write_text(folder.name)
"""


def ends_of_a_mesh(folder, axes, workers, dies, loses_its_disk=False):
    folder.mkdir()
    places = PLACES if "stages" in axes else "pass"
    script = SETUP + KILLED.replace("DIES", str(dies)) + stages_script(END, axes, places)
    if loses_its_disk:
        script = script.replace("flag.touch()\n", LOSES_ITS_DISK)
    ends = ends_of_a_script(folder, script, workers, dies)
    assert not loses_its_disk or (folder / "died").read_text() == f"worker_{dies}"
    return ends


@pytest.mark.parametrize(
    ("axes", "workers"),
    [
        ({"data": 1, "model": 2}, 2),
        ({"data": 2, "model": 2}, 4),
        ({"data": 1, "model": 2, "stages": 2}, 4),
        ({"data": 2, "model": 2, "stages": 2}, 8),
    ],
    ids=["one axis", "two axes", "stages", "all three"],
)
def test_a_killed_worker_of_a_mesh_comes_back_to_its_pieces(tmp_path, axes, workers):
    unbroken = ends_of_a_mesh(tmp_path / "unbroken", axes, workers, None)
    assert len(unbroken) == 6 * workers
    assert ends_of_a_mesh(tmp_path / "first", axes, workers, 0) == unbroken
    assert ends_of_a_mesh(tmp_path / "last", axes, workers, workers - 1, loses_its_disk=True) == unbroken


BY_HAND = """
import os, pathlib, signal
REDUCER
loss_fn = nn.CrossEntropyLoss()
both = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
for epoch, step, (x, y) in muster.recoverable(net, optimizer, rows(sharded=SHARDED), 3, save_steps=2):
    optimizer(reducer(both(x, y)[1]))
    flag = pathlib.Path("died")
    if rank == DIES and (epoch, step) == (1, 1) and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
show([net])
"""


def ends_by_hand(folder, workers, dies, setup, sharded, reducer):
    folder.mkdir()
    loop = BY_HAND.replace("SHARDED", str(sharded)).replace("DIES", str(dies)).replace("REDUCER", reducer)
    return ends_of_a_script(folder, SETUP + setup + loop, workers, dies)


def test_a_killed_worker_comes_back_to_its_pieces_in_a_loop_by_hand(tmp_path):
    mesh = (
        4,
        stages_script("", {"data": 2, "model": 2}, "pass"),
        False,
        "reducer = lambda gradients: gradients",
    )
    zero = ZERO.partition("model = ")[0].replace("LEVEL", "3").replace("OPTIMIZER", OPTIMIZERS["Adam"])
    shared = (2, zero, True, "reducer = nn.DistributedGradReducer(optimizer.parameters)")
    for name, (workers, *setting) in {"mesh": mesh, "zero": shared}.items():
        unbroken = ends_by_hand(tmp_path / f"{name}-unbroken", workers, None, *setting)
        assert len(unbroken) == 6 * workers
        for dies in (0, workers - 1):
            assert ends_by_hand(tmp_path / f"{name}-{dies}", workers, dies, *setting) == unbroken


def test_a_killed_worker_comes_back_to_its_pieces_in_a_step_of_the_scripts_own(tmp_path):
    unbroken = ends_of_a_job(tmp_path / "unbroken", 2, None, STEP)
    assert len(unbroken) > 12
    assert ends_of_a_job(tmp_path / "killed", 2, 1, STEP) == unbroken


def test_cells_that_are_computed_again_have_the_same_bits_and_need_less_memory():
    code, text, _ = run_alone(SETUP + RECOMPUTE)
    assert code == 0, text
    kept, again = (text.split("run True")[0], text.split("run False")[1])
    plain, recomputed = kept.split("run False")[0], again.split("run True")[0]
    assert losses(plain) == losses(recomputed)
    assert values(kept.split("run False")[1].split("arena")[0]) == values(text.split("run True")[1])
    arenas = [int(bytes_) for bytes_ in re.findall(r"arena \w+ (\d+)", text)]
    assert arenas[1] < 0.7 * arenas[0]


FUNCTION = """
weight = muster.Parameter(Tensor(np.random.RandomState(1).randn(12, 12).astype(np.float32)), "weight")
x = Tensor(np.random.RandomState(2).randn(4, 12).astype(np.float32))
inner = lambda x: ops.tanh(ops.matmul(ops.gelu(ops.matmul(x, weight)), weight))
again = lambda x: muster.recompute(inner, x)
for call in (inner, again, lambda x: muster.recompute(again, x)):
    both = muster.value_and_grad(lambda x: ops.reduce_sum(call(x)), 0, [weight])
    loss, gradients = both(x)
    bits = b"".join(each.asnumpy().tobytes() for each in (loss, gradients[0], *gradients[1]))
    print("bits", hashlib.sha256(bits).hexdigest())
"""


def test_functions_are_computed_again_with_the_same_gradients():
    code, text, _ = run_alone(SETUP + FUNCTION)
    assert code == 0, text
    bits = re.findall(r"bits (\w+)", text)
    assert len(bits) == 3
    assert len(set(bits)) == 1


# ---- A mesh ------------------------------------------------------------------------------------------------

MESH = """
parallel.mesh(**MESH_AXES)
first, second, samples, hidden = LAYOUTS

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Dense(12, 16), nn.Dense(16, 8), nn.Dense(8, 4)
        self.norm, self.softmax = nn.LayerNorm((16,)), nn.Softmax()
        if first:
            parallel.shard(self.fc1.weight, first)
        if second:
            parallel.shard(self.fc2.weight, second)

    def construct(self, x):
        x = parallel.shard(x, samples) if samples else x
        x = ops.gelu(self.fc1(x))
        x = parallel.shard(x, hidden) if hidden else x
        x = ops.mul(self.norm(x), self.softmax(x))
        return self.head(ops.tanh(self.fc2(x)))

net = Net()
optimizer = nn.Adam(net.trainable_params(), 0.01)
model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
model.train(2, rows(sharded=False), Losses())
print("held", parallel.held_bytes(net), parallel.held_bytes(optimizer))
for name, value in model.gather_parameters().items():
    print("sum", name, repr(float(np.abs(value.asnumpy().astype(np.float64)).sum())))
"""

WEIGHTS = [None, (None, None), ("model", None), (None, "model"), ("data", "model"), (("data", "model"), None)]
SAMPLES = [None, ("data", None), (("data", "model"), None), (None, "model")]
HIDDEN = [None, ("data", "model"), (None, "model"), ("model", "data")]


def sums(text):
    return {name: float(value) for name, value in re.findall(r"sum (\S+) (\S+)", text)}


def mesh_script(axes, layouts):
    return MESH.replace("MESH_AXES", repr(axes)).replace("LAYOUTS", repr(layouts))


@pytest.fixture(name="alone", scope="module")
def alone_fixture():
    code, text, _ = run_alone(SETUP + mesh_script({"data": 1, "model": 1}, (None,) * 4))
    assert code == 0, text
    return text


def drawn(count, seed):
    print("seed", seed)
    every = list(itertools.product(WEIGHTS, WEIGHTS, SAMPLES, HIDDEN))
    return random.Random(seed).sample(every, count)


@pytest.mark.parametrize("layouts", [("model", None), *drawn(5, 26)], ids=str)
def test_drawn_layouts_of_a_mesh_train_as_one_process_does(alone, layouts):
    layouts = (layouts, (None, "model"), ("data", None), None) if layouts[0] == "model" else layouts
    texts = outputs(mesh_script({"data": 2, "model": 2}, layouts), 4)
    for text in texts:
        assert losses(text) == pytest.approx(losses(alone), rel=1e-5)
        assert sums(text) == pytest.approx(sums(alone), rel=1e-5)
    if any(axis for axis in layouts[0] or ()):
        assert held(texts[0])[0] < held(alone)[0]
        assert held(texts[0])[1] < held(alone)[1]


ZERO_OVER_MESH = "muster.set_auto_parallel_context(zero=parallel.Zero(2, threshold_bytes=0))\n"


def test_zero_cuts_the_state_of_a_mesh_further(alone):
    script = mesh_script({"data": 2, "model": 2}, (("model", None), None, ("data", None), None))
    plain, shared = outputs(script, 4), outputs(ZERO_OVER_MESH + script, 4)
    for text in shared:
        assert losses(text) == pytest.approx(losses(alone), rel=1e-5)
        assert sums(text) == pytest.approx(sums(alone), rel=1e-5)
        assert held(text)[0] == held(plain[0])[0]
        assert held(text)[1] < 0.6 * held(plain[0])[1]


ERRORS = """
def told(what, call):
    try:
        call()
    except (TypeError, ValueError) as error:
        print(what, type(error).__name__, error)

x = Tensor(np.zeros((6, 8), np.float32))
told("none:", lambda: parallel.shard(x, ("data", None)))
told("size:", lambda: parallel.mesh(data=3))
parallel.mesh(data=2)
told("axis:", lambda: parallel.shard(x, ("model", None)))
told("rank:", lambda: parallel.shard(x, ("data",)))
told("twice:", lambda: parallel.shard(x, ("data", "data")))
told("kind:", lambda: parallel.shard(x, "data"))
told("cut:", lambda: parallel.shard(Tensor(np.zeros((3, 8), np.float32)), ("data", None)))
told("parameter:", lambda: parallel.shard(nn.Dense(8, 3).weight, ("data", None)))
"""


def test_what_cannot_be_divided_is_an_error_where_it_is_said():
    text = outputs(ERRORS, 2)[0]
    assert re.search(r"none: ValueError .*there is no mesh", text)
    assert re.search(r"size: ValueError .*data=3 has 3 workers, this job has 2", text)
    assert re.search(r"axis: ValueError .*no axis 'model', it has 'data'", text)
    assert re.search(r"rank: ValueError .*1 dimensions was given for \(6, 8\), which has 2", text)
    assert re.search(r"twice: ValueError .*axis 'data' cuts two dimensions", text)
    assert re.search(r"kind: TypeError", text)
    assert re.search(r"cut: ValueError .*dimension 0 of \(3, 8\) cannot be cut into 2 .* into 1, 3", text)
    assert re.search(r"parameter: ValueError .*dimension 0 of \(3, 8\)", text)


@pytest.mark.parametrize("transport", ["auto", "tcp"])
def test_a_network_placed_on_two_meshes_trains_as_one_process_does(transport):
    code, alone, _ = run_alone(SETUP + stages_script(axes={"data": 1, "model": 1}))
    assert code == 0, alone
    texts = outputs(stages_script(), 8, MUSTER_TRANSPORT=transport)
    for text in texts:
        assert losses(text) == pytest.approx(losses(alone), rel=1e-5)
        assert sums(text) == pytest.approx(sums(alone), rel=1e-5)
        assert re.findall("accuracy .*", text) == re.findall("accuracy .*", alone)
    uncut_bytes = 4 * (
        16 + 8 + 8 * 4 + 4
    )  # the biases and the head, which two of the first four workers have
    assert sum(held(text)[0] for text in texts[:4]) == held(alone)[0] + uncut_bytes


def test_parts_of_a_batch_go_through_the_stages_of_a_mesh_one_after_the_other():
    code, alone, _ = run_alone(SETUP + stages_script(axes={"data": 1, "model": 1}, drops=0.0))
    assert code == 0, alone
    axes = {"data": 2, "model": 1, "stages": 2}
    for text in outputs(stages_script(axes=axes, parts=2, drops=0.0), 4):
        assert losses(text) == pytest.approx(losses(alone), rel=1e-5)
        assert sums(text) == pytest.approx(sums(alone), rel=1e-5)


REFUSED = """
try:
    model.train(1, rows(sharded=False))
except ValueError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"places": "pass"}, "over a mesh of 2 stages, and nothing of it is placed"),
        ({"places": PLACES.replace("1)", "0)")}, "nothing of the network is on stage 1"),
        ({"samples": ("stages", None)}, "the mesh has no axis 'stages', it has 'data', 'model'"),
        ({"first": ("model", None), "places": PLACES + "; muster.set_seed(7 + rank)"}, "seed is"),
    ],
    ids=["nothing is placed", "an idle stage", "an axis of stages", "other seeds"],
)
def test_a_network_that_does_not_fit_its_stages_is_refused(setting, reason):
    axes = {"data": 2, "model": 1, "stages": 2}
    for text in outputs(stages_script(REFUSED, axes, **setting), 4):
        assert re.search(rf"refused: .*{reason}", text, re.S)


def test_a_stage_that_the_mesh_has_not_is_refused_where_a_cell_is_placed():
    code = """
parallel.mesh(data=2, stages=2)
try:
    nn.Dense(2, 2).place("MS_WORKER", 2)
except ValueError as error:
    print("refused:", error)
"""
    for text in outputs(code, 4):
        assert re.search("refused: .*no stage 2 on this job's mesh, which has 2", text)


def test_workers_that_divide_a_parameter_otherwise_are_named_before_the_first_step():
    code = stages_script(REFUSED, {"data": 1, "model": 2}, places="pass", first=("model", None))
    other = code.replace("('model', None)", "('model', None) if rank == 0 else (None, 'model')")
    assert other != code
    for text in outputs(other, 2):
        assert re.search(r"refused: rank 1 has divided parameter '.*fc1.weight' otherwise than rank 0", text)


def test_workers_of_a_mesh_with_other_seeds_are_named_before_the_first_step():
    code = "muster.set_seed(7 + rank)\n" + stages_script(REFUSED, {"data": 1, "model": 2}, places="pass")
    for text in outputs(code, 2):
        assert re.search("refused: .*seed is '7' at rank 0, '8' at rank 1", text)
