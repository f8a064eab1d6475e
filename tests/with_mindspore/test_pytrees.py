"""What cells and functions take and give beside tensors, in both modes: as MindSpore 2.7.0 on a CPU."""

import dataclasses
from collections import OrderedDict, namedtuple

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

Pair = namedtuple("Pair", "first second")


class Output(dict):
    def __getattr__(self, name):
        return self[name]


@dataclasses.dataclass
class Batch:
    data: object
    label: object
    scale: int = 2


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["PYNATIVE_MODE", "GRAPH_MODE"], autouse=True)
def _mode(request):
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def ones(*shape):
    return Tensor(np.ones(shape, np.float32))


class Net(nn.Cell):
    def __init__(self, wrap):
        super().__init__()
        self.fc = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
        self.wrap = wrap

    def construct(self, x):
        return self.wrap(self.fc(x))


class Scaled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")

    def construct(self, batch):
        return (self.fc(batch.data) * batch.scale).sum()


def test_an_objects_tensors_and_numbers_are_those_of_the_call():
    net, batch = Scaled(), Batch(ones(2, 3), None)
    sums = [float(net(batch))]
    batch.scale = 3
    sums.append(float(net(batch)))
    batch.data = ones(4, 3)
    sums.append(float(net(batch)))
    assert sums == [24, 36, 72]


def test_parameters_have_gradients_where_the_argument_is_an_object():
    net = Scaled()
    value, (weight, bias) = ms.value_and_grad(net, None, net.trainable_params())(Batch(ones(2, 3), None))
    assert (float(value), weight.asnumpy().tolist(), bias.asnumpy().tolist()) == (24, [[4] * 3] * 2, [4, 4])


@pytest.mark.parametrize("kind", [Pair, Batch])
def test_model_trains_and_evaluates_a_network_that_returns(kind):
    class Loss(nn.Cell):
        def construct(self, outputs, label):
            return ((outputs[0] if kind is Pair else outputs.data) - label).abs().mean()

    columns = {"x": np.ones((4, 3), np.float32), "y": np.ones((4, 2), np.float32)}
    rows = ms.dataset.NumpySlicesDataset(columns, shuffle=False).batch(2)
    net = Net(lambda y: kind(y, y))
    model = ms.Model(net, Loss(), nn.SGD(net.trainable_params(), 0.5), metrics={"loss"})
    model.train(1, rows)
    assert model.eval(rows)["loss"] < 2
    assert type(model.predict(ones(2, 3))) is kind


@pytest.mark.parametrize("kind", [OrderedDict, Output])
def test_jit_keeps_the_class_of_a_dict(kind):
    result = ms.jit(lambda x: kind(twice=x * 2))(ones(2))
    assert type(result) is kind
    assert result["twice"].asnumpy().tolist() == [2, 2]


def test_a_step_that_returns_gradients_names_them():
    net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1), return_grad=True)
    _, gradients = step(ones(2, 3), ones(2, 2))
    assert {name: gradient.shape for name, gradient in gradients.items()} == {"weight": (2, 3), "bias": (2,)}
