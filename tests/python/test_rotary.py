"""rotary beside numpy, and what scripts of transformers write themselves, which becomes the same ops."""

import numpy
import pytest

import muster
from muster import nn, ops

RANDOM = numpy.random.default_rng(2)
X = RANDOM.standard_normal((2, 3, 5, 8))
ANGLES = numpy.tile(RANDOM.standard_normal((5, 4)), 2)


def rotary(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + numpy.concatenate((-x[..., half:], x[..., :half]), -1) * sin


@pytest.mark.parametrize(("dtype", "near"), [(numpy.float32, 1e-6), (numpy.float64, 1e-14)])
def test_it_is_numpys(dtype, near):
    cos, sin = numpy.cos(ANGLES).astype(dtype), numpy.sin(ANGLES).astype(dtype)
    y = ops.rotary(*map(muster.Tensor, (X.astype(dtype), cos, sin))).asnumpy()
    assert y.dtype == dtype
    numpy.testing.assert_allclose(y, rotary(X, cos, sin), rtol=near, atol=near)


def test_its_adjoint_turns_back_what_tables_of_angles_turn():
    x, cos, sin = (muster.Tensor(part) for part in (X, numpy.cos(ANGLES), numpy.sin(ANGLES)))
    back = ops.rotary(ops.rotary(x, cos, sin), cos, sin, adjoint=True)
    numpy.testing.assert_allclose(back.asnumpy(), X, rtol=1e-12, atol=1e-12)


def test_bfloat16_is_turned_in_float32():
    x = ops.cast(muster.Tensor(X.astype(numpy.float32)), muster.bfloat16)
    cos, sin = (muster.Tensor(part(ANGLES).astype(numpy.float32)) for part in (numpy.cos, numpy.sin))
    y = ops.rotary(x, cos, sin)
    wide = ops.rotary(ops.cast(x, muster.float32), cos, sin)
    assert y.dtype == muster.bfloat16
    expected = ops.cast(ops.cast(wide, muster.bfloat16), muster.float32)
    assert numpy.array_equal(ops.cast(y, muster.float32).asnumpy(), expected.asnumpy())


def test_tables_of_another_size_are_an_error_that_names_both():
    x, table = muster.Tensor(X.astype(numpy.float32)), muster.Tensor(numpy.ones((4, 8), numpy.float32))
    with pytest.raises(ValueError, match=r"last size of x float32 \(2, 3, 5, 8\).*float32 \(4, 8\)"):
        ops.rotary(x, table, table)


class Block(muster.Cell):
    """One of a Llama, all in parts."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Dense(24, 24, has_bias=False) for _ in range(4))
        self.weight = muster.Parameter(numpy.linspace(0.5, 1.5, 24).astype(numpy.float32))
        self.cos, self.sin = (
            muster.Tensor(part(ANGLES).astype(numpy.float32)) for part in (numpy.cos, numpy.sin)
        )

    def norm(self, x):
        return self.weight * (x * ops.rsqrt(ops.reduce_mean(x**2, -1, True) + 1e-6))

    def heads(self, x):
        return ops.transpose(ops.reshape(x, (2, 5, 3, 8)), (0, 2, 1, 3))

    def turned(self, x):
        return x * self.cos + ops.concat((-x[..., 4:], x[..., :4]), -1) * self.sin

    def construct(self, x):
        y = self.norm(x)
        q, k, v = (
            self.turned(self.heads(self.q(y))),
            self.turned(self.heads(self.k(y))),
            self.heads(self.v(y)),
        )
        shares = ops.softmax(ops.batch_matmul(q, k, transpose_b=True) * 0.3, -1)
        y = ops.transpose(ops.batch_matmul(shares, v), (0, 2, 1, 3))
        return x + self.out(ops.reshape(y, (2, 5, 24)))


def gradients(mode):
    muster.set_seed(3)
    block = Block()
    x = muster.Tensor(numpy.random.default_rng(4).standard_normal((2, 5, 24)).astype(numpy.float32))
    muster.set_context(mode=mode)
    try:
        step = muster.value_and_grad(
            lambda given: ops.reduce_sum(block(given) ** 2), None, block.trainable_params()
        )
        loss, found = step(x)
    finally:
        muster.set_context(mode="graph")
    return [loss.asnumpy(), *(each.asnumpy() for each in found)]


def test_a_block_that_a_script_writes_in_parts_has_the_same_gradients_as_one_op_each():
    for joined, parts in zip(gradients("graph"), gradients("eager"), strict=True):
        numpy.testing.assert_allclose(joined, parts, rtol=1e-4, atol=1e-5)
