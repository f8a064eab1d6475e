"""Networks whose operators have strategies (Primitive.shard, Cell.shard, Layout): where every worker is given
the whole batch they are divided, with the numbers of one process and less memory."""

import re

import pytest
from job import output_alone, outputs_of_workers

SETUP = """
import numpy as np
import mindspore as ms
import muster
from mindspore import Layout, Parameter, Tensor, nn, ops, train
from mindspore import dataset as ds
from mindspore.common.initializer import initializer
from mindspore.communication import init
from mindspore.parallel import shard
from mindspore.parallel.auto_parallel import AutoParallel

ms.set_context(mode=ms.GRAPH_MODE)
init()
ms.set_seed(3)

def rows(shape=(8,), classes=4):
    numbers = np.random.RandomState(0)
    data = [(numbers.randn(*shape).astype(np.float32), np.int32(numbers.randint(classes))) for _ in range(32)]
    return ds.GeneratorDataset(data, ["x", "y"], shuffle=False).batch(8)

def weight(*shape):
    return Parameter(initializer("normal", shape, ms.float32), name="w" + "x".join(map(str, shape)))

class Losses(train.Callback):
    def on_train_step_end(self, run_context):
        print("loss", repr(float(np.asarray(run_context.original_args().net_outputs.asnumpy()))))

def fit(net, shape=(8,)):
    optimizer = nn.Adam(net.trainable_params(), 0.05)
    model = train.Model(net, nn.CrossEntropyLoss(), optimizer)
    model.train(2, rows(shape), Losses())
    print("held", muster.parallel.held_bytes(net), muster.parallel.held_bytes(optimizer))
    for name, value in model.gather_parameters().items():
        print("sum", name, repr(float(np.abs(value.asnumpy().astype(np.float64)).sum())))
"""
CONTEXT = """
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", full_batch=True)
"""

PRODUCTS = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = weight(8, 16), weight(16, 8), weight(4, 8)
        self.matmul1 = ops.MatMul().shard(((2, 1), (1, 2)))
        self.gelu = ops.GeLU().shard(((2, 2),))
        self.matmul2 = ops.MatMul().shard(((2, 2), (2, 1)), SECOND)
        self.matmul3 = ops.MatMul(transpose_b=True).shard(((2, 1), (2, 1)))
        self.softmax = ops.Softmax().shard(((4, 1),))
        self.mul = ops.Mul().shard(((2, 1), (2, 1)))

    def construct(self, x):
        x = self.gelu(self.matmul1(x, self.first))
        x = self.matmul2(x, self.second)
        x = self.mul(x, self.softmax(x))
        return self.matmul3(x, self.head)

net = WRAPPED
fit(net)
"""

JOINED = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = weight(8, 16), weight(32, 4)
        self.matmul1 = ops.MatMul().shard(((2, 1), (1, 2)))
        self.concat = ops.Concat(1).shard(((2, 1), (2, 1)))
        self.matmul2 = ops.MatMul().shard(((2, 2), (2, 1)))

    def construct(self, x):
        x = self.matmul1(x, self.first)
        return self.matmul2(self.concat((x, ops.tanh(x))), self.second)

fit(Net())
"""

LAYOUTS = """
layout = Layout((2, 2), ("dp", "mp"))

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = weight(8, 16), weight(16, 4)
        self.matmul1 = ops.MatMul().shard((layout("dp", "None"), layout("None", "mp")))
        self.matmul2 = ops.MatMul().shard(
            (layout("dp", "mp"), layout("mp", "None")), (layout(("dp", "mp"), "None"),)
        )

    def construct(self, x):
        return self.matmul2(ops.gelu(self.matmul1(x, self.first)), self.second)

net = Net()
fit(net)
"""

# An axis that cuts what each worker has once more has no workers.
INTERLEAVED = LAYOUTS.replace(
    '(2, 2), ("dp", "mp")', '(2, 2, 2), ("dp", "mp", "interleaved_parallel")'
).replace('(layout("dp", "None")', '(layout(("dp", "interleaved_parallel"), "None")')

CELLS = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(8, 16), nn.Dense(16, 4)
        self.block = shard(self.fc1, ((4, 1),), ((2, 2),), parameter_plan={"fc1.weight": (2, 1)})

    def construct(self, x):
        return self.fc2(ops.tanh(self.block(x)))

net = Net()
fit(net)
"""

IMAGES = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = weight(8, 2, 3, 3), weight(4, 8, 3, 3)
        self.conv1 = ops.Conv2D(8, 3, pad_mode="same").shard(((2, 1, 1, 1), (2, 1, 1, 1)))
        self.conv2 = ops.Conv2D(4, 3, pad_mode="same").shard(((2, 2, 1, 1), (1, 2, 1, 1)))
        self.norm = nn.BatchNorm2d(8)
        self.pool = ops.MaxPool(2, 2).shard(((2, 2, 1, 1),))
        self.flatten, self.head = nn.Flatten(), nn.Dense(4 * 9, 4)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv1(x, self.first))))
        return self.head(self.flatten(self.conv2(x, self.second)))

net = Net()
fit(net, (2, 6, 6))
"""

# Of cells of the library: the primitives that they keep.
KEPT = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(16, 8), nn.LayerNorm((8,))
        self.first, self.tanh, self.second = nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4)
        self.words.gather.shard(((1, 2), (2,)))
        self.norm.layer_norm.shard(((2, 1, 1), (1,), (1,)))
        self.first.matmul.shard(((2, 1), (2, 1)))
        self.first.bias_add.shard(((2, 2), (2,)))
        self.tanh.tanh.shard(((2, 2),))
        self.second.matmul.shard(((2, 2), (1, 2)))

    def construct(self, x):
        x = self.norm(self.words(ops.cast(x > 0, ms.int32)))  # (8, 8, 8)
        return self.second(self.tanh(self.first(ops.mean(x, 1) + ops.sum(self.first(x), -1))))

net = Net()
fit(net)
"""
KEPT_IMAGES = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 8, 3), nn.BatchNorm2d(8)
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()
        self.head = nn.Dense(72, 4)
        self.conv.conv2d.shard(((2, 1, 1, 1), (2, 1, 1, 1)))
        self.norm.bn_train.shard(((2, 2, 1, 1), (2,), (2,), (2,), (2,)))
        self.norm.bn_infer.shard(((2, 2, 1, 1), (2,), (2,), (2,), (2,)))
        self.relu.relu.shard(((2, 2, 1, 1),))
        self.pool.max_pool.shard(((4, 1, 1, 1),))

    def construct(self, x):
        return self.head(self.flatten(self.pool(self.relu(self.norm(self.conv(x))))))

net = Net()
fit(net, (2, 6, 6))
"""

SYNCHRONIZED = KEPT_IMAGES.replace("nn.BatchNorm2d", "nn.SyncBatchNorm").replace("self.norm.bn_", "# ")


def outputs(code, workers):
    return [output_alone(code)] if workers == 1 else outputs_of_workers(code, workers)


def numbers(text):
    found = re.findall(r"(?:loss|sum \S+) (\S+)", text)
    assert len(found) > 8
    return [float(each) for each in found]


def held(text):
    return tuple(map(int, re.search(r"held (\d+) (\d+)", text).groups()))


def products(second="None", wrapped="Net()"):
    return PRODUCTS.replace("SECOND", second).replace("WRAPPED", wrapped)


WRAPPED = 'AutoParallel(Net()); net.dataset_strategy("full_batch")'
SCRIPTS = {
    "products": CONTEXT + products(),
    "scattered": CONTEXT + products("((4, 1),)"),
    "wrapped": products(wrapped=WRAPPED),
    "joined": CONTEXT + JOINED,
    "shared state": products(wrapped=WRAPPED + '; net.hsdp(threshold=0, optimizer_level="level2")'),
    "layouts": CONTEXT + LAYOUTS,
    "interleaved": CONTEXT + INTERLEAVED,
    "cells": CONTEXT + CELLS,
    "images": CONTEXT + IMAGES,
    "primitives of cells": CONTEXT + KEPT,
    "primitives of image cells": CONTEXT + KEPT_IMAGES,
    "statistics of all workers": CONTEXT + SYNCHRONIZED,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_operators_are_divided_with_the_numbers_of_one_process(name):
    alone = outputs(SETUP + SCRIPTS[name], 1)[0]
    for text in outputs(SETUP + SCRIPTS[name], 4):
        assert "shard() has no effect" not in text
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4)
        assert held(text)[0] < held(alone)[0]
        assert held(text)[1] < held(alone)[1]


WRONG = """
net = nn.Dense(8, 15)
net.matmul.shard(((1, 1), (4, 1)))
try:
    net(Tensor(np.ones((4, 8), np.float32)))
except ValueError as error:
    print("error", error)
"""


def test_a_strategy_that_does_not_divide_the_parameter_of_a_cell_is_an_error_that_names_its_line():
    for text in outputs(SETUP + CONTEXT + WRONG, 4):
        assert re.search(r"error MatMul \(shard at \S+:\d+\): input 1 is \(15, 8\), .* into 4 equal", text)


def test_what_a_script_sets_on_a_primitive_of_a_cell_stays_and_its_copies_have_it_too():
    code = """
import copy, pickle
net = nn.Dense(8, 16)
net.matmul.add_prim_attr("recompute_comm_op", True)
net.matmul.recompute()
other = copy.deepcopy(net)
other.matmul.shard(((1, 1), (1, 1)))
for each in (net, other):
    print(each, type(each).__name__, each.matmul.recompute_comm_op, each.matmul is each.matmul)
print(isinstance(other, nn.Dense), net.matmul is other.matmul, net.matmul._strategy)
x = Tensor(np.ones((2, 3, 8), np.float32))
print(np.array_equal(net(x).asnumpy(), other(x).asnumpy()))
"""
    text = output_alone(SETUP.replace("init()", "") + code)
    dense = "Dense(input_channels=8, output_channels=16, has_bias=True) Dense True True"
    assert text.splitlines()[-4:] == [dense, dense, "True False None", "True"]


def test_where_workers_have_rows_of_their_own_operators_are_whole_and_a_line_says_so():
    code = SETUP + CONTEXT.replace(", full_batch=True", "") + products()
    alone = outputs(code, 1)[0]
    for text in outputs(code, 4):
        assert len(re.findall(r"shard\(\) has no effect: .*full_batch", text)) == 1
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4)
        assert held(text) == held(alone)


def test_stages_that_no_cell_has_are_none():
    code = SETUP + products(wrapped=WRAPPED + "; net.pipeline(stages=STAGES)")
    alone = outputs(code.replace("STAGES", "1"), 1)[0]
    for text in outputs(code.replace("STAGES", "2"), 4):
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4)


def test_a_plan_says_what_workers_divide_what_is_whole_and_what_they_send():
    script = CONTEXT + products().replace("fit(net)", "")
    script += """
model = muster.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.05))
text = str(model.explain(rows()))
print(text)
"""
    text = outputs(SETUP + script, 4)[0]
    assert re.search(r"mesh: d0=2, d1=2", text)
    assert re.search(r"\d batch_matmul: \(d0, -\) \(-, d1\) to \(d0, d1\)", text)
    assert re.search(r"all_reduce of 2 workers with \d+.*each sends \d+", text)
    assert re.search(
        r"training: updates .* of parameters with .* of gradients and .* of the optimizer's state", text
    )


OTHERS = """
from mindspore.communication import get_rank

net = nn.SequentialCell(nn.Dense(8, 16), nn.Dense(16, 4))
net[0].matmul.shard(((1, 1), (2, 1)) if get_rank() else ((1, 2), (1, 2)))
try:
    fit(net)
except ValueError as error:
    print("refused", error)
"""


def test_workers_whose_strategies_differ_are_named_before_the_first_step():
    for text in outputs(SETUP + CONTEXT + OTHERS, 2):
        assert re.search(
            r"refused rank 1 divides the step otherwise than rank 0: it divides .* where rank 0 divides .* "
            r"Every rank must call shard\(\) alike",
            text,
        ), text


IN_PLACE = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(8, 16), nn.Dense(16, 4)
        self.fc1.shard(((4, 1),), ((1, 4),))

    def construct(self, x):
        return self.fc2(ops.tanh(self.fc1(x)))

net = Net()
print("class", net.fc1)
fit(net)
model = muster.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.05))
print(model.explain(rows()))
"""


def test_a_cell_follows_its_strategy_wherever_it_is_called():
    alone = outputs(SETUP + IN_PLACE, 1)[0]
    for text in outputs(SETUP + CONTEXT + IN_PLACE, 4):
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4)
        assert "class Dense(input_channels=8, output_channels=16, has_bias=True)" in text
        assert "tanh: (-, d0+d1)" in text, text


NUMBER = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.mul = nn.Dense(8, 4), ops.Mul().shard(((2, 2), ()))

    def construct(self, x):
        return self.mul(self.fc(x), 2.0)

fit(Net())
"""


def test_a_number_has_the_strategy_of_no_dimensions():
    alone = outputs(SETUP + NUMBER, 1)[0]
    for text in outputs(SETUP + CONTEXT + NUMBER, 4):
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4)


BESIDE = """
class Case(nn.Cell):
    def __init__(self, primitive, strategy, *given):
        super().__init__()
        self.op, self.given = primitive.shard(strategy), given
        self.scale = weight(8, 4)

    def construct(self, x):
        result = self.op(self.scale * x, *self.given)
        return (ops.sin(result[0] if isinstance(result, tuple) else result) + 1).sum()

kinds, ones = Tensor(np.array([0, 3, 1, 2, 2, 0, 1, 3], np.int32)), ops.ones(4)
given = {
    "SparseSoftmaxCrossEntropyWithLogits": (((4, 1), (4,)), kinds),
    "NLLLoss": (((4, 1), (4,), (1,)), kinds, ones),
    "UnsortedSegmentSum": (((4, 1), (4,)), kinds, 4),
    "UnsortedSegmentMax": (((2, 2), (2,)), kinds, 4),
    "PReLU": (((2, 2), (2,)), ones * 0.5),
    "BatchNorm": (((2, 2), (2,), (2,), (2,), (2,)), ones, ones, ones, ones),
}
for name, (strategy, *tensors) in given.items():
    net = Case(getattr(ops, name)(), strategy, *tensors)
    x = Tensor(np.random.RandomState(1).randn(8, 4).astype(np.float32))
    loss, gradients = ms.value_and_grad(net, None, [net.scale])(x)
    print("loss", repr(float(loss.asnumpy())))
    print("loss", repr(float(np.abs(gradients[0].asnumpy()).sum())))
"""


def test_tensors_whose_numbers_are_for_channels_or_rows_are_cut_as_these_are():
    alone = outputs(SETUP + BESIDE, 1)[0]
    for text in outputs(SETUP + CONTEXT + BESIDE, 4):
        assert "has no effect" not in text, text
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4)


OF_CELLS = """
kinds = [
    (nn.ReLU6(), "relu6"), (nn.ELU(0.5), "elu"), (nn.SeLU(), "selu"), (nn.FastGelu(), "fast_gelu"),
    (nn.HSwish(), "hswish"), (nn.HSigmoid(), "hsigmoid"), (nn.Softsign(), "softsign"),
    (nn.LogSoftmax(0), "log_softmax", ((1, 4),)), (nn.PReLU(4), "prelu", ((2, 2), (2,))),
    (nn.BatchNorm1d(4), "bn_train", ((2, 2), (2,), (2,), (2,), (2,))),
]
for net, name, *strategy in kinds:
    getattr(net.set_train(), name).shard(*strategy or [((2, 2),)])
    first = weight(8, 4)
    step = ms.value_and_grad(lambda x: (net(first * x) ** 2).sum(), None, [first])
    loss, gradients = step(ops.ones((8, 4)))
    print("loss", repr(float(loss.asnumpy())))
    print("loss", repr(float(np.abs(gradients[0].asnumpy()).sum())))
"""


def test_cells_of_activations_and_norms_keep_primitives_that_have_strategies():
    alone = outputs(SETUP + OF_CELLS, 1)[0]
    for text in outputs(SETUP + CONTEXT + OF_CELLS, 4):
        assert "has no effect" not in text, text
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4, abs=1e-4)


WRITTEN = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.rows, self.sums, self.step = weight(8, 4), weight(4, 8), weight(2, 2)
        self.update = ops.ScatterUpdate().shard(((4, 1), (1,), (1, 1)))
        self.add, self.assign = ops.AssignAdd().shard(((2, 2), (2, 2))), ops.Assign().shard(((2, 2), (2, 2)))
        self.norm = ops.BatchNorm(is_training=True).shard(((2, 2), (2,), (2,), (2,), (2,)))
        self.mean, self.variance = (Parameter(ops.ones(4), name=name) for name in ("mean", "variance"))

    def construct(self, x):
        self.update(self.rows, Tensor([1, 5], ms.int32), x[:2])
        self.add(self.sums, x.T)
        self.assign(self.step, x[:2, :2] * 2)
        self.norm(x, ops.ones(4), ops.ones(4), self.mean, self.variance)
        return self.rows.sum()

net = Net()
for at in range(3):
    print("loss", repr(float(net(Tensor(np.arange(32).reshape(8, 4) / 8 + at, ms.float32)).asnumpy())))
for name, value in train.Model(net).gather_parameters().items():
    print("loss", repr(float(np.abs(value.asnumpy()).sum())))
    print("loss", repr(float(np.abs(value.asnumpy()[0]).sum())))
"""


def test_parameters_that_primitives_with_strategies_write_are_written():
    alone = outputs(SETUP + WRITTEN, 1)[0]
    for text in outputs(SETUP + CONTEXT + WRITTEN, 4):
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-5)


LOSSES = """
net = nn.Dense(8, 4)
net.matmul.shard(((4, 1), (1, 1)))
classes, squares = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), nn.MSELoss()
classes.one_hot.shard(((4, 1), (), ()))
classes.softmax_cross_entropy.shard(((4, 1), (4, 1)))
classes.sparse_softmax_cross_entropy.shard(((4, 1), (4,)))
squares.reduce_mean.shard(((2, 2),))
optimizer = nn.SGD(net.trainable_params(), 0.1)
step = ms.value_and_grad(
    lambda x, y: classes(net(x), y) + squares(net(x), x[:, :4]), None, optimizer.parameters
)
for x, y in rows():
    loss, gradients = step(x, y)
    optimizer(gradients)
    print("loss", repr(float(loss.asnumpy())))
    for gradient in gradients:
        print("loss", repr(float(np.abs(gradient.asnumpy()).sum())))
"""


def test_primitives_of_losses_take_strategies():
    alone = outputs(SETUP + LOSSES, 1)[0]
    for text in outputs(SETUP + CONTEXT + LOSSES, 4):
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4)


TOGETHER = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.into, self.up = nn.Dense(8, 16), nn.Conv2dTranspose(4, 4, 2, 2, has_bias=True)
        self.up.conv2d_transpose.shard(((4, 1, 1, 1), (1, 2, 1, 1)))
        self.up.bias_add.shard(((2, 2, 1, 1), (2,)))
        self.mix = shard(lambda a, b, c: a * b + c, in_strategy=((4, 1), (4, 1), (4, 1)))
        self.add = shard(lambda a, b: a + b, in_strategy=((2, 2), (2, 2)))
        self.head = nn.Dense(64, 4)

    def construct(self, x):
        x = self.into(x)
        x = self.mix(x, ops.tanh(x), self.add(x, x))
        return self.head(self.up(x.reshape(8, 4, 2, 2)).reshape(8, 64))

net = Net()
fit(net)
model = muster.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.05))
print(model.explain(rows()))
"""


def test_inputs_of_a_function_may_be_cut_by_the_same_workers():
    alone = outputs(SETUP + TOGETHER, 1)[0]
    for text in outputs(SETUP + CONTEXT + TOGETHER, 4):
        assert "has no effect" not in text, text
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4)
        assert "mul: (d0+d1, -) (d0+d1, -)" in text, text


LAST = """
net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4))
net[0].matmul.shard(((4, 1), (1, 1)))
net[2].matmul.shard(((2, 2), (1, 2)))
numbers = np.random.RandomState(0)
data = [(numbers.randn(8).astype(np.float32), np.int32(numbers.randint(4))) for _ in range(21)]
model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
model.train(4, ds.GeneratorDataset(data, ["x", "y"], shuffle=False).batch(8), Losses())
"""


def test_a_last_batch_that_strategies_do_not_divide_is_computed_whole_and_a_line_says_so():
    alone = outputs(SETUP + LAST, 1)[0]
    for text in outputs(SETUP + CONTEXT + LAST, 4):
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4)
        assert (
            len(re.findall(r"warning: a tensor of \(5, 8\) cannot be divided as those before it", text)) == 1
        )


STAGED = """
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", full_batch=True, pipeline_stages=2)
net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4))
net[0].pipeline_stage, net[2].pipeline_stage = 0, 1
"""


@pytest.mark.parametrize(
    ("before", "behind"), [(CONTEXT, products()), (STAGED, "fit(net)")], ids=["operators", "stages"]
)
def test_what_is_set_before_the_job_has_formed_counts_for_its_workers(before, behind):
    code = SETUP.replace("\ninit()\n", before + "init()\n") + behind
    alone = outputs(code, 1)[0]
    for text in outputs(code, 4):
        assert numbers(text) == pytest.approx(numbers(alone), rel=1e-4)
        assert held(text)[0] < held(alone)[0]


NAMED = """
class Holder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(np.zeros((8, 6)), ms.float32), name="weight")
        self.myself = nn.Dense(6, 8, has_bias=False)

    def construct(self, x):
        return self.myself(x) @ self.weight

import os
from mindspore.communication import get_rank

rank = get_rank()
cell = Holder()
cell.shard(((4, 1),), parameter_plan=PLAN)
cell.compile(Tensor(np.zeros((4, 6)), ms.float32))
print("held", muster.parallel.held_bytes(cell), 0)
ms.save_checkpoint(cell, f"{os.environ['FOLDER']}/rank_{rank}.ckpt", integrated_save=False)
pieces = ms.load_checkpoint(f"{os.environ['FOLDER']}/rank_{rank}.ckpt")
print("shapes", {name: value.shape for name, value in sorted(pieces.items(), reverse=True)})
"""


def test_a_parameter_plan_alone_divides_too(tmp_path):
    script = NAMED.replace("((4, 1),)", "((1, 1),)").replace("PLAN", "{'weight': (2, 1)}")
    for text in outputs_of_workers(SETUP + CONTEXT + script, 4, FOLDER=str(tmp_path)):
        assert "has no effect" not in text and "'weight': (4, 6)" in text, text


@pytest.mark.parametrize(
    ("plan", "weight", "of_child"),
    [
        ({"self.weight": (2, 1)}, (4, 6), (8, 6)),
        ({"weight": (1, 2)}, (8, 3), (8, 6)),
        ({"myself.weight": (4, 1)}, (8, 6), (2, 6)),
        ({"self.myself.weight": (1, 2)}, (8, 6), (8, 3)),
        ({"self.weight": (2, 1), "self.myself.weight": (2, 1)}, (4, 6), (4, 6)),
    ],
    ids=str,
)
def test_a_parameter_plan_names_the_parameters_of_its_cell_with_and_without_self(
    tmp_path, plan, weight, of_child
):
    script = SETUP + CONTEXT + NAMED.replace("PLAN", repr(plan))
    for text in outputs_of_workers(script, 4, FOLDER=str(tmp_path)):
        assert "which is ignored" not in text
        assert str({"weight": weight, "myself.weight": of_child}) in text, text
