"""Workers that share the state of optimizers (Zero), and cells that are computed again: the numbers of data
parallel and of one process, with less memory."""

import re

import pytest
from job import run_alone
from parallel_jobs import (
    KILLED,
    OPTIMIZERS,
    SETUP,
    ZERO,
    ends_by_hand,
    ends_of_a_script,
    held,
    losses,
    outputs,
    values,
)


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


RESHAPED = """
class Scaled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(12, 8), nn.Dense(8, 4)
        self.scale = muster.Parameter(ops.ones((8,), muster.float32), name="scale")
        self.shift = muster.Parameter(ops.zeros((8,), muster.float32), name="shift")

    def construct(self, x):
        y = ops.reshape(self.first(x), (-1, 8, 1))
        scale = ops.reshape(ops.reshape(self.scale, (2, 4)), (1, 8, 1))  # a view of a view
        y = ops.add(ops.mul(y, scale), ops.reshape(self.shift, (1, 8, 1)))
        return self.last(ops.tanh(ops.reshape(y, (-1, 8))))

net = Scaled()
"""


def test_divided_parameters_that_a_network_reshapes_are_gathered_once_with_the_bits_of_data_parallel():
    texts = {}
    for level in (0, 3):
        code = re.sub("net = .*\n", lambda _: RESHAPED, ZERO)
        code = code.replace("LEVEL", str(level)).replace("OPTIMIZER", OPTIMIZERS["SGD"])
        texts[level] = outputs(code.replace("threshold_bytes=64", "threshold_bytes=0"), 2)
    for text, plain in zip(texts[3], texts[0], strict=True):
        assert values(text) == values(plain)
        assert losses(text) == losses(plain)


NORMALIZED = "net = nn.SequentialCell(nn.Dense(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dense(16, 4))\n"


@pytest.mark.parametrize("level", [1, 2, 3])
def test_networks_with_batch_normalization_have_the_bits_of_data_parallel_under_zero(level):
    texts = {}
    for each in (0, level):
        code = re.sub("net = .*\n", lambda _: NORMALIZED, ZERO).replace("OPTIMIZER", OPTIMIZERS["Adam"])
        texts[each] = outputs(code.replace("LEVEL", str(each)), 2)
    for text, plain in zip(texts[level], texts[0], strict=True):
        assert losses(text) == losses(plain)
        assert values(text) == values(plain)


MANY = """
muster.set_auto_parallel_context(
    parallel_mode="data_parallel", gradients_mean=True, zero=parallel.Zero(3, threshold_bytes=0)
)
layers = []
for _ in range(8):
    layers += [nn.Dense(WIDTH, WIDTH, has_bias=True), nn.Tanh()]
net = nn.SequentialCell(nn.Dense(12, WIDTH), *layers, nn.Dense(WIDTH, 4))
model = train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.001))
model.train(1, rows(), Losses())
print(model.explain(rows()))
"""


def calls_of(width):
    text = outputs(MANY.replace("WIDTH", str(width)), 2)[0]
    return {name: int(calls) for calls, name in re.findall(r"(\d+) (\w+) of 2 workers with", text)}


def test_small_parameters_travel_together_and_stay_from_the_way_forward_to_the_way_back():
    assert calls_of(16) == {"all_gather": 1, "reduce_scatter": 1}  # of 20 parameters


def test_large_parameters_travel_by_themselves_and_are_gathered_again_for_the_way_back():
    large = calls_of(768)  # eight weights of 2.25 MiB, of which two stay
    assert 8 + 6 < large["all_gather"] < 20
    assert 8 < large["reduce_scatter"] < 12


def test_a_divided_parameter_says_so_when_it_is_read():
    code = ZERO.replace("LEVEL", "1").replace("OPTIMIZER", OPTIMIZERS["Adam"])
    code += """
try:
    print(optimizer.get_parameters()[2].asnumpy())
except ValueError as error:
    print("divided:", error)
try:
    print(muster.ops.add(optimizer.get_parameters()[2], 1))
except ValueError as error:
    print("op:", error)
"""
    text = outputs(code, 2)[1]
    assert re.search(
        r"divided: '.*' is divided over 2 workers, of which each holds .* gather_parameters", text
    )
    assert re.search(r"op: '.*' is divided over 2 workers", text)


WHOLE_FORMULAS = {
    "Lamb": "nn.Lamb(net.trainable_params(), 0.01)",
    "written in Python": """None

class Own(nn.Optimizer):
    def __init__(self, parameters):
        super().__init__(0.1, parameters)
        zero = ops.zeros((), muster.float32)
        self.sizes = [muster.Parameter(zero, f"size.{each.name}", requires_grad=False) for each in parameters]

    def construct(self, gradients):
        for parameter, size, gradient in zip(self.parameters, self.sizes, gradients):
            ops.assign(size, ops.add(size, ops.sqrt(ops.reduce_sum(ops.square(parameter)))))
            ops.assign(parameter, ops.sub(parameter, ops.div(gradient, ops.add(size, 1.0))))
        self.count_step()
        return True

optimizer = Own(net.trainable_params())
""",
}


@pytest.mark.parametrize("name", WHOLE_FORMULAS)
def test_a_formula_of_whole_parameters_keeps_its_state_whole_and_a_line_says_so(name):
    texts = {}
    for level in range(4):
        code = ZERO.replace("LEVEL", str(level)).replace("OPTIMIZER", WHOLE_FORMULAS[name])
        texts[level] = outputs(code, 2)
    for level in range(1, 4):
        for text, plain in zip(texts[level], texts[0], strict=True):
            assert values(text) == values(plain)
            assert losses(text) == losses(plain)
            assert held(text) == held(plain)
        assert "updates whole parameters, or is written in Python" in texts[level][0]


def test_an_optimizer_around_another_one_is_refused():
    lars = "nn.LARS(nn.Momentum(net.trainable_params(), 0.05, 0.9))"
    code = ZERO.replace("LEVEL", "1").replace("OPTIMIZER", lars)
    code = code.replace("model.train", "try:\n    model.train").replace(
        "Losses())\n", "Losses())\nexcept NotImplementedError as error:\n    print('refused:', error)\n", 1
    )
    assert "refused: LARS cannot share the state of its optimizer" in outputs(code, 2)[1]


def test_a_network_of_which_a_worker_has_pieces_is_no_onnx_file(tmp_path):
    code = ZERO.replace("LEVEL", "3").replace("OPTIMIZER", OPTIMIZERS["Adam"])
    code += f"""
try:
    muster.export(net, next(iter(rows()))[0], "{tmp_path}/net.onnx")
except ValueError as error:
    print("export:", error)
"""
    assert re.search(r"export: .*is divided over 2 workers.*load it in a process alone", outputs(code, 2)[0])
    assert not list(tmp_path.glob("*.onnx"))


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


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_killed_worker_comes_back_to_its_pieces(tmp_path, level):
    unbroken = ends_of_a_job(tmp_path / "unbroken", level, None)
    assert len(unbroken) > 12
    for dies in (0, 1):
        assert ends_of_a_job(tmp_path / str(dies), level, dies) == unbroken


def test_a_killed_worker_comes_back_to_its_pieces_in_a_loop_by_hand(tmp_path):
    zero = ZERO.partition("model = ")[0].replace("LEVEL", "3").replace("OPTIMIZER", OPTIMIZERS["Adam"])
    setting = (2, zero, True, "reducer = nn.DistributedGradReducer(optimizer.parameters)")
    unbroken = ends_by_hand(tmp_path / "unbroken", None, *setting)
    assert len(unbroken) == 12
    for dies in (0, 1):
        assert ends_by_hand(tmp_path / str(dies), dies, *setting) == unbroken


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
