"""Functions around cells: where a cell has a bprop, and where construct registers them."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Tensor, nn


class Steep(nn.Cell):
    """Twice x, with five times x as its gradient."""

    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (x * 5 * dout,)


class Pair(nn.Cell):
    """A product and a sum, whose gradients are not their own."""

    def construct(self, x, y):
        return x * y, x + y

    def bprop(self, x, y, out, dout):
        return dout[0] * 2, dout[1] * 3


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], autouse=True)
def mode(request):
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=before)


def test_backward_hooks_see_the_gradients_of_a_cell_with_a_bprop():
    seen = []
    cell = Steep()
    cell.register_backward_hook(lambda _, flows_in, flows_out: seen.append((*flows_in, *flows_out)))
    cell.register_backward_pre_hook(lambda _, flows_out: seen.append(flows_out))
    assert ms.grad(lambda x: cell(x) * 3)(Tensor([2.0])).asnumpy() == 30
    assert [[each.asnumpy().item() for each in call] for call in seen] == [[3], [30, 3]]


def test_backward_hooks_change_the_gradients_of_a_cell_with_a_bprop():
    cell = Pair()
    handle = cell.register_backward_hook(lambda _, flows_in, __: (flows_in[0] + 1, flows_in[1]))
    cell.register_backward_pre_hook(lambda _, flows_out: (flows_out[0] * 10, flows_out[1]))

    def weighed(x, y):
        product, total = cell(x, y)
        return product * 2 + total

    gradients = ms.grad(weighed, (0, 1))
    assert [each.asnumpy().item() for each in gradients(Tensor([1.0]), Tensor([2.0]))] == [41, 3]
    handle.remove()
    assert [each.asnumpy().item() for each in gradients(Tensor([1.0]), Tensor([2.0]))] == [40, 3]


def test_forward_hooks_may_see_and_change_arguments_by_name():
    class Shifted(nn.Cell):
        def construct(self, x, shift=0.0):
            return x + shift

    net, seen = Shifted(), []
    net.register_forward_pre_hook(lambda cell, args, kwargs: seen.append(dict(kwargs)), with_kwargs=True)
    net.register_forward_pre_hook(
        lambda cell, args, kwargs: (args, {"shift": kwargs["shift"] * 2}), with_kwargs=True
    )
    net.register_forward_hook(lambda cell, args, kwargs, out: out * kwargs["shift"], with_kwargs=True)
    assert net(Tensor([1.0]), shift=3.0).tolist() == [42]
    assert seen == [{"shift": 3}]


def test_a_forward_pre_hook_with_names_that_gives_one_value_is_an_error():
    net = nn.ReLU()
    net.register_forward_pre_hook(lambda cell, args, kwargs: args[0], with_kwargs=True)
    with pytest.raises(RuntimeError, match="None or \\(args, kwargs\\), not"):
        net(Tensor([1.0]))


def test_a_hook_that_construct_registers_is_registered_once_a_call():
    class Late(nn.Cell):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def construct(self, x):
            self.act.register_forward_hook(lambda _, __, result: result * 2)
            return self.act(x)

    cell = Late()
    assert [cell(Tensor([3.0])).asnumpy().item() for _ in range(3)] == [6, 12, 24]
    assert ms.grad(Late())(Tensor([3.0])).asnumpy() == 2
