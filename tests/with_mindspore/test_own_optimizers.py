"""What optimizers and functions of functions that scripts write themselves find, as in MindSpore 2.7.0."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops
from mindspore.experimental import optim
from mindspore.ops import composite
from mindspore.ops import functional as F  # noqa: N812


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], autouse=True)
def mode(request):
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


class Decay(nn.Cell):
    def construct(self, step):
        return Tensor(0.1, ms.float32) * step


class Idle(nn.Optimizer):
    def construct(self, gradients):
        return gradients


def _network():
    return nn.SequentialCell(nn.Dense(2, 2), nn.LayerNorm((2,)))


def test_norms_do_not_decay_where_no_groups_are_given():
    optimizer = Idle(0.1, _network().trainable_params(), 0.05)
    assert optimizer.decay_flags == (True, True, False, False)
    assert optimizer.dynamic_decay_flags is False
    assert optimizer.exec_weight_decay
    assert not optimizer.dynamic_weight_decay
    assert not optimizer.need_scale


def test_groups_say_which_parameters_decay():
    parameters = _network().trainable_params()
    decay = Decay()
    groups = [{"params": parameters[:1], "weight_decay": decay}, {"params": parameters[1:], "lr": 0.5}]
    optimizer = Idle(0.1, groups)
    assert optimizer.decay_flags == optimizer.dynamic_decay_flags == (True, False, False, False)
    assert optimizer.exec_weight_decay
    assert optimizer.dynamic_weight_decay
    assert optimizer.group_weight_decay == [decay, 0, 0, 0]
    assert [float(rate) for rate in optimizer.group_lr] == [np.float32(0.1), 0.5, 0.5, 0.5]


def test_nothing_decays_by_a_decay_of_nothing():
    optimizer = Idle(0.1, _network().trainable_params(), 0.0, 4.0)
    assert not optimizer.exec_weight_decay
    assert optimizer.need_scale
    assert float(optimizer.reciprocal_scale) == 0.25
    assert optimizer.cache_enable == optimizer.ps_parameters == (False,) * 4


def test_what_an_optimizer_finds_can_be_written():
    class Own(Idle):
        def __init__(self, parameters):
            super().__init__(0.1, parameters)
            self.decay_flags = (True,) * len(self.parameters)
            self.exec_weight_decay = True

    optimizer = Own(_network().trainable_params())
    assert optimizer.decay_flags == (True,) * 4
    assert optimizer.exec_weight_decay


_step = composite.MultitypeFuncGraph("step")


@_step.register("Tensor", "Number", "Tensor", "Tensor", "Tensor", "Bool")
def _step_of_one(rate, momentum, parameter, moment, gradient, decays):
    moment = F.depend(moment, F.assign(moment, moment * momentum + gradient))
    parameter_next = parameter - rate * moment
    if decays:
        parameter_next = parameter_next * 0.5
    return F.assign(parameter, parameter_next)


class Heavy(nn.Optimizer):
    def __init__(self, parameters, rate):
        super().__init__(rate, parameters)
        self.moments = self.parameters.clone(prefix="moments", init="zeros")

    def construct(self, gradients):
        gradients = self.flatten_gradients(gradients)
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        step = F.partial(_step, self.get_lr(), 0.5)
        return self.hyper_map_reverse(step, self._parameters, self.moments, gradients, self.decay_flags)


def test_an_optimizer_over_a_hyper_map_takes_its_steps():
    parameters = ParameterTuple(
        [Parameter(Tensor([2.0]), name="w"), Parameter(Tensor([4.0]), name="norm.gamma")]
    )
    optimizer = Heavy(parameters, 1.0)
    gradients = (Tensor([1.0]), Tensor([1.0]))
    optimizer(gradients)
    assert [each.asnumpy().tolist() for each in parameters] == [[0.5], [3]]
    optimizer(gradients)
    assert [each.asnumpy().tolist() for each in parameters] == [[-0.5], [1.5]]
    assert optimizer.global_step.asnumpy().tolist() == [2]


def _graph(*kinds):
    graph = ops.MultitypeFuncGraph("graph")
    graph.register("Ellipsis", "Ellipsis")(lambda x, y: "two")
    for kind in kinds:
        graph.register(kind)(lambda x, kind=kind: str(kind))
    return graph


@pytest.mark.parametrize(
    ("kind", "fits", "does_not"),
    [
        ("Int64", 3, True),
        ("Float64", 1.5, 3),
        (ms.int64, 3, 1.5),
        ("Number", True, Tensor(1)),
        ("Tensor[Float32]", Tensor(1.0), Tensor(1)),
        (ms.dtype.TensorType(ms.int64), Tensor(1), Tensor(1.0)),
        ("Slice", slice(1, 2), 1),
        ("Int32", None, 3),
    ],
)
def test_functions_are_chosen_by_dtypes(kind, fits, does_not):
    graph = _graph(kind)
    if fits is not None:
        assert graph(fits) == str(kind)
    with pytest.raises(ValueError, match="no function is registered"):
        graph(does_not)


def test_the_only_function_takes_what_it_is_given():
    graph = ops.MultitypeFuncGraph("scaled")

    @graph.register("Tensor", "Tensor")
    def scaled(factor, x):
        return x * factor

    assert graph(2, Tensor([1.0])).asnumpy().tolist() == [2]
    assert graph(Parameter(Tensor([3.0]), name="p"), Tensor([1.0])).asnumpy().tolist() == [3]


def test_an_unknown_kind_is_refused():
    with pytest.raises(NotImplementedError, match="register"):
        ops.MultitypeFuncGraph("f").register("Tensor", "Tuple[Int64]")


class Listening(nn.Optimizer):
    """Reads its rates as optimizers of libraries do."""

    def construct(self, gradients):
        rates = self.learning_rate
        if self.is_group_lr and self.dynamic_lr:
            rates = tuple(rate(self.global_step).reshape(()) for rate in rates)
        elif self.dynamic_lr:
            rates = (rates(self.global_step).reshape(()),) * len(gradients)
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        for rate, parameter, gradient in zip(rates, self.parameters, gradients, strict=True):
            ops.assign(parameter, parameter - rate * gradient)
        return True


@pytest.mark.parametrize("rates", [[1.0, 2.0, 4.0], nn.PolynomialDecayLR(4.0, 1.0, 2, 1.0)])
def test_rates_of_steps_are_called_with_a_step(rates):
    parameter = Parameter(Tensor([0.0]), name="w")
    optimizer = Listening(rates, [parameter])
    assert isinstance(optimizer.learning_rate, nn.Cell)
    found = []
    for _ in range(4):
        before = parameter.asnumpy().item()
        optimizer((Tensor([1.0]),))
        found.append(before - parameter.asnumpy().item())
    assert found == ([1, 2, 4, 4] if isinstance(rates, list) else [4, 2.5, 1, 1])


def test_rates_of_groups_are_all_called_where_one_is():
    first, second = (Parameter(Tensor([0.0]), name=name) for name in "ab")
    optimizer = Listening(0.5, [{"params": [first], "lr": [1.0, 2.0]}, {"params": [second]}])
    for _ in range(2):
        optimizer((Tensor([1.0]), Tensor([1.0])))
    assert (first.asnumpy().item(), second.asnumpy().item()) == (-3, -1)


def _batches():
    x = np.arange(8, dtype=np.float32).reshape(4, 2) / 8
    return ds.NumpySlicesDataset((x, np.ones((4, 1), np.float32)), ["x", "y"], shuffle=False).batch(2)


def _trained(make, **settings):
    """The weights behind two epochs of Model.train, and what callbacks found as the optimizer."""
    found = []

    class Look(ms.train.Callback):
        def on_train_step_end(self, run_context):
            found.append(run_context.original_args().optimizer)

    net = nn.Dense(2, 1, "ones", "zeros")
    optimizer = make(net.trainable_params())
    ms.Model(net, nn.MSELoss(), optimizer, **settings).train(2, _batches(), Look(), dataset_sink_mode=False)
    return net.weight.asnumpy(), found, optimizer


@pytest.mark.parametrize(
    "settings", [{}, {"loss_scale_manager": ms.DynamicLossScaleManager(2.0, 2, 100)}], ids=["plain", "scaled"]
)
def test_model_trains_with_an_optimizer_of_groups(settings):
    weights, found, optimizer = _trained(
        lambda parameters: optim.SGD(parameters, 0.1, momentum=0.9), **settings
    )
    expected, _, _ = _trained(lambda parameters: nn.Momentum(parameters, 0.1, 0.9))
    assert np.allclose(weights, expected, atol=1e-6)
    assert len(found) == 4 and all(each is optimizer for each in found)
    assert int(optimizer.step) == 4


def test_model_follows_the_rate_of_an_optimizer_of_groups():
    class Slower(ms.train.Callback):
        def on_train_epoch_end(self, run_context):
            ops.assign(run_context.original_args().optimizer.param_groups[0]["lr"], Tensor(0.0))

    net = nn.Dense(2, 1, "ones", "zeros")
    model = ms.Model(net, nn.MSELoss(), optim.Adam(net.trainable_params(), 0.1))
    model.train(1, _batches(), dataset_sink_mode=False)
    first = net.weight.asnumpy()
    model.train(1, _batches(), Slower(), dataset_sink_mode=False)
    second = net.weight.asnumpy()
    model.train(1, _batches(), dataset_sink_mode=False)
    assert not np.allclose(first, second) and (net.weight.asnumpy() == second).all()


@pytest.mark.parametrize(
    "make",
    [lambda given: optim.Adam(given, 0.1), lambda given: optim.SGD(given, 0.1, momentum=0.9), optim.Adadelta],
    ids=["Adam", "SGD", "Adadelta"],
)
def test_a_checkpoint_of_an_optimizer_of_groups_holds_its_states(make, tmp_path):
    gradients = (Tensor([[1.0, 2.0]]), Tensor([3.0]))
    files = [str(tmp_path / name) for name in ("net.ckpt", "optimizer.ckpt")]
    net = nn.Dense(2, 1, "ones", "zeros")
    optimizer = make(net.trainable_params())
    optimizer(gradients)
    ms.save_checkpoint(net, files[0])
    ms.save_checkpoint(optimizer, files[1])
    optimizer(gradients)

    again = nn.Dense(2, 1)
    resumed = make(again.trainable_params())
    assert ms.load_param_into_net(again, ms.load_checkpoint(files[0])) == ([], [])
    assert ms.load_param_into_net(resumed, ms.load_checkpoint(files[1])) == ([], [])
    resumed(gradients)
    assert (again.weight.asnumpy() == net.weight.asnumpy()).all()


def test_a_training_step_takes_an_optimizer_of_groups():
    net = nn.Dense(2, 1, "ones", "zeros")
    optimizer = optim.SGD(net.trainable_params(), 0.1)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    x, y = Tensor(np.ones((2, 2)), ms.float32), Tensor(np.ones((2, 1)), ms.float32)
    assert [round(float(step(x, y)), 5) for _ in range(2)] == [1, 0.16]
    assert np.allclose(net.weight.asnumpy(), 0.72) and int(optimizer.step) == 2
    with pytest.raises(TypeError, match="TrainOneStepCell: optimizer is an Optimizer, not Dense"):
        nn.TrainOneStepCell(net, net)
