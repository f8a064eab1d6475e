"""Functions with gradients of their own: classes with forward() and backward(), as in MindSpore 2.7.0."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common._grad_function import _Function


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], autouse=True)
def mode(request):
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


class Squared(_Function):
    """Its gradient is ten times that of the square."""

    @staticmethod
    def forward(ctx, x, factor, shift=0.0):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * factor + shift

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x * (20 * ctx.factor), None


class Two(_Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, of_product, of_sum):
        x, y = ctx.saved_tensors
        return of_product * y + of_sum, of_product * x + 10 * of_sum


def test_a_function_has_the_gradient_that_its_class_says():
    def summed(x):
        return Squared.apply(x, 2, shift=1.0).sum()

    assert Squared.apply(Tensor([3.0]), 2, shift=1.0).asnumpy().tolist() == [19]
    assert ms.grad(summed)(Tensor([1.0, 3.0])).asnumpy().tolist() == [40, 120]


def test_gradients_go_to_the_parameters_of_a_cell_that_applies_it():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor([2.0]), name="w")

        def construct(self, x):
            product, both = Two.apply(x, self.w)
            return (Squared.apply(product, 1) + both).sum()

    net = Net()
    step = ms.value_and_grad(net, 0, net.trainable_params())
    for x in (1.0, 3.0):
        value, (of_x, (of_w,)) = step(Tensor([x]))
        assert value.asnumpy() == 4 * x * x + x + 2
        assert of_x.asnumpy().tolist() == [20 * 2 * x * 2 + 1]
        assert of_w.asnumpy().tolist() == [20 * 2 * x * x + 10]


def test_it_is_also_known_as_mindspore_function():
    assert ms._Function is _Function
    with pytest.raises(NotImplementedError, match="customized"):
        _Function.apply(ops.ones(1))


def test_a_gradient_for_each_argument_is_needed():
    class Short(Two):
        @staticmethod
        def backward(ctx, of_product, of_sum):
            return of_product

    def summed(x, y):
        return Short.apply(x, y)[0].sum()

    with pytest.raises(ValueError, match="1 gradients of 2 inputs"):
        ms.grad(summed)(Tensor([1.0]), Tensor([2.0]))
