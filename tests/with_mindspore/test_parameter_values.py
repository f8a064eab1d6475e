"""Gradients of what a parameter gives of itself."""

import mindspore
import pytest
from mindspore import Parameter, Tensor, nn


class Tied(nn.Cell):
    """Uses its table twice: as it is, and as what value() gives."""

    def __init__(self):
        super().__init__()
        self.table = Parameter(Tensor([[1.0, 2.0], [3.0, 4.0]]), name="table")

    def construct(self, x):
        return ((x @ self.table) @ self.table.value()).sum()


@pytest.mark.parametrize("mode", [mindspore.GRAPH_MODE, mindspore.PYNATIVE_MODE])
def test_gradients_flow_through_the_value_of_a_parameter(mode):
    mindspore.set_context(mode=mode)
    net = Tied()
    (gradient,) = mindspore.grad(net, None, net.trainable_params())(Tensor([[1.0, 1.0]]))
    assert gradient.asnumpy().tolist() == [[7.0, 11.0], [9.0, 13.0]]  # MindSpore 2.7.0's
