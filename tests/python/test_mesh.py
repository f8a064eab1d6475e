"""Workers that share operators over a mesh, and stages of them: the numbers of one process, less memory."""

import itertools
import random
import re

import pytest
from job import Job, run_alone
from parallel_jobs import KILLED, SETUP, ends_by_hand, ends_of_a_script, held, losses, outputs

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


# A norm and rotary positions in parts, which become one op each, and attention.
POSITIONS = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.wide, self.head = nn.Dense(12, 32), nn.Dense(32, 4)
        self.q, self.k, self.v, self.out = (nn.Dense(8, 8, has_bias=False) for _ in range(4))
        self.gamma = muster.Parameter(np.linspace(0.5, 1.5, 8).astype(np.float32))
        angles = np.tile(np.outer(np.arange(4), [1, 0.1]), 2).astype(np.float32)
        self.cos, self.sin = muster.Tensor(np.cos(angles)), muster.Tensor(np.sin(angles))
        if first:
            for cell in (self.q, self.k, self.v):
                parallel.shard(cell.weight, first)
        if second:
            parallel.shard(self.out.weight, second)

    def heads(self, x):
        return ops.transpose(ops.reshape(x, (x.shape[0], 4, 2, 4)), (0, 2, 1, 3))

    def turned(self, x):
        return x * self.cos + ops.concat((-x[..., 2:], x[..., :2]), -1) * self.sin

    def construct(self, x):
        x = parallel.shard(x, samples) if samples else x
        x = ops.reshape(self.wide(x), (x.shape[0], 4, 8))
        x = parallel.shard(x, hidden) if hidden else x
        y = x * ops.rsqrt(ops.reduce_mean(x * x, -1, True) + 1e-6) * self.gamma
        q, k = (self.turned(self.heads(cell(y))) for cell in (self.q, self.k))
        v = self.heads(self.v(y))
        shares = ops.softmax(ops.batch_matmul(q, k, transpose_b=True) * 0.5, -1)
        y = ops.transpose(ops.batch_matmul(shares, v), (0, 2, 1, 3))
        x = x + self.out(ops.reshape(y, x.shape))
        return self.head(ops.reshape(x, (x.shape[0], 32)))
"""
POSITIONS_HIDDEN = [None, ("data", None, None), ("data", None, "model"), (None, "model", None)]


def positions_script(axes, layouts):
    before, _, behind = mesh_script(axes, layouts).partition("class Net")
    behind = behind[behind.index("\nnet = Net()") :]
    return before + POSITIONS + behind.replace("nn.Adam(", "nn.SGD(")  # Adam hides a factor of a gradient


@pytest.fixture(name="positions_alone", scope="module")
def positions_alone_fixture():
    code, text, _ = run_alone(SETUP + positions_script({"data": 1, "model": 1}, (None,) * 4))
    assert code == 0, text
    return text


@pytest.mark.parametrize("hidden", POSITIONS_HIDDEN, ids=str)
@pytest.mark.parametrize(
    "weights", [(None, None), ((None, "model"), ("model", None)), (("model", None), None)], ids=str
)
def test_norms_and_rotary_positions_over_a_mesh_train_as_one_process_does(positions_alone, weights, hidden):
    layouts = (*weights, ("data", None), hidden)
    for text in outputs(positions_script({"data": 2, "model": 2}, layouts), 4):
        assert losses(text) == pytest.approx(losses(positions_alone), rel=1e-5)
        assert sums(text) == pytest.approx(sums(positions_alone), rel=1e-5)


STATISTICS = """
parallel.mesh(model=workers)
net = nn.SequentialCell(nn.Dense(12, 16), nn.BatchNorm1d(16), nn.Dense(16, 4))
parallel.shard(net[1].moving_mean, ("model",))
parallel.shard(net[1].moving_variance, ("model",))
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(2, rows(sharded=False), Losses())
for name, value in model.gather_parameters().items():
    print("sum", name, repr(float(np.abs(value.asnumpy().astype(np.float64)).sum())))
"""


def test_moving_statistics_may_be_divided_where_nothing_else_is():
    code, alone, _ = run_alone(SETUP + STATISTICS)
    assert code == 0, alone
    for text in outputs(STATISTICS, 4):
        assert losses(text) == pytest.approx(losses(alone), rel=1e-5)
        assert sums(text) == pytest.approx(sums(alone), rel=1e-5)


ZERO_OVER_MESH = "muster.set_auto_parallel_context(zero=parallel.Zero(2, threshold_bytes=0))\n"


def test_zero_cuts_the_state_of_a_mesh_further(alone):
    script = mesh_script({"data": 2, "model": 2}, (("model", None), None, ("data", None), None))
    plain, shared = outputs(script, 4), outputs(ZERO_OVER_MESH + script, 4)
    for text in shared:
        assert losses(text) == pytest.approx(losses(alone), rel=1e-5)
        assert sums(text) == pytest.approx(sums(alone), rel=1e-5)
        assert held(text)[0] == held(plain[0])[0]
        assert held(text)[1] < 0.6 * held(plain[0])[1]


LAMB = "nn.Lamb(net.trainable_params(), 0.01)"


@pytest.mark.parametrize("zero", ["", ZERO_OVER_MESH], ids=["mesh", "zero"])
def test_a_formula_of_whole_parameters_keeps_pieces_of_what_it_updates(zero):
    def script(axes):
        layouts = (("model", "data"), (None, "model"), ("data", None), None)
        return mesh_script(axes, layouts).replace("nn.Adam(net.trainable_params(), 0.01)", LAMB)

    code, whole, _ = run_alone(SETUP + script({"data": 1, "model": 1}))
    assert code == 0, whole
    for text in outputs(zero + script({"data": 2, "model": 2}), 4):
        assert losses(text) == pytest.approx(losses(whole), rel=1e-5)
        assert sums(text) == pytest.approx(sums(whole), rel=1e-5)
        assert held(text)[0] < held(whole)[0]
        assert held(text)[1] < held(whole)[1]


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


# ---- Stages ----

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


OTHER_MESHES = """
OTHERS
net = nn.Dense(12, 4)
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
try:
    model.train(1, rows(sharded=False))
except ValueError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize(
    "others",
    [
        "parallel.mesh(a=2, b=2) if rank == 0 else parallel.mesh(a=4)",
        "parallel.plan(4, 1) if rank == 0 else parallel.plan(2, 2)",
        "parallel.mesh(a=4) if rank == 0 else "
        "muster.set_auto_parallel_context(parallel_mode='data_parallel')",
    ],
)
def test_workers_of_other_meshes_are_named_before_the_first_step(others):
    for text in outputs(OTHER_MESHES.replace("OTHERS", others), 4):
        assert "refused: the workers of this job differ: " in text
        assert "the mesh (parallel.mesh or parallel.plan) is" in text


SHARDS = """
parallel.mesh(data=2)
net = nn.Dense(12, 4)
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
try:
    model.train(1, rows(sharded=True))
except ValueError as error:
    print("refused", error)
"""


def test_workers_of_a_mesh_whose_rows_differ_are_told_before_the_first_step():
    for text in outputs(SHARDS, 2):
        assert re.search(
            r"refused .* leave num_shards and shard_id away.* is '0' at rank 0, '1' at rank 1", text
        )


LAST = """
if DIVIDED:
    parallel.mesh(data=2)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(12, 4)

    def construct(self, x):
        return self.fc(parallel.shard(x, ("data", None)) if DIVIDED else x)

net = Net()
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(2, rows(count=21, sharded=False), Losses())
print("predicted", repr(float(model.predict(Tensor(np.ones((1, 12), np.float32))).asnumpy().sum())))
"""


def predicted(text):
    return float(re.search(r"predicted (\S+)", text)[1])


def test_batches_that_a_mesh_does_not_divide_are_computed_whole_where_others_were_divided_before():
    alone = outputs(LAST.replace("DIVIDED", "False"), 1)[0]
    for text in outputs(LAST.replace("DIVIDED", "True"), 2):
        assert losses(text) == pytest.approx(losses(alone), rel=1e-5)
        assert predicted(text) == pytest.approx(predicted(alone), rel=1e-5)
        assert len(re.findall(r"warning: a tensor of \(5, 12\) cannot be divided", text)) == 1


OTHER_BATCHES = """
parallel.DIVIDED
net = nn.Dense(12, 4)
loss_fn, optimizer = nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1)
step = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
try:
    loss, gradients = step(muster.Tensor(np.ones((4, 12), np.float32) * GIVEN), muster.Tensor([0, 1, 2, 3]))
    print("trained")
except ValueError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("divided", ["mesh(data=2)", "plan(2, 1)", "plan()"])
def test_a_loop_by_hand_over_a_mesh_is_told_of_batches_that_differ(divided):
    code = OTHER_BATCHES.replace("DIVIDED", divided)
    for text in outputs(code.replace("GIVEN", "(1 + rank)"), 2):
        assert "refused: rank 1 gives the step other values in input 0 (float32 (4, 12) here)" in text
        assert "read the same rows on all of them" in text
    for text in outputs(code.replace("GIVEN", "1"), 2):
        assert "trained" in text


LATER_BATCHES = """
parallel.mesh(data=2)
net = nn.Dense(12, 4)
scales = [1.0] * 8 + [1.0 + rank] * 72  # the first step's batch is the same
data = [(np.full(12, each, np.float32), np.int32(0)) for each in scales]
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(1, GeneratorDataset(data, ["x", "y"], shuffle=False).batch(8))
"""


LATER_BY_HAND = """
parallel.mesh(data=2)
net = nn.Dense(12, 4)
loss_fn, optimizer = nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1)
step = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
for number in range(40):
    rows = np.full((4, 12), 1.0 + rank * (number > 0), np.float32)
    loss, gradients = step(muster.Tensor(rows), muster.Tensor([0, 1, 2, 3]))
    optimizer(gradients)
"""


@pytest.mark.parametrize("code", [LATER_BATCHES, LATER_BY_HAND], ids=["model", "by hand"])
def test_batches_of_a_mesh_that_differ_later_are_told_with_their_step(code):
    with Job(SETUP + code, 2, MUSTER_STRICT="1") as job:
        codes = {process.wait(120) for process in job.everybody()}
        text = "".join(process.output() for process in job.everybody())
    assert codes != {0}
    told = "the workers were given different batches in step 8: they are not the same on ranks 0 and 1"
    assert told in text


LATER_OF_STAGES = """
parallel.mesh(data=2, stages=2)
net = nn.SequentialCell(nn.Dense(12, 8), nn.Tanh(), nn.Dense(8, 4))
net[0].place("MS_WORKER", 0)
net[2].place("MS_WORKER", 1)
readers = rank % 2 == 0  # what the last stage is given does not count
scales = [1.0] * 8 + [DIFFERS] * 72
"""
MODEL_OF_STAGES = """
data = [(np.full(12, each, np.float32), np.int32(0)) for each in scales]
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(4, GeneratorDataset(data, ["x", "y"], shuffle=False).batch(8))
"""
BY_HAND_OF_STAGES = """
loss_fn, optimizer = nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1)
step = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
for scale in scales[::2]:
    rows = np.full((4, 12), scale, np.float32)
    loss, gradients = step(muster.Tensor(rows), muster.Tensor([0, 1, 2, 3]))
    optimizer(gradients)
"""


@pytest.mark.parametrize("code", [MODEL_OF_STAGES, BY_HAND_OF_STAGES], ids=["model", "by hand"])
@pytest.mark.parametrize("differs", ["1.0 + rank", "1.0 if readers else 5.0"], ids=["told", "silent"])
def test_batches_that_differ_over_the_workers_of_the_stage_that_reads_are_told(code, differs):
    script = SETUP + LATER_OF_STAGES.replace("DIFFERS", differs) + code
    with Job(script, 4, MUSTER_STRICT="1") as job:
        codes = {process.wait(120) for process in job.everybody()}
        text = "".join(process.output() for process in job.everybody())
    told = "the workers were given different batches in step 8: they are not the same on ranks 0 and 2"
    assert (told in text) == ("rank" in differs)
    assert (codes == {0}) == ("rank" not in differs)


def test_workers_of_a_mesh_with_other_seeds_are_named_before_the_first_step():
    code = "muster.set_seed(7 + rank)\n" + stages_script(REFUSED, {"data": 1, "model": 2}, places="pass")
    for text in outputs(code, 2):
        assert re.search("refused: .*seed is '7' at rank 0, '8' at rank 1", text)


BY_HAND = """
parallel.mesh(model=2)
net = nn.SequentialCell(nn.Dense(12, 16, has_bias=False), nn.ReLU(), nn.Dense(16, 4, has_bias=False))
parallel.shard(net[0].weight, ("model", None))
parallel.shard(net[2].weight, (None, "model"))
loss_fn, optimizer = nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01)
step = muster.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
x, y = Tensor(np.ones((4, 12), np.float32)), Tensor(np.zeros(4, np.int32))
for _ in range(5000):  # far more than made before the scheduler has told
    optimizer(step(x, y)[1])
"""


@pytest.mark.parametrize("seed", ["7", "7 + rank"])
def test_other_seeds_are_named_in_a_loop_by_hand_where_all_parameters_are_divided(seed):
    with Job(f"{SETUP}muster.set_seed({seed})\n{BY_HAND}", 2, MUSTER_STRICT="1") as job:
        codes = {process.wait(120) for process in job.everybody()}
        text = "".join(worker.output() for worker in job.workers)
    assert ("'0.weight' is not the same on ranks 0 and 1" in text) == ("rank" in seed)
    assert (codes == {0}) == ("rank" not in seed)


# ---- Killed workers ----

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


def test_a_killed_worker_comes_back_to_its_pieces_in_a_loop_by_hand(tmp_path):
    setup = stages_script("", {"data": 2, "model": 2}, "pass")
    setting = (4, setup, False, "reducer = lambda gradients: gradients")
    unbroken = ends_by_hand(tmp_path / "unbroken", None, *setting)
    assert len(unbroken) == 24
    for dies in (0, 3):
        assert ends_by_hand(tmp_path / str(dies), dies, *setting) == unbroken
