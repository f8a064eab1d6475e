"""Branches and loops that are decided while a graph runs."""

import pytest

import muster
from muster import ops


def test_one_graph_serves_both_branches_with_gradient():
    @muster.jit
    def positive_part(positive, x):
        return ops.cond(positive, lambda a: {"y": a * x}, lambda a: {"y": a - a}, x)

    x = muster.Tensor([1.0, 2.0])
    assert positive_part(muster.Tensor(True), x)["y"].tolist() == [1, 4]
    assert positive_part(muster.Tensor(False), x)["y"].tolist() == [0, 0]
    assert len(positive_part.traces) == 1

    def loss(x, positive):
        return ops.cond(positive, lambda: (x * x).sum(), lambda: x.sum())

    gradient = muster.value_and_grad(loss)
    assert gradient(x, muster.Tensor(True))[1].tolist() == [2, 4]
    assert gradient(x, muster.Tensor(False))[1].tolist() == [1, 1]


def test_cells_and_parameters_work_in_a_branch():
    dense = muster.nn.Dense(2, 1, weight_init="ones", has_bias=False)

    def loss(x, wide):
        return ops.cond(wide, lambda: dense(x).sum(), lambda: 0.0)

    grad_fn = muster.value_and_grad(loss, None, dense.trainable_params())
    x = muster.Tensor([[1.0, 2.0]])
    assert grad_fn(x, muster.Tensor(True))[1][0].tolist() == [[1, 2]]
    assert grad_fn(x, muster.Tensor(False))[1][0].tolist() == [[0, 0]]


def test_a_python_bool_decides_at_once_and_outside_of_traced_code_one_function_is_called():
    assert ops.cond(True, lambda: muster.Tensor(1), lambda: 1 / 0).item() == 1
    assert ops.cond(muster.Tensor([0.0]), lambda: 1 / 0, lambda x: x, 2).item() == 2


def test_branches_must_agree():
    def structures(pred, x):
        return ops.cond(pred, lambda: (x, x), lambda: x)

    def shapes(pred, x):
        return ops.cond(pred, lambda: x, lambda: x.sum())

    arguments = (muster.Tensor(True), muster.Tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="one structure"):
        muster.jit(structures)(*arguments)
    with pytest.raises(ValueError, match=r"float32 \(2,\).*false.*float32 \(\)"):
        muster.jit(shapes)(*arguments)


def test_an_exception_of_a_branch_passes_and_leaves_no_trace():
    with pytest.raises(ZeroDivisionError):
        muster.jit(lambda pred: ops.cond(pred, lambda: 1 / 0, lambda: 1.0))(muster.Tensor(True))
    assert muster.jit(lambda x: x + 1)(muster.Tensor(1.0)).item() == 2


def test_a_loop_runs_in_one_graph_and_outside():
    def collatz(start):
        def step(state):
            even = ops.equal(state["n"], state["n"] // 2 * 2)
            following = ops.cond(even, lambda: state["n"] // 2, lambda: state["n"] * 3 + 1)
            return {"n": following, "steps": state["steps"] + 1}

        return ops.while_loop(lambda state: state["n"] - 1, step, {"n": start, "steps": 0})["steps"]

    compiled = muster.jit(collatz)
    for start, steps in ((1, 0), (6, 8), (27, 111)):
        assert compiled(muster.Tensor(start)).item() == steps
    assert collatz(muster.Tensor(6)).item() == 8
    assert len(compiled.traces) == 1


def test_a_loop_says_what_it_cannot_do():
    def loss(x):
        return ops.while_loop(lambda state: state - state, lambda state: state * 2, x)

    with pytest.raises(NotImplementedError, match=r"through.*while_loop"):
        muster.value_and_grad(loss)(muster.Tensor(1.0))
    with pytest.raises(ValueError, match="a state like init"):
        ops.while_loop(lambda state: True, lambda state: (state, state), 1)
