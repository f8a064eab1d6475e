"""Training steps that scripts write themselves: what they do between gradients and optimizer is one compiled
step in a job, too, with the numbers of one process, whatever the workers share."""

import re

import numpy as np
import pytest
from job import Job, output_alone, outputs_of_workers

SETUP = """
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops, train
from mindspore import dataset as ds
from mindspore.communication import get_group_size, get_rank, init
from mindspore.parallel.auto_parallel import AutoParallel

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(3)

def rows():
    numbers = np.random.RandomState(0)
    data = [(numbers.randn(6).astype(np.float32), np.int32(numbers.randint(4))) for _ in range(32)]
    dataset = ds.GeneratorDataset(
        data, ["x", "y"], shuffle=False, num_shards=get_group_size(), shard_id=get_rank()
    )
    return dataset.batch(8 // get_group_size())

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.relu, self.fc2 = nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 4)

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(x)))

def show(network):
    for name, value in ms.train.Model(network).gather_parameters().items():
        values = value.asnumpy().astype(np.float64)
        print("sum", name, repr(float(np.abs(values).sum())), repr(float((values ** 2).sum())))
"""

SHARED = """
ms.set_auto_parallel_context(
    parallel_mode="data_parallel", gradients_mean=True, enable_parallel_optimizer=LEVEL > 0,
    parallel_optimizer_config={
        "parallel_optimizer_threshold": 0, "optimizer_level": f"level{max(LEVEL, 1)}"
    },
)
"""

# A step as MindSpore's samples write it: BETWEEN stands between gradients and optimizer.
STEP = """
class Step(nn.TrainOneStepCell):
    def __init__(self, network, optimizer):
        super().__init__(network, optimizer)
        self.grad = ops.GradOperation(get_by_list=True)
        self.reducer = REDUCER
        self.scaler = ms.amp.DynamicLossScaler(1024.0, 2, 1000)
        self.map, self.print, self.gates = ops.HyperMap(), ops.Print(), nn.CellList([nn.ReLU()])
        self.total = [ms.Parameter(ops.zeros_like(each), name=f"total.{each.name}", requires_grad=False)
                      for each in self.weights]

    def construct(self, x, y):
        loss = self.network(x, y)
        gradients = self.grad(self.network, self.weights)(x, y)
        gradients = self.reducer(gradients)
        BETWEEN
        return ops.depend(loss, self.optimizer(gradients))

net = Net()
with_loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
optimizer = OPTIMIZER
step = Step(with_loss, optimizer)
WRAPPED
step.set_train()
"""

BETWEEN = {
    "clip_by_global_norm": "gradients = ops.clip_by_global_norm(gradients, 0.3)",
    "clip_by_value": """
        gradients = tuple(ops.clip_by_value(each, Tensor(-0.02, ms.float32), Tensor(0.02, ms.float32))
                          for each in gradients)""",
    "loss_scale": """
        finite = ms.amp.all_finite(gradients)
        gradients = self.scaler.unscale(self.scaler.scale(gradients))
        self.scaler.adjust(finite)""",
    "accumulate": """
        for total, each in zip(self.total, gradients):
            gradients = ops.depend(gradients, ops.assign_add(total, each))
        gradients = tuple(ops.mul(total, 0.5) for total in self.total)""",
    "print": """
        norm = ops.sqrt(sum(ops.reduce_sum(ops.square(each)) for each in gradients))
        self.print("norm", norm)
        gradients = self.map(lambda each: each / ops.maximum(norm, Tensor(0.3, ms.float32)), gradients)""",
}
OPTIMIZERS = {
    "AdamWeightDecay": "nn.AdamWeightDecay(net.trainable_params(), 0.05, weight_decay=0.1)",
    "Momentum": "nn.Momentum(net.trainable_params(), 0.05, 0.9, weight_decay=0.01)",
}
TRAIN = """
for epoch in range(2):
    for x, y in rows():
        print("loss", repr(float(step(x, y).asnumpy())))
print("held", optimizer._held_bytes())
show(step)
"""
MODEL = """
train.Model(step).train(2, rows())
print("held", optimizer._held_bytes())
show(step)
"""
REDUCER = "nn.DistributedGradReducer(optimizer.parameters)"


def script(between, optimizer="AdamWeightDecay", level=0, wrapped="", reducer=REDUCER, how=TRAIN):
    """A training whose workers share as much as `level` of Zero says; None: as AutoParallel says."""
    text = SETUP + (SHARED if level is not None else "") + STEP + how
    for name, value in (
        ("BETWEEN", BETWEEN.get(between, between)),
        ("OPTIMIZER", OPTIMIZERS[optimizer]),
        ("REDUCER", reducer),
        ("WRAPPED", wrapped),
        ("LEVEL", str(level)),
    ):
        text = text.replace(name, value)
    return text


def outputs(code, workers):
    return [output_alone(code)] if workers == 1 else outputs_of_workers(code, workers)


def sums(text):
    found = {name: (float(a), float(b)) for name, a, b in re.findall(r"sum (\S+) (\S+) (\S+)", text)}
    assert found
    return {name: pair for name, pair in found.items() if "scale" not in name and "counter" not in name}


def held(text):
    return int(re.search(r"held (\d+)", text)[1])


def losses(text):
    found = [float(each) for each in re.findall(r"loss (\S+)", text)]
    assert len(found) == 8
    return found


def require_equal(text, wanted, rel):
    assert sums(text).keys() == sums(wanted).keys()
    for name, pair in sums(text).items():
        assert pair == pytest.approx(sums(wanted)[name], rel=rel), name


@pytest.mark.parametrize("between", BETWEEN)
def test_what_stands_between_gradients_and_optimizer_is_compiled_at_every_level_of_zero(between):
    optimizer = "Momentum" if between == "accumulate" else "AdamWeightDecay"
    alone = outputs(script(between, optimizer), 1)[0]
    plain = outputs(script(between, optimizer), 2)
    for text in plain:
        assert "op by op" not in text
        require_equal(text, alone, rel=1e-5)
    for level in (1, 2, 3):
        for text in outputs(script(between, optimizer, level), 2):
            assert "op by op" not in text
            assert sums(text) == sums(plain[0])
            assert held(text) < 0.6 * held(plain[0])


@pytest.mark.parametrize("level", ["level1", "level3"])
def test_a_step_of_its_own_is_one_of_the_whole_batch_under_auto_parallel(level):
    wrapped = f'step = AutoParallel(step); step.hsdp(optimizer_level="{level}", threshold=0)'
    own = {"level": None, "wrapped": wrapped, "reducer": "lambda gradients: gradients"}
    alone = outputs(script("clip_by_global_norm", level=None), 1)[0]
    for text in outputs(script("clip_by_global_norm", **own), 2):
        assert "op by op" not in text
        require_equal(text, alone, rel=1e-5)
        assert held(text) < 0.6 * held(alone)


def test_a_model_trains_such_a_step():
    alone = outputs(script("clip_by_global_norm", how=MODEL), 1)[0]
    for level in (0, 2):
        for text in outputs(script("clip_by_global_norm", level=level, how=MODEL), 2):
            assert "op by op" not in text
            require_equal(text, alone, rel=1e-5)


# What Python decides cannot be compiled.
OVERFLOW = """
        gradients = ops.clip_by_global_norm(gradients, 0.3)
        if not ms.amp.all_finite(gradients):
            return loss"""
# What such a step reads and writes of the weights itself.
WEIGHTS = (
    OVERFLOW
    + """
        penalty = sum(ops.reduce_sum(ops.square(each)) for each in self.weights)
        loss = loss + 0.01 * penalty
        for each in self.weights:
            ops.assign(each, ops.clip_by_value(each, -0.3, 0.3))"""
)


@pytest.mark.parametrize("between", [OVERFLOW, WEIGHTS], ids=["gradients", "weights"])
def test_a_step_that_python_decides_in_shares_the_optimizers_state_too(between):
    alone = outputs(script(between), 1)[0]
    plain = outputs(script(between), 2)
    require_equal(plain[0], alone, rel=1e-5)
    assert np.mean([losses(text) for text in plain], axis=0) == pytest.approx(losses(alone), rel=1e-5)
    for level in (1, 3):
        for rank, text in enumerate(outputs(script(between, level=level), 2)):
            assert re.search("'TrainOneStepCell' runs op by op", text)
            assert sums(text) == sums(plain[rank])
            assert losses(text) == losses(plain[rank])
            assert held(text) < 0.6 * held(plain[0])


MESH = """
from muster import parallel
parallel.mesh(data=2)
net = Net()
parallel.shard(net.fc1.weight, ("data", None))
parallel.shard(net.fc2.weight, (None, "data"))
"""


def test_a_step_that_python_decides_in_trains_over_a_mesh_too():
    step = script(WEIGHTS, level=None, reducer="lambda gradients: gradients")
    alone = outputs(step, 1)[0]
    whole_batch = step.replace("num_shards=get_group_size(), shard_id=get_rank()", "num_shards=1, shard_id=0")
    whole_batch = whole_batch.replace("batch(8 // get_group_size())", "batch(8)")
    for text in outputs(whole_batch.replace("net = Net()", MESH), 2):
        assert re.search("'TrainOneStepCell' runs op by op", text)
        require_equal(text, alone, rel=1e-5)
        assert losses(text) == pytest.approx(losses(alone), rel=1e-5)
        assert held(text) < held(alone)


SCALED = """
net = Net()
with_loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
optimizer = nn.AdamWeightDecay(net.trainable_params(), 0.05)
manager = nn.DynamicLossScaleUpdateCell(loss_scale_value=2**12, scale_factor=2, scale_window=3)
step = nn.TrainOneStepWithLossScaleCell(with_loss, optimizer, scale_sense=manager)
step.set_train()
for epoch in range(2):
    for x, y in rows():
        step(x, y)
print("held", optimizer._held_bytes())
show(step)
"""


def test_a_scaled_loss_goes_with_every_level():
    code = SETUP + SHARED + SCALED
    alone = outputs(code.replace("LEVEL", "0"), 1)[0]
    plain = outputs(code.replace("LEVEL", "0"), 2)
    require_equal(plain[0], alone, rel=1e-5)
    for level in (1, 2, 3):
        for text in outputs(code.replace("LEVEL", str(level)), 2):
            assert "op by op" not in text
            assert sums(text) == sums(plain[0])
            assert held(text) < 0.6 * held(plain[0])


DIFFERENT = """
if get_rank() == 1:
    net.fc1.weight.set_data(net.fc1.weight + 1)
try:
    step(*next(iter(rows())))
except ValueError as error:
    print("told:", error)
"""


def test_workers_with_different_parameters_are_told_before_the_first_step():
    with Job(script("clip_by_global_norm", how=DIFFERENT), 2) as job:
        for process in job.everybody():
            process.wait(60)
        for worker in job.workers:
            assert re.search(r"told: .*'.*fc1.weight'", worker.output())
