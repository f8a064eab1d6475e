"""ops.jet and ops.derivative: figures of MindSpore 2.7.0."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

A, B = Tensor([0.5, 1.5]), Tensor([1.0, 2.0])
SERIES = Tensor([[1.0, 1.0], [0.0, 2.0]])
WIDE = Tensor([[1, 2], [3, 4]], ms.float32)
ONE = Tensor([[[1, 1], [1, 1]], [[0, 0], [0, 0]], [[0, 0], [0, 0]]], ms.float32)
VALUES = [[2.3198, 2.4826], [1.1516, 0.4692]]
RATES = [
    [[1.2534, -1.0331], [-1.1400, -0.3067]],
    [[-1.2748, -1.8275], [0.9661, 0.5555]],
    [[-4.0515, 3.6724], [0.5054, -0.5206]],
]


class Waves(nn.Cell):
    def construct(self, x):
        return ops.exp(ops.sin(x))


def two(x, y):
    return ops.sin(x) * y, ops.log(y) + x * x * x


def product(x, y):
    return ops.sin(x) * ops.cos(y)


@pytest.fixture(autouse=True, params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def mode(request):
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=before)


def agree(given, wanted):
    if isinstance(given, list):
        assert len(given) == len(wanted)
        for each, figures in zip(given, wanted, strict=True):
            agree(each, figures)
        return
    wanted = np.array(wanted, np.float32)
    assert given.shape == wanted.shape and given.dtype == ms.float32
    np.testing.assert_allclose(given.asnumpy(), wanted, 1e-4, 1e-4)


@pytest.mark.parametrize(
    ("compute", "results", "rates"),
    [
        (lambda: ops.jet(Waves(), WIDE, ONE), VALUES, RATES),
        (lambda: ops.derivative(Waves(), WIDE, 3), VALUES, RATES[2]),
        (lambda: ops.derivative(Waves(), WIDE, 1), VALUES, RATES[0]),
        (lambda: ops.derivative(Waves(), Tensor([1, 2], ms.int32), 2), VALUES[0], RATES[1][0]),
        (lambda: ops.jet(Waves(), A, A), [1.6151, 2.7115], [[0.7087, 0.2877]]),
        (
            lambda: ops.jet(two, (A, B), (SERIES, SERIES)),
            [[0.4794, 1.9950], [0.1250, 4.0681]],
            [[[1.3570, 1.1390], [1.2757, 0.4244]], [[1.75, 7.25], [2.0, 23.25]]],
        ),
        (
            lambda: ops.derivative(two, (A, B), 2),
            [[0.4794, 1.9950], [0.1250, 4.0681]],
            [[1.2757, -1.8535], [2.0, 8.75]],
        ),
        (lambda: ops.derivative(product, (A, B), 2), [0.2590, -0.4151], [-1.9950, 0.7016]),
        (
            lambda: ops.jet(product, (A, B), (SERIES, SERIES)),
            [0.2590, -0.4151],
            [[0.0707, -0.9365], [-1.9950, -1.1713]],
        ),
    ],
)
def test_derivatives_of_higher_orders(compute, results, rates):
    values, derivatives = compute()
    agree(values, results)
    agree(derivatives, rates)


@pytest.mark.parametrize(
    ("compute", "error", "words"),
    [
        (lambda: ops.jet(Waves(), A, ONE), ValueError, r"is \(3, 2, 2\): \(order, \*shape\)"),
        (lambda: ops.jet(two, (A, B), (SERIES,)), ValueError, "2 primals and 1 series"),
        (lambda: ops.jet(two, (A, B), SERIES), TypeError, "both a Tensor, or both a tuple"),
        (lambda: ops.jet(two, (A, B), (SERIES, SERIES[:1])), ValueError, r"\(order, \*shape\)"),
        (lambda: ops.jet(Waves(), A, SERIES.astype(ms.float64)), TypeError, "a primal of"),
        (lambda: ops.derivative(Waves(), Tensor([1.0], ms.float16), 2), TypeError, "not .*[Ff]loat16"),
        (lambda: ops.derivative(Waves(), 1.0, 2), TypeError, "not float"),
        (lambda: ops.derivative(Waves(), A, 0), ValueError, "order is 0"),
        (lambda: ops.derivative(Waves(), A, 1.5), TypeError, "not 1.5"),
    ],
)
def test_what_is_wrong_says_so(compute, error, words):
    with pytest.raises(error, match=words):
        compute()
