"""Functions that are made from the op rows: their arguments, their errors, what they say about themselves."""

import ast
import inspect
import sys

import numpy
import pytest
from places import PACKAGES

import muster
from muster import _core, ops

X = muster.Tensor(numpy.array([[1.0, 2.0], [3.0, 4.0]], numpy.float32))


def test_every_row_is_in_ops():
    assert set(_core._op_functions) <= set(ops.__all__)
    assert {"softmax", "add", "reduce_sum", "layer_norm", "gather"} <= set(_core._op_functions)


def test_arguments_come_by_place_or_by_name():
    expected = ops.softmax(X, 0).asnumpy()
    for found in (ops.softmax(X, axis=0), ops.softmax(x=X, axis=0), ops.softmax(axis=0, x=X)):
        assert (found.asnumpy() == expected).all()
    keyword = "".join(["ax", "is"])  # not the interned string
    assert (ops.softmax(X, **{keyword: 0}).asnumpy() == expected).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.softmax(), r"softmax.*\bx\b.*missing.*softmax\(x, axis=-1\)"),
        (lambda: ops.softmax(X, 0, 1), r"softmax.*3 arguments.*softmax\(x, axis"),
        (lambda: ops.softmax(X, 0, axis=1), r"softmax.*axis.*twice"),
        (lambda: ops.softmax(X, dim=1), r"softmax.*argument dim=1"),
        (lambda: ops.softmax(X, axis=1.5), r"softmax.*axis.*int.*float \(1.5\)"),
        (lambda: ops.softmax(X, axis=True), r"softmax.*axis.*int.*bool \(True\)"),
        (lambda: ops.softmax("a"), r"softmax.*\bx\b.*Tensor \| bool \| int \| float.*str \('a'\)"),
        (lambda: ops.gelu(X, "tanh"), r"gelu.*approximate.*bool.*str \('tanh'\)"),
        (lambda: ops.elu(X, "1"), r"elu.*alpha.*float.*str \('1'\)"),
        (
            lambda: ops.reduce_sum(X, "x"),
            r"reduce_sum.*axis.*int \| tuple\[int, ...\] \| None.*str",
        ),
        (
            lambda: X.sum(keep_dims=True),
            r"sum.*argument keep_dims=True",
        ),
        (lambda: X.exp(1), r"exp.*1 arguments.*exp\(\)"),
    ],
)
def test_errors_name_the_op_the_argument_and_what_is_allowed(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_errors_of_the_shape_rule_are_value_errors():
    with pytest.raises(ValueError, match="softmax"):
        ops.softmax(X, 2)


def test_numbers_take_the_dtype_beside_them():
    half = muster.Tensor(numpy.array([1, 2], numpy.float64))
    assert ops.add(half, 1.5).dtype == ops.add(1.5, half).dtype == muster.float64
    assert ops.add(muster.Tensor([1, 2]), 1.5).dtype == muster.float32
    assert ops.select(muster.Tensor([True, False]), half, 0).dtype == muster.float64
    assert ops.add(1, 2).dtype == muster.int64 and ops.add(1, 2.0).dtype == muster.float32


def test_they_say_what_they_take():
    assert str(inspect.signature(ops.softmax)) == "(x, axis=-1)"
    assert str(inspect.signature(muster.Tensor.sum)) == "(self, /, axis=None, keepdims=False)"
    assert ops.softmax.__name__ == "softmax" and ops.softmax.__doc__.startswith("y = e^x / sum(e^x)")
    assert ops.softmax.__module__ == "muster._core" and repr(ops.exp) == "<op function exp>"
    stub = ops.layer_norm.__nb_signature__
    assert stub.startswith("def layer_norm(x: Tensor | bool | int | float, gamma: Tensor")
    with pytest.raises(TypeError, match=r"index.*missing.*index_select\(axis, index\)"):
        X.index_select(0)
    assert "begin_norm_axis: int = -1, eps: float = 1e-05) -> Tensor:\n" in stub


def test_the_stub_of_ops_is_good_python():
    stub = ast.parse((PACKAGES / "muster" / "ops.pyi").read_text())
    defined = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    assert set(_core._op_functions) <= defined
    ast.parse((PACKAGES / "muster" / "_core.pyi").read_text())


def test_functions_are_not_bound_and_methods_are():
    class Holder:
        function = ops.exp

    assert Holder().function(X).shape == (2, 2)
    bound = X.exp
    assert (bound().asnumpy() == ops.exp(X).asnumpy()).all()
    assert (muster.Tensor.exp(X).asnumpy() == bound().asnumpy()).all()


def test_an_interrupted_call_leaks_nothing():
    before = sys.getrefcount(X)
    for _ in range(100):
        ops.softmax(X, axis=0)
        with pytest.raises(TypeError):
            ops.softmax(X, axis="a")
    assert sys.getrefcount(X) == before


def test_primitives_check_their_settings(run_with_mindspore):
    run_with_mindspore("""
        def message(call):
            try:
                call()
            except TypeError as error:
                return str(error)
        told = "it is made as Softmax(axis=-1)"
        assert message(lambda: ops.Softmax(dim=1)) == f"Softmax: there is no argument dim=1; {told}"
        assert message(lambda: ops.Softmax(1, axis=1)) == f"Softmax: axis was given twice; {told}"
        assert message(lambda: ops.Softmax(1, 2)) == f"Softmax: 2 arguments were given; {told}"
        assert repr(ops.Softmax()) == "Prim[Softmax]<axis=-1>" and ops.Softmax(0).axis == 0
        x = Tensor([[1.0, 2.0]])
        assert ops.ReduceSum(keep_dims=True)(x, 1).shape == (1, 1) and ops.ReduceSum()(x).shape == ()
        assert ops.reduce_sum(x, 1, True).shape == ops.mean(x, axis=1, keep_dims=True).shape == (1, 1)
    """)


def test_a_tensor_where_a_number_belongs_is_an_error_that_names_the_argument():
    x = muster.Tensor([[1.0, 2.0]])
    with pytest.raises(TypeError, match=r"cumprod.*axis.*int.*Tensor"):
        ops.cumprod(x, x)
    with pytest.raises(TypeError, match=r"layer_norm.*eps.*float.*Tensor"):
        ops.layer_norm(x, x[0], x[0], eps=x)
