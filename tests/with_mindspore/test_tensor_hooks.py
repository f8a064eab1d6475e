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
