"""Steps that call a cell and then take its gradient make one forward pass, as in MindSpore."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["PYNATIVE_MODE", "GRAPH_MODE"], autouse=True)
def _mode(request):
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(64, np.float32)), name="weight")
        self.dropout = nn.Dropout(p=0.5)
        self.norm = nn.BatchNorm1d(1)

    def construct(self, x):
        return self.dropout(self.weight * x).sum() + 0 * self.norm(x[:, None]).sum()


class Step(nn.Cell):
    def __init__(self, network, with_sens):
        super().__init__(auto_prefix=False)
        self.network, self.weights = network, ParameterTuple(network.trainable_params())
        self.network.set_grad()
        self.grad = ops.GradOperation(get_by_list=True, sens_param=with_sens)
        self.with_sens = with_sens

    def construct(self, x):
        loss = self.network(x)
        sens = (ops.ones_like(loss),) if self.with_sens else ()
        return loss, self.grad(self.network, self.weights)(x, *sens)


ROWS = Tensor(np.arange(64, dtype=np.float32) / 64 + 1)


def mean_of(net):
    return float(net.norm.moving_mean.asnumpy()[0])


@pytest.mark.parametrize("with_sens", [False, True])
def test_a_step_is_one_forward_pass(with_sens):
    net = Net()
    step = Step(net, with_sens).set_train()
    for mean in (0.1492187, 0.2835156):
        loss, gradients = step(ROWS)
        # The weights are 1, so that the loss is the sum of their gradients where both left out the same.
        assert float(loss) == pytest.approx(float(gradients[0].sum()), rel=1e-6)
        assert mean_of(net) == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize(
    "of", [{"get_all": True}, {"get_by_list": True}, {"get_all": True, "get_by_list": True}]
)
def test_a_gradient_by_anything_goes_on_with_the_call(of):
    class Both(nn.Cell):
        def __init__(self, network):
            super().__init__()
            self.network, self.weights = network, ParameterTuple(network.trainable_params())
            self.network.set_grad()
            self.grad = ops.GradOperation(**of)

        def construct(self, x):
            loss = self.network(x)
            weights = (self.weights,) if "get_by_list" in of else ()
            return loss, self.grad(self.network, *weights)(x)

    net = Net()
    loss, gradients = Both(net).set_train()(ROWS)
    of_inputs = gradients[0][0] if len(of) == 2 else gradients[0]
    assert float(loss) == pytest.approx(float((of_inputs * (ROWS if "get_all" in of else 1)).sum()), rel=1e-6)
    assert mean_of(net) == pytest.approx(0.1492187, rel=1e-5)


def test_a_gradient_for_other_inputs_is_a_pass_of_its_own():
    net = Net()
    net.set_grad().set_train()
    grad = ops.GradOperation(get_by_list=True)(net, ParameterTuple(net.trainable_params()))
    net(ROWS)
    grad(ROWS + 1)
    assert mean_of(net) == pytest.approx(0.9 * 0.1492187 + 0.1 * 2.492187, rel=1e-5)


def test_what_a_step_writes_between_is_seen():
    class Twice(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor([2.0]), name="weight")
            self.weights = ParameterTuple([self.weight])
            self.grad = ops.GradOperation(get_by_list=True)
            self.square = Square(self.weight)
            self.square.set_grad()

        def construct(self, x):
            before = self.square(x)
            ops.assign(self.weight, self.weight * 2)
            return before, self.grad(self.square, self.weights)(x)[0]

    class Square(nn.Cell):
        def __init__(self, weight):
            super().__init__()
            self.weight = weight

        def construct(self, x):
            return (self.weight * self.weight * x).sum()

    before, gradient = Twice()(Tensor([1.0]))
    assert (float(before), float(gradient)) == (4, 8)
