"""What optimizers of scripts, often copies of MindSpore's own, read of themselves."""

import copy
import sys

import numpy
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, nn, ops

_step = ops.MultitypeFuncGraph("step")


@_step.register("Tensor", "Tensor", "Tensor", "Tensor", "Bool", "Bool")
def _one_step(rate, decay, parameter, gradient, decays, filtered):
    update = gradient
    if decays:
        update = update + decay * parameter
    return ops.depend(gradient, ops.assign(parameter, parameter - rate * update)) if filtered else gradient


class Decoupled(nn.Optimizer):
    """Written as the copies of AdamWeightDecay in scripts for language models are."""

    def __init__(self, params, learning_rate=0.5, weight_decay=0.25):
        super().__init__(learning_rate, params, weight_decay)
        self.hyper_map = ops.HyperMap()

    def construct(self, gradients):
        decay, rate = self.get_weight_decay(), self.get_lr()
        step = ops.partial(_step, rate)
        if self.is_group:
            return self.hyper_map(
                step, decay, self.parameters, gradients, self.decay_flags, self.optim_filter
            )
        step = ops.partial(step, decay)
        return self.hyper_map(step, self.parameters, gradients, self.decay_flags, self.optim_filter)


class Normed(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Dense(1, 1, weight_init="ones", bias_init="zeros"), nn.LayerNorm((1,))


def groups(net):
    weights = [each for each in net.trainable_params() if each.name == "fc.weight"]
    others = [each for each in net.trainable_params() if each.name != "fc.weight"]
    return [{"params": weights, "weight_decay": 0.5}, {"params": others, "weight_decay": 0.0}]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("grouped", [False, True])
def test_an_optimizer_of_a_script_decays_what_its_flags_say(mode, grouped):
    ms.set_context(mode=mode)
    net = Normed()
    optimizer = Decoupled(groups(net) if grouped else net.trainable_params())
    gradients = tuple(ops.zeros_like(each) for each in optimizer.parameters)
    optimizer(gradients)
    after = {each.name: each.asnumpy().item() for each in net.trainable_params()}
    assert after == {"fc.weight": 0.75 if grouped else 0.875, "fc.bias": 0, "norm.gamma": 1, "norm.beta": 0}


def test_flags_of_decay_are_by_group_or_by_name():
    net = Normed()
    plain = nn.Momentum(net.trainable_params(), 0.1, 0.9, weight_decay=0.1)
    assert plain.decay_flags == (True, True, False, False)
    assert (plain.exec_weight_decay, plain.dynamic_weight_decay, plain.need_scale) == (True, False, False)
    assert not nn.Momentum(net.trainable_params(), 0.1, 0.9).exec_weight_decay
    assert nn.Momentum(net.trainable_params(), 0.1, 0.9, loss_scale=2.0).need_scale
    grouped = nn.Momentum(groups(net), 0.1, 0.9)
    assert grouped.decay_flags == (True, False, False, False)
    assert grouped.dynamic_decay_flags == (False,) * 4
    assert grouped.group_weight_decay == [0.5, 0.0, 0.0, 0.0]
    assert [rate.asnumpy().item() for rate in grouped.group_lr] == [numpy.float32(0.1)] * 4
    assert not hasattr(plain, "group_lr")


def test_a_decay_that_follows_the_step_is_seen_in_the_flags():
    class Falling(nn.Cell):
        def construct(self, step):
            return Tensor(0.1) / (step + 1)

    net = Normed()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9, weight_decay=Falling())
    assert optimizer.dynamic_weight_decay and optimizer.dynamic_decay_flags and optimizer.exec_weight_decay


def test_a_script_may_set_what_optimizers_have():
    optimizer = Decoupled(Normed().trainable_params())
    optimizer.decay_flags = (False,) * 4
    assert optimizer.decay_flags == (False,) * 4


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_list_of_learning_rates_is_called_with_steps(mode):
    ms.set_context(mode=mode)
    net = Normed()
    optimizer = nn.Momentum(net.trainable_params(), [0.5, 0.25, 0.125], 0.9)
    optimizer(tuple(ops.zeros_like(each) for each in optimizer.parameters))
    assert optimizer.learning_rate(optimizer.global_step).asnumpy().tolist() == [0.25]
    assert optimizer.learning_rate(Tensor(2)).asnumpy().tolist() == 0.125
    assert optimizer.learning_rate.learning_rate.asnumpy().tolist() == [0.5, 0.25, 0.125]
    assert optimizer.get_lr().asnumpy().tolist() == 0.25 and optimizer.dynamic_lr


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_an_optimizer_of_a_script_calls_its_learning_rates(mode):
    class Own(nn.Optimizer):
        def construct(self, gradients):
            rate = self.learning_rate(self.global_step)
            self.assignadd(self.global_step, self.global_step_increase_tensor)
            return ops.assign(self.parameters[0], self.parameters[0] - rate * gradients[0])

    ms.set_context(mode=mode)
    net = nn.Dense(1, 1, weight_init="ones", has_bias=False)
    optimizer = Own([0.5, 0.25], net.trainable_params())
    seen = []
    for _ in range(2):
        optimizer((Tensor([[1.0]]),))
        seen.append(net.weight.asnumpy().item())
    assert seen == [0.5, 0.25]


def test_rates_of_groups_are_called_too():
    net = Normed()
    first, *others = net.trainable_params()
    groups = [{"params": [first], "lr": [0.5, 0.25]}, {"params": others}]
    optimizer = nn.Momentum(groups, [0.125, 0.0625], 0.9)
    assert [rate(Tensor(1)).asnumpy().item() for rate in optimizer.learning_rate[:2]] == [0.25, 0.0625]
    assert optimizer.get_lr_parameter(first).asnumpy().tolist() == [0.5, 0.25]


def _names(parameters):
    return [parameter.name for parameter in parameters]


def test_what_an_optimizer_updates_is_among_its_parameters():
    net = nn.Dense(2, 1)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    names = ["learning_rate", "global_step", "weight", "bias", "moments.weight", "moments.bias"]
    assert _names(optimizer.get_parameters()) == list(optimizer.parameters_dict()) == names
    assert [name for name, _ in optimizer.parameters_and_names()] == names
    assert [name for name, _ in optimizer.parameters_and_names("o")] == [f"o.{name}" for name in names]
    assert _names(optimizer.trainable_params()) == ["weight", "bias"]
    assert _names(optimizer.moments) == names[-2:] and optimizer.parameters_dict()["weight"] is net.weight


def test_a_parameter_that_an_optimizer_of_a_script_holds_by_itself_is_there_once():
    class Holding(nn.Optimizer):
        def __init__(self, params):
            super().__init__(0.1, params)
            self.sums = self.parameters.clone("sums", "zeros")
            self.first = self.parameters[0]

    optimizer = Holding(nn.Dense(2, 1).trainable_params())
    names = ["learning_rate", "global_step", "weight", "bias", "sums.weight", "sums.bias"]
    assert sorted(_names(optimizer.get_parameters())) == sorted(names)


def test_a_training_step_has_each_parameter_once():
    net = nn.Dense(2, 1)
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), learning_rate=0.1)
    )
    names = _names(step.get_parameters())
    assert len(names) == len(set(names)) and {"weight", "bias", "moment1.bias"} <= set(names)
    assert _names(step.trainable_params()) == ["weight", "bias"]


def test_the_file_of_an_optimizer_brings_the_weights_back(tmp_path):
    def made(weight):
        net = nn.Dense(1, 1, weight_init=weight, has_bias=False)
        return net, nn.Momentum(net.trainable_params(), 0.5, 0.5)

    net, optimizer = made("ones")
    optimizer((Tensor([[1.0]]),))
    ms.save_checkpoint(optimizer, str(tmp_path / "optimizer.ckpt"))
    again, other = made("zeros")
    missing, left = ms.load_param_into_net(other, ms.load_checkpoint(str(tmp_path / "optimizer.ckpt")))
    assert not missing and not left
    assert again.weight.asnumpy().tolist() == net.weight.asnumpy().tolist() == [[0.5]]
    for each in (optimizer, other):
        each((Tensor([[1.0]]),))
    assert again.weight.asnumpy().tolist() == net.weight.asnumpy().tolist() == [[-0.25]]


def test_a_network_is_copied_though_an_optimizer_has_its_parameters():
    net = nn.Dense(1, 1, weight_init="ones")
    optimizer = nn.Momentum(net.trainable_params(), 0.5, 0.5)
    with pytest.raises(TypeError, match="is not copied"):
        copy.deepcopy(nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer))
    copied = copy.deepcopy(net)
    optimizer((Tensor([[1.0]]), Tensor([1.0])))
    assert copied.weight.asnumpy().tolist() == [[1]] and net.weight.asnumpy().tolist() == [[0.5]]
