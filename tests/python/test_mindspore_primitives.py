"""Convolutions, losses, gradients and functions of functions under MindSpore's names.

The figures are those of MindSpore 2.7.0 on the CPU.
"""

import re
import subprocess
import sys

import numpy
import pytest
from job import clean_environment

SETUP = """
import numpy as np, mindspore as ms
from mindspore import Tensor, nn, ops
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P
x = Tensor(np.arange(1, 25).reshape(2, 3, 2, 2).astype(np.float32))
ones = Tensor(np.ones((2, 3, 2, 2), np.float32))
logits = Tensor([[1.0, 2.0, 3.0], [1.0, 0.0, 0.0]])
labels = Tensor([0, 1], ms.int32)
net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
row = Tensor([[1.0, 2.0]])
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", SETUP + code],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )


FIGURES = [
    ("P.Conv2D(2, 1)(x, ones[:, :, :1, :1])[0, 0]", [[15, 18], [21, 24]]),
    ("P.Conv2D(2, 2)(x, ones)[0, 0]", [[78]]),
    ("P.Conv2D(2, 2, pad_mode='pad', pad=(1, 0, 1, 0))(x, ones)[0, 0]", [[15, 33], [36, 78]]),
    ("P.Conv2D(2, (2, 2), pad_mode='same', stride=(1, 1, 2, 2))(x, ones)[1, 1]", [[222]]),
    ("P.MaxPool(2, 2)(x)[1, 2]", [[24]]),
    ("P.AvgPool(2, 1, 'SAME')(x)[0, 0]", [[2.5, 3], [3.5, 4]]),
    ("P.AdaptiveAvgPool2D(1)(x)[0]", [[[2.5]], [[6.5]], [[10.5]]]),
    ("P.SparseSoftmaxCrossEntropyWithLogits()(logits, labels)", 1.9795258),
    (
        "P.SparseSoftmaxCrossEntropyWithLogits(is_grad=True)(logits, labels)",
        [[-0.45498472, 0.1223641, 0.33262065], [0.28805867, -0.39402932, 0.10597068]],
    ),
    (
        "P.SoftmaxCrossEntropyWithLogits()(logits, ops.one_hot(labels, 3, Tensor(1.0), Tensor(0.0)))[0]",
        [2.4076059, 1.5514448],
    ),
    ("P.NLLLoss(ignore_index=1)(logits, labels, Tensor([0.5, 1.0, 2.0]))[0]", -1),
    ("P.NLLLoss(ignore_index=1)(logits, labels, Tensor([0.5, 1.0, 2.0]))[1]", 0.5),
    ("P.SigmoidCrossEntropyWithLogits()(Tensor([1.0, -2.0]), Tensor([1.0, 0.0]))", [0.31326166, 0.126928]),
    ("P.BCEWithLogitsLoss()(Tensor([1.0, -2.0]), Tensor([1.0, 0.0]))", 0.22009483),
    ("P.BinaryCrossEntropy('sum')(Tensor([0.5, 0.25]), Tensor([1.0, 0.0]))", 0.98082924),
    ("P.SmoothL1Loss()(Tensor([1.0, 2.0]), Tensor([1.0, 4.0]))", [0, 1.5]),
    ("P.KLDivLoss('sum')(Tensor([1.0, 2.0]), Tensor([0.2, 0.4]))", -1.6884038),
    ("ops.kl_div(Tensor([[1.0, 2.0, 3.0]]), Tensor([[0.2, 0.0, 0.8]]), 'batchmean')", -3.1004024),
    ("P.L2Loss()(logits)", 7.5),
    ("P.L2Normalize()(logits)", [[0.70710677, 1, 1], [0.70710677, 0, 0]]),
    ("ops.cross_entropy(logits, labels)", 1.9795258),
    ("ops.cross_entropy(logits, labels, Tensor([1.0, 3.0, 1.0]), label_smoothing=0.5)", 1.4575441),
    ("ops.nll_loss(ops.log_softmax(logits), labels)", 1.9795258),
    ("ops.mse_loss(logits, logits * 2)", 2.5),
    ("ops.l1_loss(logits, logits * 2)", 7 / 6),
    ("ops.binary_cross_entropy_with_logits(logits, logits * 0)", 1.5313889),
    ("P.LinSpace()(Tensor(1.0), Tensor(10.0), 4)", [1, 4, 7, 10]),
    ("ops.linspace(3, 10, 1)", [3]),
    ("P.Range()(Tensor(0), Tensor(5), Tensor(2))", [0, 2, 4]),
    ("ops.range(0.0, 5.0, 2.0)", [0, 2, 4]),
    ("P.Eye()(2, 3, ms.int32)", [[1, 0, 0], [0, 1, 0]]),
    ("ops.tril(x[0, 0], -1)", [[0, 0], [3, 0]]),
    ("P.Triu(1)(x[0, 0])", [[0, 2], [0, 0]]),
    ("P.Tril()(x[0])[1]", [[5, 0], [7, 8]]),
    ("ops.masked_fill(x[0, 0], Tensor([True, False]), -1e9)", [[-1e9, 2], [-1e9, 4]]),
    ("P.SquaredDifference()(logits, logits * 3)[0]", [4, 16, 36]),
    ("P.LogicalXor()(Tensor([True, True]), Tensor([True, False]))", [False, True]),
    ("P.Identity()(P.Depend()(x[0, 0], 1))", [[1, 2], [3, 4]]),
    ("P.AssignSub()(ms.Parameter(Tensor([3.0]), name='p'), Tensor([1.0]))", [2]),
    ("P.AllReduce(P.ReduceOp.MAX)(row)", [[1, 2]]),
    ("ops.grad(lambda a: (ops.stop_gradient(a) * a).sum())(row)", [[1, 2]]),
    ("ms.grad(lambda a, b: a * b, (0, 1))(Tensor(2.0), Tensor(3.0))[1]", 2),
    ("ms.grad(lambda a, b: (a * b, a), 0, has_aux=True)(Tensor(2.0), Tensor(3.0))[0]", 3),
    ("ms.grad(lambda a, b: (a * b, a), 0, has_aux=True)(Tensor(2.0), Tensor(3.0))[1][0]", 2),
    ("C.GradOperation()(lambda a, b: a * b)(Tensor(2.0), Tensor(3.0))", 3),
    ("C.GradOperation(get_all=True)(lambda a, b: a * b)(Tensor(2.0), Tensor(3.0))[1]", 2),
    ("C.GradOperation(get_all=True)(lambda a: a * a)(Tensor(2.0))[0]", 4),
    (
        "C.GradOperation(sens_param=True)(lambda a, b: a * b)(row, row * 3, Tensor([[1.0, 10.0]]))",
        [[3, 60]],
    ),
    ("len(C.GradOperation(True, sens_param=True)(lambda a, b: a * b)(row, row, row))", 2),
    ("C.GradOperation(True, sens_param=True)(lambda a, b: a * b)(row, row * 3, row)[1]", [[1, 4]]),
    ("ops.GradOperation(get_by_list=True)(net)(row)[0]", [[1, 2]]),
    ("ops.GradOperation(get_by_list=True)(net, ms.ParameterTuple([net.bias]))(row)[0]", [1]),
    ("ops.GradOperation(get_all=True, get_by_list=True)(net, net.trainable_params())(row)[0][0]", [[1, 1]]),
    ("ops.GradOperation(get_all=True, get_by_list=True)(net, net.trainable_params())(row)[1][1]", [1]),
    ("C.HyperMap()(lambda a, b: a + b, [1, [2, 3]], (10, (20, 30)))[1]", [22, 33]),
    ("C.HyperMap(lambda a: a + 1)((1, 2))", [2, 3]),
    ("C.Map()(F.partial(lambda a, b: a - b, 5), (1, 2))", [4, 3]),
    ("nn.HSwish()(Tensor([1.0, -2.0]))", [0.6666667, -0.33333334]),
    ("nn.HSigmoid()(Tensor([1.0, -2.0]))", [0.6666667, 0.16666667]),
    ("nn.PReLU()(Tensor([[1.0, -2.0]]))", [[1, -0.5]]),
    ("nn.PReLU(3, Tensor([0.5, 1.0, 2.0]))(-x)[0, 2, 0]", [-18, -20]),
    ("nn.CELU(2.0)(Tensor([1.0, -2.0]))", [1, -1.2642411]),
    ("nn.SeLU()(Tensor([1.0, -2.0]))", [1.050701, -1.5201665]),
    ("nn.LogSigmoid()(Tensor([1.0, -2.0]))", [-0.31326124, -2.1269286]),
    ("nn.Hardtanh()(Tensor([1.5, -2.0]))", [1, -1]),
    ("nn.Mish()(Tensor([1.0, -2.0]))", [0.86509824, -0.25250134]),
    ("nn.Softsign()(Tensor([1.0, -2.0]))", [0.5, -0.6666667]),
]


def test_names_give_the_figures_of_mindspore():
    code = "".join(f"print(np.asarray({what}).tolist())\n" for what, _ in FIGURES)
    done = run(code)
    assert done.returncode == 0, done.stderr
    for (what, expected), line in zip(FIGURES, done.stdout.splitlines(), strict=True):
        found = numpy.array(eval(line))
        numpy.testing.assert_allclose(found, numpy.array(expected), rtol=3e-6, atol=1e-6, err_msg=what)


def test_batch_norm_as_a_class_writes_the_moving_statistics_in_training():
    done = run(
        """
mean = ms.Parameter(Tensor(np.zeros(3, np.float32)), name="mean")
variance = ms.Parameter(Tensor(np.ones(3, np.float32)), name="variance")
one, zero = Tensor(np.ones(3, np.float32)), Tensor(np.zeros(3, np.float32))
outputs = P.BatchNorm(is_training=True)(x, one, zero, mean, variance)
print(len(outputs), outputs[1].tolist(), outputs[2].tolist(), mean.asnumpy().tolist())
y = P.BatchNorm()(x, one, zero, mean, variance)[0]
print(abs(y[0, 0, 0, 0].item() - (1 - 0.85) / np.sqrt(variance.asnumpy()[0] + 1e-5)) < 1e-6)
"""
    )
    assert done.stdout.splitlines() == [
        "5 [8.5, 12.5, 16.5] [37.25, 37.25, 37.25] [0.8500000238418579, 1.25, 1.649999976158142]",
        "True",
    ], done.stderr


def test_a_net_of_primitives_is_traced_and_trained():
    done = run(
        """
ms.set_seed(1)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = P.Conv2D(out_channel=4, kernel_size=2, pad_mode="same")
        self.pool = P.MaxPool(2, 2)
        self.flatten = P.Flatten()
        self.weight = ms.Parameter(Tensor(np.ones((4, 3, 2, 2), np.float32) * 0.01), name="weight")
        self.fc = nn.Dense(4, 3)
        self.activation = nn.HSwish()

    def construct(self, images):
        return self.fc(self.flatten(self.pool(self.activation(self.conv(images, self.weight)))))

net = Net()
loss_fn = P.SparseSoftmaxCrossEntropyWithLogits()
grads = ops.GradOperation(get_by_list=True)(lambda a, b: loss_fn(net(a), b), net.trainable_params())
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
first = ops.cross_entropy(net(x), labels).item()
for _ in range(10):
    clip = F.partial(lambda limit, gradient: C.clip_by_value(gradient, -limit, limit), 1.0)
    optimizer(C.HyperMap()(clip, grads(x, labels)))
print(ops.cross_entropy(net(x), labels).item() < first)
"""
    )
    assert done.stdout == "True\n", done.stderr


DISPATCHES = """
scale = C.MultitypeFuncGraph("scale")

@scale.register("Number", "Tensor")
def scale_tensor(factor, value):
    return value * factor

@scale.register("Number", "Tuple")
def scale_tuple(factor, values):
    return tuple(scale(factor, value) for value in values)

@scale.register("Bool", "Tensor")
def keep(flag, value):
    return value

print(scale(2, row).tolist(), scale(2, (row,))[0].tolist(), scale(True, row).tolist())
print(C.HyperMap()(F.partial(scale, 3), (row, row))[1].tolist())
scale("a", row)
"""


def test_a_function_is_chosen_by_the_types_of_its_arguments():
    done = run(DISPATCHES)
    assert done.stdout.splitlines() == ["[[2.0, 4.0]] [[2.0, 4.0]] [[1.0, 2.0]]", "[[3.0, 6.0]]"]
    assert "ValueError" in done.stderr and "registered" in done.stderr


def test_the_context_can_be_asked():
    done = run(
        """
print(ms.get_context("mode"), ms.get_context("device_target"), ms.get_auto_parallel_context("device_num"))
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
print(ms.get_context("mode"), ms.get_auto_parallel_context("parallel_mode"))
print(ms.get_auto_parallel_context("gradients_mean"), ms.get_auto_parallel_context("global_rank"))
reducer = nn.DistributedGradReducer(net.trainable_params(), True, degree=1)
"""
    )
    assert done.stdout.splitlines() == ["0 CPU 1", "1 data_parallel", "True 0"], done.stderr


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("P.Conv2D(2, 1, mode=2)", r"NotImplementedError.*mindspore\.ops\.Conv2D\(mode=2\).*provided"),
        ("P.MaxPool(2, data_format='NHWC')", r"mindspore\.ops\.MaxPool\(data_format='NHWC'\).*provided"),
        ("P.MaxPool(2, pad_mode='pad')", r"ValueError.*MaxPool.*pad_mode.*same.*valid.*'pad'"),
        ("P.Conv2D(3, 2)(x, ones)", r"ValueError.*Conv2D.*3 channels.*kernel.*\(2, 2\)"),
        ("P.Conv2D(2, 2, stride=(1, 2, 3))", r"ValueError.*stride.*\(1, 1, h, w\)"),
        ("P.AllReduce('mean')(x)", r"mindspore\.ops\.AllReduce\(op='mean'\).*provided"),
        (
            "ops.nll_loss(logits, labels, label_smoothing=0.1)",
            r"nll_loss\(label_smoothing=0\.1\).*provided",
        ),
        ("ops.kl_div(logits, logits, 'average')", r"ValueError.*kl_div.*reduction"),
        ("ops.GradOperation(get_all=1)", r"TypeError.*GradOperation.*get_all.*not 1"),
        (
            "ops.GradOperation(get_by_list=True)(len)",
            r"TypeError.*GradOperation\(get_by_list=True\).*needs",
        ),
        (
            "C.Map()(lambda a, b: a, (1, 2), (1,))",
            r"ValueError.*length",
        ),
        ("C.MultitypeFuncGraph('f').register('Image')", r"register\('Image'\).*provided"),
        ("ms.get_context('no_such_key')", r"mindspore\.get_context\('no_such_key'\).*provided"),
        (
            "nn.DistributedGradReducer([net.bias], group='none')",
            r"ValueError.*no group 'none'",
        ),
        ("nn.Hardtanh(1.0, 0.0)", r"ValueError.*min_val 1\.0.*below.*max_val 0\.0"),
        ("P.DynamicRNN()(1)", r"mindspore\.ops\.DynamicRNN is not provided"),
    ],
)
def test_what_does_not_fit_is_said(statement, message):
    done = run(
        f"try:\n    {statement}\nexcept Exception as error:\n    print(type(error).__name__ + ':', error)"
    )
    assert re.search(message, done.stdout), done.stdout + done.stderr
