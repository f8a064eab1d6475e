"""Arithmetic in the Python bindings: operators, promotion, reductions, and MindSpore's names for them."""

import operator
import subprocess
import sys

import numpy
import pytest
from job import clean_environment

import muster
from muster import ops

OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@pytest.mark.parametrize("symbol", OPERATORS, ids=lambda symbol: symbol.__name__)
def test_operators_mean_what_numpys_mean(symbol):
    a = numpy.array([1.5, 2.0, 4.0], numpy.float32)
    b = numpy.array([[2.0], [0.5]], numpy.float32)
    x, y = muster.Tensor(a), muster.Tensor(b)
    for left, right, expected in [
        (x, y, symbol(a, b)),
        (x, 2, symbol(a, numpy.float32(2))),
        (2, x, symbol(numpy.float32(2), a)),
        (x, 0.5, symbol(a, numpy.float32(0.5))),
        (muster.Parameter(a), y, symbol(a, b)),
        (a, y, symbol(a, b)),
    ]:
        found = symbol(left, right)
        numpy.testing.assert_allclose(numpy.asarray(found), expected, rtol=1e-6)
        assert numpy.asarray(found).dtype == expected.dtype


def test_signs_and_absolutes():
    x = muster.Tensor([1.0, -2.0])
    assert (-x).tolist() == [-1.0, 2.0] and (+x).tolist() == [1.0, -2.0] and abs(x).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("tensor", "number", "sum_", "quotient"),
    [
        ("bool_", 2, "int64", "float32"),
        ("bool_", 2.5, "float32", "float32"),
        ("int32", 2, "int32", "float32"),
        ("int32", 2.5, "float32", "float32"),
        ("int64", True, "int64", "float32"),
        ("int64", 2.5, "float32", "float32"),
        ("float32", 2, "float32", "float32"),
        ("float32", 2.5, "float32", "float32"),
        ("float64", 2, "float64", "float64"),
        ("float64", 2.5, "float64", "float64"),
    ],
)
def test_a_number_takes_the_dtype_of_the_tensor_unless_it_would_lose_its_fraction(
    tensor, number, sum_, quotient
):
    x = muster.Tensor([1], getattr(muster, tensor))
    assert (x + number).dtype is (number + x).dtype is getattr(muster, sum_)
    assert (x / number).dtype is getattr(muster, quotient)


# What MindSpore 2.7.0 gives for a + b.
@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        ("int32", "bool_", "int32"),
        ("int32", "uint8", "int32"),
        ("int32", "int64", "int64"),
        ("int32", "float32", "float32"),
        ("int64", "float32", "float32"),
        ("int64", "float64", "float64"),
        ("float32", "float64", "float64"),
        ("float32", "uint8", "float32"),
    ],
)
def test_two_dtypes_meet_as_in_mindspore(a, b, both):
    x, y = muster.Tensor([3], getattr(muster, a)), muster.Tensor([1], getattr(muster, b))
    assert (x + y).dtype is (y + x).dtype is getattr(muster, both)
    assert (x + y).tolist() == [4]


def test_reductions_take_axes():
    a = numpy.arange(24.0, dtype=numpy.float32).reshape(2, 3, 4)
    x = muster.Tensor(a)
    assert ops.reduce_sum(x, (0, -1)).tolist() == a.sum((0, 2)).tolist()
    assert ops.reduce_max(x, 1, keep_dims=True).shape == (2, 1, 4)
    assert x.sum(axis=1, keepdims=True).tolist() == a.sum(1, keepdims=True).tolist()
    assert x.mean(0).tolist() == a.mean(0).tolist()
    assert x.max().item() == 23.0 and x.min(axis=2).tolist() == a.min(2).tolist()
    assert x.argmax().item() == 23 and x.argmax().dtype is muster.int64
    assert x.argmax(1).tolist() == a.argmax(1).tolist()
    assert (
        (x > 20).sum().item() == 3 and (x < 30).all().item() is True and (x > 22).any(0)[2, 3].item() is True
    )
    with pytest.raises(ValueError, match=r"reduce_sum.*\(2, 3, 4\).*axis 3"):
        ops.reduce_sum(x, 3)


def test_the_gradient_flows_through_operators_and_numbers():
    grad_fn = muster.value_and_grad(lambda x: ((2 - x) ** 2 / 4).sum())
    value, gradient = grad_fn(muster.Tensor([0.0, 1.0]))
    assert value.item() == 1.25 and gradient.tolist() == [-1.0, -0.5]


def test_dropout_draws_anew_at_each_run_and_again_after_the_seed():
    x = muster.Tensor(numpy.ones((4, 100), numpy.float32))
    drop = muster.jit(lambda x: ops.dropout(x, keep_prob=0.5))
    muster.set_seed(3)
    first, second = drop(x).tolist(), drop(x).tolist()
    assert first != second
    muster.set_seed(3)
    assert drop(x).tolist() == first


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_mindspores_functions_take_its_arguments():
    run(
        """
import mindspore as ms
from mindspore import ops, Tensor
x = Tensor([[1.0, 5.0, 3.0], [2.0, -4.0, 6.0]])
near = lambda a, b: all(abs(p - q) < 1e-5 for p, q in zip(a.tolist(), b))
assert ops.add(input=x, other=1)[0, 0].item() == 2.0
assert ops.pow(x, exponent=2)[0, 1].item() == 25.0
assert ops.div(Tensor([7.0, -7.0]), 2, rounding_mode="floor").tolist() == [3.0, -4.0]
assert ops.div(Tensor([7.0, -7.0]), 2, rounding_mode="trunc").tolist() == [3.0, -3.0]
assert ops.sum(x, dim=1, keepdim=True).tolist() == [[9.0], [4.0]]
assert ops.sum(Tensor([True, True])).dtype is ms.int64
assert ops.mean(x, axis=0, keep_dims=True).shape == (1, 3)
assert ops.amax(x, axis=1, keepdims=True).tolist() == [[5.0], [6.0]]
values, indices = ops.max(x, axis=1)
assert values.tolist() == [5.0, 6.0] and indices.tolist() == [1, 2] and indices.dtype is ms.int64
assert ops.argmax(x).item() == 5 and ops.argmax(x, dim=0, keepdim=True).tolist() == [[1, 0, 1]]
assert ops.argmax(x, 1).dtype is ms.int64 and ops.argmin(x, 1).dtype is ms.int32
assert ops.all(x > -5).item() is True and ops.any(x > 5, axis=1).tolist() == [False, True]
assert near(ops.var(x, axis=1), [8 / 3, 152 / 9]) and near(ops.std(x, axis=1, ddof=1), [2.0, 5.0332230])
assert near(ops.logsumexp(x, 1), [5.1429317, 6.0181945])
assert ops.clip(x, 0, 4)[1].tolist() == [2.0, 0.0, 4.0]
assert ops.clip_by_value(x, Tensor([2.0, 2.0, 2.0]), None)[0].tolist() == [2.0, 5.0, 3.0]
several = ops.clip_by_value((x, x[0]), Tensor(-1.0), Tensor(2.0))  # gradients, for example
assert type(several) is tuple and several[0][1].tolist() == [2.0, -1.0, 2.0]
assert [each.tolist() for each in ops.clamp([x[0], x[1, :2]], max=3)] == [[1.0, 3.0, 3.0], [2.0, -4.0]]
assert ops.select(x > 2, x, 0.0)[0].tolist() == [0.0, 5.0, 3.0]
assert ops.where(x > 2, 1.0, x)[1].tolist() == [2.0, -4.0, 1.0]
assert near(ops.softmax(Tensor([1.0, 1.0])), [0.5, 0.5])
assert near(ops.gelu(Tensor([1.0])), [0.8413447])
assert near(ops.gelu(Tensor([1.0]), approximate="tanh"), [0.8411920])
assert near(ops.softplus(Tensor([0.0, 30.0])), [0.6931472, 30.0])
assert near(ops.layer_norm(x, (3,))[0], [-1.2247426, 1.2247426, 0.0])
assert ops.dropout(x, p=0.0).tolist() == x.tolist() and ops.dropout(x, training=False) is x
assert ops.round(Tensor([1.25, -0.5]), decimals=1).tolist() == Tensor([1.2, -0.5]).tolist()
assert ops.logical_xor(Tensor([True, False]), Tensor([True, True])).tolist() == [False, True]
assert ops.scalar_to_tensor(3).dtype is ms.float32
assert ops.addn([x, x, x])[0, 0].item() == 3.0
assert ops.fmod(Tensor([-7.0, 7.0]), 3).tolist() == [-1.0, 1.0]
assert near(ops.selu(Tensor([1.0, -1.0])), [1.050701, -1.1113307])
assert near(ops.celu(Tensor([1.0, -1.0]), 0.5), [1.0, -0.43233237])
assert near(ops.tan(Tensor([1.0])), [1.5574077])
assert near(ops.prelu(x, Tensor([0.5, 0.25, 1.0]))[1], [2.0, -1.0, 6.0])
assert ops.bias_add(ops.zeros((1, 2, 1, 2)), Tensor([1.0, 2.0])).tolist() == [[[[1.0, 1.0]], [[2.0, 2.0]]]]
"""
    )


def test_mindspores_classes_hold_their_settings():
    run(
        """
import mindspore as ms
from mindspore import ops, Tensor
from mindspore.ops import operations as P
from mindspore.ops import functional as F
x = Tensor([[1.0, 5.0, 3.0], [2.0, -4.0, 6.0]])
assert P.ReLU()(x)[1].tolist() == [2.0, 0.0, 6.0] and ops.ReLU is P.ReLU
assert P.RealDiv()(x, 2.0)[0, 0].item() == 0.5 and P.Sub()(x, x).sum().item() == 0.0
assert P.ReduceSum(keep_dims=True)(x, 1).tolist() == [[9.0], [4.0]]
assert P.ReduceMax()(x).item() == 6.0 and P.ReduceMean()(x, (0, 1)).shape == ()
assert P.ReduceAll()(x > -5).item() is True
assert P.Argmax(axis=0, output_type=ms.int64)(x).tolist() == [1, 0, 1]
index, value = P.ArgMaxWithValue(axis=1)(x)
assert index.tolist() == [1, 2] and index.dtype is ms.int64 and value.tolist() == [5.0, 6.0]
assert abs(P.Softmax(axis=0)(x).sum().item() - 3.0) < 1e-6
assert P.Cast()(x, ms.int32).dtype is ms.int32 and P.ScalarToTensor()(2.0, ms.float32).shape == ()
y, mask = P.Dropout(keep_prob=1.0)(x)
assert y.tolist() == x.tolist() and mask.dtype is ms.float32
assert repr(P.ReduceSum(True)) == "Prim[ReduceSum]<keep_dims=True>"
gamma, beta = Tensor([1.0, 1.0, 1.0]), Tensor([0.0, 0.0, 1.0])
y, mean, variance = P.LayerNorm(begin_norm_axis=1, epsilon=1e-5)(x, gamma, beta)
assert mean.shape == (2, 1) and mean[0, 0].item() == 3.0
assert abs(variance[0, 0].item() - 8 / 3) < 1e-6 and abs(y[0, 2].item() - 1.0) < 1e-6
assert F.exp(Tensor([0.0])).tolist() == [1.0]
for name in ("Conv3DBackpropFilter", "NoSuchOp"):
    try:
        getattr(P, name)
    except AttributeError as error:
        assert "not provided" in str(error) and f"mindspore.ops.operations.{name}" in str(error)
    else:
        raise AssertionError(name)
"""
    )
