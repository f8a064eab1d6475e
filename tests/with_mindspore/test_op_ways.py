"""Ops in the ways of scripts that test them: errors by type, squeeze, gradients given as inputs."""

import pickle
import sys
import traceback

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, nn, ops
from mindspore.common.initializer import Normal, initializer
from mindspore.ops import operations
from mindspore.train import CheckpointConfig


def _numbers(*shape):
    return Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def mode(request):
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


@pytest.mark.parametrize("error", [ValueError, TypeError, RuntimeError])
@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.matmul(_numbers(2, 3), _numbers(2, 3)),
        lambda: ops.bitwise_and(_numbers(2), _numbers(2)),
        lambda: ops.gather(_numbers(3), _numbers(2), 0),
        lambda: nn.Dense(3, 2)(_numbers(2, 4)),
        lambda: _numbers(2) @ _numbers(3),
    ],
)
def test_an_argument_that_does_not_fit_raises_what_mindspore_may(call, error):
    with pytest.raises(error):
        call()


def test_errors_of_arguments_name_what_they_are():
    with pytest.raises(ValueError, match="matmul") as raised:
        ops.matmul(_numbers(2, 3), _numbers(2, 3))
    assert traceback.format_exception_only(raised.value)[0].startswith("ValueError: matmul")
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is type(raised.value) and again.args == raised.value.args


@pytest.mark.parametrize("shape", [[-1], (2, -3), -2])
@pytest.mark.parametrize("init", ["ones", "zeros", Normal(), 3])
def test_initializers_of_sizes_below_0_are_an_error(shape, init):
    with pytest.raises(ValueError, match="below 0"):
        initializer(init, shape)


@pytest.mark.parametrize("axis", [0, (0, 1), -3, (1,), None, ()])
def test_squeeze_leaves_axes_of_several_elements(mode, axis):
    x = _numbers(2, 1, 3)
    wanted = (2, 1, 3) if axis in (0, -3) else (2, 3)

    class Net(nn.Cell):
        def construct(self, x):
            return ops.squeeze(x, axis), operations.Squeeze(() if axis is None else axis)(x), x.squeeze(axis)

    results = [*Net()(x), ms.numpy.squeeze(x, axis)] if axis != () else Net()(x)
    assert [each.shape for each in results] == [wanted] * len(results)
    assert all((each.asnumpy().ravel() == x.asnumpy().ravel()).all() for each in results)
    gradient = ms.grad(lambda x: (ops.squeeze(x, axis) * 2).sum())(x)
    assert (gradient.asnumpy() == np.full((2, 1, 3), 2)).all()
    with pytest.raises(ValueError):
        ops.squeeze(x, 5)


def test_a_gradient_that_is_the_input_too_counts_once(mode):
    x = Tensor([3.0, -1.0])
    assert nn.ForwardValueAndGrad(nn.ReLU(), get_all=True, sens_param=True)(x, x)[1][
        0
    ].asnumpy().tolist() == [3, 0]
    _, pulled = ms.vjp(lambda a: a * 2, x)
    assert pulled(x)[0].asnumpy().tolist() == [6, -2]
    _, pulled = ms.vjp(lambda a, b: (a * b, a), x, x)
    assert [each.asnumpy().tolist() for each in pulled(x, x)] == [[12, 0], [9, 1]]
    flow = Tensor([1.0, 1.0])
    # The product may itself be asked for its gradient by what it was given.
    assert ms.grad(lambda flow: ms.vjp(lambda a: a * a, x)[1](flow)[0].sum())(flow).asnumpy().tolist() == [
        6,
        -2,
    ]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int8])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 4)])
def test_bias_add_takes_whole_numbers(dtype, shape):
    x, bias = np.ones(shape, dtype), np.arange(3, dtype=dtype)
    made = operations.BiasAdd()(Tensor(x), Tensor(bias))
    assert (made.asnumpy() == x + bias.reshape(1, 3, *[1] * (len(shape) - 2))).all()
    assert made.asnumpy().dtype == dtype


def test_assert_is_a_runtime_error(mode):
    class Net(nn.Cell):
        def construct(self, held, x):
            return operations.Assert(3)(held, [x])

    Net()(Tensor(True), Tensor([1, 2]))
    with pytest.raises(RuntimeError, match="the condition is false"):
        Net()(Tensor(False), Tensor([1, 2]))


@pytest.mark.parametrize(
    "name",
    [
        "save_checkpoint_steps",
        "save_checkpoint_seconds",
        "keep_checkpoint_max",
        "keep_checkpoint_per_n_minutes",
    ],
)
def test_checkpoint_config_checks_its_numbers(name):
    with pytest.raises(ValueError, match=name):
        CheckpointConfig(**{name: -1})
    for value in (True, 1.5, "a"):
        with pytest.raises(TypeError, match=name):
            CheckpointConfig(**{name: value})


def test_infinities_become_the_greatest_number_of_their_own_dtype(mode):
    x = Tensor([float("inf"), float("-inf"), float("nan"), 3.0], ms.float16)
    for found in (ops.nan_to_num(x), ms.mint.nan_to_num(x, None, None, None), x.nan_to_num()):
        assert found.asnumpy().tolist() == [65504, -65504, 0, 3]


def test_the_mean_of_squares_of_whole_numbers_is_a_float(mode):
    x, y = Tensor([1, 2, 3], ms.int32), Tensor([3, 1, 1], ms.int32)
    assert ops.mse_loss(x, y).dtype == ms.float32
    assert ops.mse_loss(x, y).asnumpy() == 3
    assert abs(ops.mse_loss(x, y * 2).asnumpy() - 26 / 3) < 1e-6
    assert ops.mse_loss(x, y, "sum").asnumpy() == 9
    assert ops.mse_loss(x, y, "none").asnumpy().tolist() == [4, 1, 4]


def test_the_primitive_of_layer_norm_takes_float16_and_parameters_of_more_axes(mode):
    x = np.random.default_rng(3).normal(size=(2, 3, 4)).astype(np.float32)
    gamma, beta = x[0] + 1, x[1] * 2
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    wanted = (x - mean) / np.sqrt(variance + 1e-7)
    y, *found = operations.LayerNorm(2, 1)(Tensor(x), Tensor(gamma), Tensor(beta))
    assert np.allclose(y.asnumpy(), wanted * gamma + beta, atol=1e-5)
    assert np.allclose(found[0].asnumpy(), mean, atol=1e-6)
    assert np.allclose(found[1].asnumpy(), variance, atol=1e-5)
    short = [Tensor(each.astype(np.float16)) for each in (x, gamma[0], beta[0])]
    y, *found = operations.LayerNorm(2, 2)(*short)
    assert np.allclose(y.asnumpy(), wanted * gamma[0] + beta[0], atol=0.05)
    assert [each.dtype for each in (y, *found)] == [ms.float16, ms.float32, ms.float32]


def test_randn_like_is_float32_unless_a_dtype_is_said(mode):
    x = Tensor([1.0, 2.0], ms.float16)
    assert ops.randn_like(x).dtype == ms.float32
    assert ops.randn_like(x, dtype=ms.float16).dtype == ms.float16


def test_the_row_of_an_embedding_at_padding_idx_gets_no_gradient(mode):
    weight = ms.Parameter(Tensor(np.arange(8, dtype=np.float32).reshape(4, 2)), name="w")
    at = Tensor([[1, 3], [0, 1]])
    for lookup in (ops.embedding, mint.nn.functional.embedding):
        for padding, wanted in ((None, [1, 2, 0, 1]), (1, [1, 0, 0, 1]), (-1, [1, 2, 0, 0])):
            total, gradient = ms.value_and_grad(
                lambda lookup=lookup, padding=padding: lookup(at, weight, padding).sum(), None, [weight]
            )()
            assert total.asnumpy() == 24
            assert gradient[0].asnumpy()[:, 0].tolist() == wanted
        with pytest.raises(ValueError, match="padding_idx is from -4 to 3, not 4"):
            lookup(at, weight, 4)
