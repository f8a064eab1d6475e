"""Classes of ops.auto_generate with mint's arguments, as libraries of language models import them."""

import mindspore
import numpy
import pytest
from mindspore import Tensor, mint, nn, ops
from mindspore.ops import auto_generate

X = Tensor(numpy.arange(6, dtype=numpy.float32).reshape(2, 3))
Y = Tensor(numpy.full((2, 3), 2.0, numpy.float32))

CALLS = {
    "AddExt": (lambda op: op()(X, Y, 3), lambda: X + 3 * Y),
    "SubExt": (lambda op: op()(X, Y, alpha=2), lambda: X - 2 * Y),
    "SumExt": (lambda op: op()(X, 1, True), lambda: mint.sum(X, 1, True)),
    "MeanExt": (lambda op: op()(X, dim=0), lambda: mint.mean(X, 0)),
    "ProdExt": (lambda op: op()(X, 1), lambda: mint.prod(X, 1)),
    "CumsumExt": (lambda op: op()(X, 1), lambda: mint.cumsum(X, 1)),
    "SortExt": (lambda op: op()(X, 1, True)[0], lambda: mint.sort(X, dim=1, descending=True)[0]),
    "TopkExt": (lambda op: op()(X, 2, largest=False)[1], lambda: mint.topk(X, 2, largest=False)[1]),
    "StackExt": (lambda op: op(1)((X, Y)), lambda: mint.stack((X, Y), 1)),
    "BatchMatMulExt": (
        lambda op: op()(X.reshape(1, 2, 3), Y.reshape(1, 3, 2)),
        lambda: (X @ Y.reshape(3, 2)).reshape(1, 2, 2),
    ),
    "Chunk": (lambda op: op()(X, 3, 1)[2], lambda: X[:, 2:]),
    "SplitWithSize": (lambda op: op()(X, (1, 2), 1)[1], lambda: X[:, 1:]),
    "SliceExt": (lambda op: op()(X, -1, 0, 3, 2), lambda: X[:, ::2]),
    "IndexSelect": (lambda op: op()(X, 1, Tensor([2, 0])), lambda: X[:, [2, 0]]),
    "Outer": (lambda op: op()(X[0], Y[0]), lambda: X[0].reshape(3, 1) * Y[0]),
    "TrilExt": (lambda op: op()(X, diagonal=-1), lambda: mint.tril(X, -1)),
    "ClampScalar": (lambda op: op()(X, 1.0, 4.0), lambda: X.clamp(1.0, 4.0)),
    "ZerosLikeExt": (lambda op: op()(X), lambda: ops.zeros_like(X)),
    "OnesLikeExt": (lambda op: op()(X, mindspore.int32), lambda: ops.ones((2, 3), mindspore.int32)),
    "Arange": (lambda op: op()(1, 7, 2), lambda: Tensor([1, 3, 5])),
    "OneHotExt": (
        lambda op: op()(Tensor([1, 0]), 3, Tensor(1.0), Tensor(0.0)),
        lambda: Tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    ),
    "RepeatInterleaveInt": (lambda op: op()(X, 2, 1), lambda: X.repeat_interleave(2, 1)),
    "Swiglu": (
        lambda op: op()(X.reshape(3, 2)),
        lambda: mint.nn.functional.silu(X.reshape(3, 2)[:, :1]) * X.reshape(3, 2)[:, 1:],
    ),
}


@pytest.mark.parametrize("mode", [mindspore.PYNATIVE_MODE, mindspore.GRAPH_MODE])
@pytest.mark.parametrize("name", CALLS)
def test_an_ext_class_computes_what_its_function_of_mint_does(name, mode):
    mindspore.set_context(mode=mode)
    call, wanted = CALLS[name]
    made, wanted = call(getattr(auto_generate, name)), wanted()
    assert made.dtype == wanted.dtype
    numpy.testing.assert_allclose(made.asnumpy(), wanted.asnumpy(), rtol=1e-6)


def test_an_ext_class_is_a_part_of_a_network_with_gradients():
    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            self.add, self.sum = auto_generate.AddExt(), auto_generate.SumExt()

        def construct(self, x, y):
            return self.sum(self.add(x, y, 3) * x)

    made = mindspore.grad(Block(), (0, 1))(X, Y)
    numpy.testing.assert_allclose(made[0].asnumpy(), 2 * X.asnumpy() + 3 * Y.asnumpy(), rtol=1e-6)
    numpy.testing.assert_allclose(made[1].asnumpy(), 3 * X.asnumpy(), rtol=1e-6)


def test_softplus_of_mint_is_there_and_takes_its_bound():
    made = mint.nn.functional.softplus(Tensor([-1.0, 1.0, 9.0]), 2, 3).asnumpy()
    numpy.testing.assert_allclose(made, [numpy.log1p(numpy.exp(-2)) / 2, numpy.log1p(numpy.exp(2)) / 2, 9])


def test_values_of_one_hot_may_be_tensors_of_one_element():
    wanted = [[0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    on, off = ops.ones(1, mindspore.float32) * 2, ops.zeros(1, mindspore.float32)
    assert ops.one_hot(Tensor([1, 2]), 3, on, off).asnumpy().tolist() == wanted
    assert ops.OneHot()(Tensor([1, 2]), 3, on, off).asnumpy().tolist() == wanted
    with pytest.raises(ValueError, match="values must be scalars"):
        ops.one_hot(Tensor([1, 2]), 3, Tensor([1.0, 2.0]), Tensor([0.0, 0.0]))
