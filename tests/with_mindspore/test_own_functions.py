"""Functions with gradients of their own: classes with forward() and backward(), as in MindSpore 2.7.0."""

import sys

import numpy as np
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

    words = "Function backward return a wrong number of gradients: 1 of 2 inputs"
    for error in (RuntimeError, ValueError):
        with pytest.raises(error, match=words):
            ms.grad(summed)(Tensor([1.0]), Tensor([2.0]))


def applied(backward, forward=lambda ctx, x, y: x + y):
    kind = type("Own", (_Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    return kind.apply


def gradients(function, *inputs):
    return [each.asnumpy() for each in ops.GradOperation(get_all=True)(function)(*inputs)]


def test_a_gradient_is_summed_and_cast_to_its_input():
    wide = Tensor([[1, 1, 1], [1, 1, 1], [2, 2, 2]], ms.int64)
    function = applied(lambda ctx, gradient: (wide, wide))
    x, y = Tensor([3.0, 3.0, 3.0]), Tensor(np.ones((3, 3), np.float32))
    of_x, of_y = gradients(function, x, y)
    assert of_x.dtype == of_y.dtype == np.float32
    assert of_x.tolist() == [4, 4, 4]
    assert of_y.tolist() == wide.asnumpy().tolist()
    assert gradients(function, Tensor(np.ones((3, 1), np.float32)), y)[0].tolist() == [[3], [3], [6]]
    assert gradients(function, Tensor(1.0), y)[0].tolist() == 12


@pytest.mark.parametrize(
    ("gradient", "words"),
    [
        (Tensor(np.ones((2, 4), np.float32)), r"of shape \(2, 4\) is not that of an input of shape \(3,\)"),
        (Tensor(1.0), r"of shape \(\) is not that of an input of shape \(3,\)"),
        (4, "Gradient should be none or tensor, not int 4"),
    ],
)
def test_what_is_no_gradient_of_an_input_is_an_error(gradient, words):
    function = applied(lambda ctx, arriving: (arriving, gradient))
    with pytest.raises(RuntimeError, match=words):
        gradients(function, Tensor([3.0, 3.0, 3.0]), Tensor([3.0, 3.0, 3.0]))


def test_a_number_has_no_gradient():
    function = applied(lambda ctx, gradient: (gradient, gradient))
    with pytest.raises(RuntimeError, match="Input is not tensor, but gradient is not none"):
        ms.grad(lambda x: function(x, 3))(Tensor([3.0]))


def test_which_inputs_may_have_gradients_is_known_in_both_directions():
    seen = []

    def forward(ctx, x, number, frozen):
        seen.append(ctx.needs_input_grad)
        return x * number * frozen

    def backward(ctx, gradient):
        seen.append(ctx.needs_input_grad)
        return gradient * 5, None, None

    function = applied(backward, forward)
    frozen = Parameter(Tensor([2.0]), name="frozen", requires_grad=False)
    assert ms.grad(lambda x: function(x, 3, frozen))(Tensor([1.0])).asnumpy().tolist() == [5]
    assert set(seen) == {(True, False, False)}


def test_no_gradient_flows_through_outputs_that_are_marked_so():
    def forward(ctx, x, y):
        double, triple = x * 2, x * 3
        ctx.mark_non_differentiable(triple)
        return double, triple

    function = applied(lambda ctx, of_double, of_triple: (of_double + of_triple, None), forward)
    x, y = Tensor([1.0]), Tensor([2.0])
    assert [each.tolist() for each in gradients(function, x, y)] == [[1], [0]]

    def marked(ctx, x, y):
        ctx.mark_non_differentiable(x)
        return x

    function = applied(lambda ctx, gradient: (gradient * 7, gradient * 7), marked)
    assert [each.tolist() for each in gradients(function, x, y)] == [[0], [0]]


@pytest.mark.parametrize("materialized", [None, True, False])
def test_outputs_that_nobody_used_have_no_gradient_where_a_function_wants_none(materialized):
    seen = []

    def forward(ctx, x, y):
        if materialized is not None:
            ctx.set_materialize_grads(materialized)
        return x * 2, y * 3

    def backward(ctx, *arriving):
        seen.append([gradient is None for gradient in arriving])
        of_x, of_y = (0 if gradient is None else gradient for gradient in arriving)
        return of_x * 2 + ops.zeros(1), of_y * 3 + ops.zeros(1)

    function = applied(backward, forward)
    x, y = Tensor([1.0]), Tensor([2.0])
    for at in (0, 1, 0):  # each gradient for itself
        found = ms.grad(lambda x, y, at=at: function(x, y)[at].sum(), (0, 1))(x, y)
        assert [each.asnumpy().tolist() for each in found] == [[2 * (at == 0)], [3 * (at == 1)]]
        assert seen[-1] == [materialized is False and at != i for i in (0, 1)]
    found = ms.grad(lambda x, y: sum(function(x, y)).sum(), (0, 1))(x, y)
    assert [each.asnumpy().tolist() for each in found] == [[2], [3]] and seen[-1] == [False, False]


def test_no_gradient_is_asked_for_where_only_constants_are_used():
    called = []

    def forward(ctx, x):
        double, triple = x * 2, x * 3
        ctx.mark_non_differentiable(triple)
        return double, triple

    def backward(ctx, of_double, of_triple):
        called.append(True)
        return of_double * 5

    function = applied(backward, forward)
    assert ms.grad(lambda x: function(x)[1].sum())(Tensor([1.0])).asnumpy().tolist() == [0] and not called
    assert ms.grad(lambda x: sum(function(x)).sum())(Tensor([1.0])).asnumpy().tolist() == [5] and called
