"""Gradients of what a parameter gives of itself."""

import mindspore
import pytest
from mindspore import Parameter, Tensor, nn

MODES = pytest.mark.parametrize("mode", [mindspore.GRAPH_MODE, mindspore.PYNATIVE_MODE])


class Tied(nn.Cell):
    """Uses its table twice: as it is, and as what a member gives of it."""

    def __init__(self, member):
        super().__init__()
        self.member = member
        self.table = Parameter(Tensor([[1.0, 2.0], [3.0, 4.0]]), name="table")

    def construct(self, x):
        return ((x @ self.table) @ getattr(self.table, self.member)()).sum()


@MODES
@pytest.mark.parametrize("member", ["value", "copy"])
def test_gradients_flow_through_what_a_parameter_gives_of_itself(mode, member):
    mindspore.set_context(mode=mode)
    net = Tied(member)
    (gradient,) = mindspore.grad(net, None, net.trainable_params())(Tensor([[1.0, 1.0]]))
    assert gradient.asnumpy().tolist() == [[7.0, 11.0], [9.0, 13.0]]  # MindSpore 2.7.0's


@MODES
def test_gradients_flow_through_the_copy_of_a_tensor_that_changes_by_itself(mode):
    mindspore.set_context(mode=mode)

    def product(x):
        mine = (x * 1).copy()
        mine[0] = 5.0
        return (mine * x).sum()

    assert mindspore.grad(product)(Tensor([1.0, 2.0])).asnumpy().tolist() == [5.0, 4.0]
