"""Functions that gradients of tensors go through, and gradients where none are noted."""

import mindspore as ms
import pytest
from mindspore import Tensor, ops
from mindspore.common.api import _no_grad


def test_hooks_of_a_tensor_run_in_the_order_of_their_registration():
    def f(x):
        y = x * x
        y.register_hook(lambda g: g + 1)
        tripled = y * 3
        y.register_hook(lambda g: g * 2)
        return tripled

    assert ops.grad(f)(Tensor(2.0)).asnumpy() == 32  # (3 + 1) * 2, by 2x


def test_a_hook_taken_away_leaves_the_others():
    def f(x):
        first = x.register_hook(lambda g: g + 1)
        x.register_hook(lambda g: g * 2)
        first.remove()
        x.register_hook(lambda g: g - 5)
        return x * 3

    assert ops.grad(f)(Tensor(2.0)).asnumpy() == 1


def test_hooks_run_in_order_where_code_runs_op_by_op():
    seen = []

    def f(x):
        y = x * x
        y.register_hook(lambda g: seen.append(float(g)))
        y.register_hook(lambda g: g * 2)
        return y * 3

    gradient = ops.grad(f)
    assert [float(gradient(Tensor(2.0))) for _ in range(2)] == [24, 24]
    assert seen == [3, 3]


def test_a_hook_is_a_function():
    with pytest.raises(TypeError, match="register_hook"):
        Tensor(1.0).register_hook(3)


def test_gradients_are_refused_within_no_grad():
    gradient = ops.grad(lambda x: x * x)
    by_all = ops.GradOperation(get_all=True)(lambda x: x * x)
    with _no_grad():
        for refused in (gradient, by_all, lambda x: ms.value_and_grad(ops.square)(x)):
            with pytest.raises(RuntimeError, match="no_grad"):
                refused(Tensor(2.0))
    assert gradient(Tensor(2.0)).asnumpy() == 4


def test_hooks_of_a_tensor_that_is_an_argument_take_the_whole_gradient_of_it():
    seen = []
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])

    def noted(gradient):
        seen.append(gradient.asnumpy().tolist())

    x.register_hook(noted)
    doubled = x.register_hook(lambda g: g * 2)
    assert ops.grad(lambda a: a * a + 3 * a)(x).asnumpy().tolist() == [10, 14]
    assert seen == [[5, 7]]
    of_x, of_y = ms.value_and_grad(lambda a, b: a * b, (0, 1))(x, y)[1]
    assert (of_x.asnumpy().tolist(), of_y.asnumpy().tolist()) == ([6, 8], [1, 2])
    by_all = ops.GradOperation(get_all=True, sens_param=True)(lambda a, b: a * b)
    assert by_all(x, y, Tensor([1.0, 10.0]))[0].asnumpy().tolist() == [6, 80]
    doubled.remove()
    assert ops.grad(lambda a: a * 3)(x).asnumpy().tolist() == [3, 3]


def test_hooks_of_an_argument_are_called_for_its_own_gradient_alone():
    seen = []
    x, y = Tensor(2.0), Tensor(3.0)
    x.register_hook(lambda g: seen.append(float(g)))
    assert ops.grad(lambda a, b: a * b, 1)(x, y) == 2
    assert ops.grad(lambda b: x * b)(y) == 2
    assert seen == []
    assert ops.grad(lambda b: b * b)(y) == 6


def test_hooks_of_tensors_in_a_tuple_or_a_dict_are_called():
    x, y = Tensor(2.0), Tensor(3.0)
    x.register_hook(lambda g: -g)
    of_x, of_y = ops.grad(lambda pair: pair[0] * pair[1])((x, y))
    assert (of_x, of_y) == (-3, 2)
    named = ops.grad(lambda given: given["a"] * given["b"])({"a": y, "b": x})
    assert (named["a"], named["b"]) == (2, -3)


def test_hooks_of_an_argument_leave_gradients_of_parameters_alone():
    weight = ms.Parameter(Tensor([2.0]), name="weight")
    x = Tensor([3.0])
    x.register_hook(lambda g: g + 100)
    _, (of_x, (of_weight,)) = ms.value_and_grad(lambda a: a * weight, 0, [weight])(x)
    assert (of_x.asnumpy(), of_weight.asnumpy()) == (102, 3)


def test_the_hooks_of_a_tensor_are_those_that_nobody_took_away():
    def first(gradient):
        return gradient * 2

    def second(gradient):
        return gradient + 1

    x = Tensor([2.0, 3.0])
    assert x.hooks() == []
    handle = x.register_hook(first)
    x.register_hook(second)
    assert x.hooks() == [first, second]
    handle.remove()
    assert x.hooks() == [second]

    def f(x):
        y = x * x
        y.register_hook(first)
        assert y.hooks() == [first]
        return y

    assert ops.grad(f)(Tensor([2.0])).asnumpy().tolist() == [8]
