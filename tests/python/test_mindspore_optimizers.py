"""Optimizers of mindspore.nn that are made of ops, and those of scripts: training steps, wrong arguments."""

NETWORK = """
import numpy as np
from mindspore import nn

def trained(make):
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), make(net.trainable_params()))
    x = Tensor(np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32))
    y = Tensor((np.arange(16) % 2).astype(np.int32))
    return [float(step(x, y)) for _ in range(20)], step.optimizer
"""
NAMES = ("ASGD", "AdaFactor", "AdaMax", "Adadelta", "LazyAdam", "ProximalAdagrad", "Rprop")


def test_they_train_alike_in_graph_and_eager_mode_and_are_saved(run_with_mindspore, tmp_path):
    run_with_mindspore(f"""
{NETWORK}
for name in {NAMES}:
    found = []
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        losses, optimizer = trained(getattr(nn, name))
        assert losses[-1] < losses[0], (name, losses)
        found.append(losses)
        assert optimizer.global_step.asnumpy().tolist() == [20]
    assert np.allclose(*found, rtol=1e-5), (name, found)
    ms.save_checkpoint(optimizer, {str(tmp_path / "o.ckpt")!r})
    assert ms.load_param_into_net(optimizer, ms.load_checkpoint({str(tmp_path / "o.ckpt")!r})) == ([], [])
""")


def test_an_optimizer_of_a_script_gets_all_gradients_as_one_argument(run_with_mindspore):
    run_with_mindspore(f"""
{NETWORK}
class Mine(nn.Optimizer):
    def __init__(self, params):
        super().__init__(0.1, params)

    def construct(self, gradients):
        for parameter, gradient in zip(self.parameters, gradients):
            ops.assign(parameter, parameter - 0.1 * gradient)
        return True

class Doubled(nn.SGD):
    def construct(self, gradients):
        return super().construct(tuple(2 * each for each in gradients))

for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
    ms.set_context(mode=mode)
    wanted = trained(lambda parameters: nn.SGD(parameters, 0.1))[0]
    assert np.allclose(trained(Mine)[0], wanted, rtol=1e-5)
    assert np.allclose(trained(lambda parameters: Doubled(parameters, 0.05))[0], wanted, rtol=1e-5)
""")


def test_an_optimizer_of_a_script_maps_over_its_moments_as_in_mindspore(run_with_mindspore):
    """Losses of MindSpore 2.7.0."""
    run_with_mindspore("""
import numpy as np
from mindspore import nn
from mindspore.ops import composite as C, functional as F

rng = np.random.RandomState(1)
update = C.MultitypeFuncGraph("update")

@update.register("Tensor", "Tensor", "Tensor", "Tensor", "Tensor")
def _update(rate, beta, parameter, moment, gradient):
    moved = beta * moment + (1 - beta) * ops.sign(gradient)
    stored = F.assign(moment, moved)
    return F.depend(F.assign(parameter, parameter - rate * moved), stored)

class Signum(nn.Optimizer):
    def __init__(self, params):
        super().__init__(0.01, params, 0.01)
        self.moments = self.parameters.clone(prefix="moment", init="zeros")
        self.beta = Tensor(0.9, ms.float32)
        self.hyper_map = C.HyperMap()

    def construct(self, gradients):
        gradients = self.scale_grad(self.decay_weight(gradients))
        partial = F.partial(update, self.get_lr(), self.beta)
        return self.hyper_map(partial, self.parameters, self.moments, gradients)

def dense(inputs, outputs):
    weight = Tensor((rng.randn(outputs, inputs) * 0.2).astype(np.float32))
    return nn.Dense(inputs, outputs, weight_init=weight, bias_init="zeros")

net = nn.SequentialCell(dense(6, 12), nn.Tanh(), dense(12, 1))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), Signum(net.trainable_params()))
losses = []
for _ in range(20):
    x = rng.randn(16, 6).astype(np.float32)
    losses.append(float(step(Tensor(x), Tensor(np.sin(x.sum(1, keepdims=True)).astype(np.float32)))))
assert np.allclose(losses[4::5], [0.7352794, 0.6079081, 0.5174813, 0.5259998], rtol=1e-5), losses
""")


def test_jacobians_and_directions_are_those_of_the_formulas(run_with_mindspore):
    run_with_mindspore("""
import numpy as np

x, w = (Tensor(np.random.RandomState(0).randn(*s).astype(np.float32)) for s in ((2, 3), (3, 2)))
def two(a, b):
    return ops.matmul(a, b), (a * a).sum()
def sines(a):
    return ops.sin(a).sum()
def aside(a):
    return a ** 2, a + 1
def near(a, b):
    return np.allclose(a.asnumpy(), b, rtol=1e-5, atol=1e-6)

for jacobian in (ms.jacrev, ms.jacfwd):
    (by_x, by_w), (square, none) = jacobian(two, (0, 1))(x, w)
    assert near(by_x, np.einsum("ik,lj->ijkl", np.eye(2), w.asnumpy()))
    assert near(by_w, np.einsum("il,jk->ijlk", x.asnumpy(), np.eye(2)))
    assert near(square, 2 * x.asnumpy()) and near(none, np.zeros((3, 2)))
    hessian = jacobian(ms.jacrev(sines))(x).reshape(6, 6)
    assert near(hessian, np.diag(-np.sin(x.asnumpy().ravel())))
    made, other = jacobian(aside, has_aux=True)(x)
    assert near(made.reshape(6, 6), np.diag(2 * x.asnumpy().ravel())) and near(other, x.asnumpy() + 1)
_, (moved, change) = ms.jvp(two, (x, w), (x, w))
assert near(moved, 2 * x.asnumpy() @ w.asnumpy()) and near(change, 2 * (x.asnumpy() ** 2).sum())
""")


def test_arguments_that_have_no_meaning_are_refused(run_with_mindspore):
    run_with_mindspore("""
def refused(kind, make):
    try:
        make([Parameter(Tensor([1.0]), name="w")])
    except kind:
        return
    raise AssertionError(make)

from mindspore import Parameter, nn
refused(ValueError, lambda p: nn.Adadelta(p, rho=1.5))
refused(ValueError, lambda p: nn.AdaMax(p, beta1=1.0))
refused(ValueError, lambda p: nn.ProximalAdagrad(p, l1=-1.0))
refused(TypeError, lambda p: nn.ASGD(p, t0=1))
refused(TypeError, lambda p: nn.Rprop(p, etas=[0.5, 1.2]))
refused(ValueError, lambda p: nn.Rprop(p, etas=(0.5, 0.9)))
refused(ValueError, lambda p: nn.Rprop(p, step_sizes=(2.0, 1.0)))
refused(ValueError, lambda p: nn.AdaFactor(p, 0.1))
refused(ValueError, lambda p: nn.AdaFactor(p, relative_step=False))
refused(ValueError, lambda p: nn.AdaFactor(p, 0.1, relative_step=False, warmup_init=True))
refused(NotImplementedError, lambda p: nn.AdaFactor(p, compression=True))
""")


def test_random_ops_draw_the_same_again_after_a_second_set_seed(run_with_mindspore):
    run_with_mindspore("""
for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
    ms.set_context(mode=mode)
    draws = []
    for _ in range(2):
        ms.set_seed(5)
        draws.append([ops.standard_normal((3,)).asnumpy().tolist() for _ in range(2)])
    assert draws[0] == draws[1] and draws[0][0] != draws[0][1]
""")


def test_a_training_that_goes_on_from_its_last_checkpoint_ends_with_the_same_bits(
    run_with_mindspore, tmp_path
):
    run_with_mindspore(f"""
import pathlib
import mindspore.dataset as ds
from mindspore import nn

random = numpy.random.default_rng(0)
rows = random.standard_normal((40, 6)).astype("float32"), random.integers(0, 3, 40).astype("int32")

def trained(make, folder, *calls):
    for epochs, settings in calls:
        ms.set_seed(3)
        net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3))
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        model = ms.Model(net, loss, make(net.trainable_params()))
        keep = ms.ModelCheckpoint("net", str(folder), ms.CheckpointConfig(save_checkpoint_steps=5))
        data = ds.NumpySlicesDataset(rows, ["x", "y"], shuffle=False).batch(8)
        model.train(epochs, data, callbacks=keep, **settings)
    return [each.asnumpy().tobytes() for each in net.get_parameters()]

for name in {NAMES}:
    place = pathlib.Path({str(tmp_path)!r}, name)
    at_once = trained(getattr(nn, name), place / "once", (4, {{}}))
    in_two = trained(getattr(nn, name), place / "two", (2, {{}}), (4, {{"resume": "last"}}))
    assert in_two == at_once, name
""")
