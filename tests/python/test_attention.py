"""Attention as one op, beside numpy and beside the ops that it stands for."""

import numpy as np
import pytest

import muster
from muster import Tensor, ops


def draw(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def attention(q, k, v, visible=True, added=0.0):
    """In float64; heads of k and v repeat."""
    k, v = (np.repeat(x.astype("float64"), q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = q.astype("float64") @ k.swapaxes(2, 3) / np.sqrt(q.shape[3]) + added
    s = np.where(visible, s, -1e30)
    p = np.exp(s - s.max(-1, keepdims=True))
    p = np.where(visible, p / p.sum(-1, keepdims=True), 0)
    return p @ v


def call(q, k, v, *more, **settings):
    return ops.scaled_dot_product_attention(Tensor(q), Tensor(k), Tensor(v), *more, **settings).asnumpy()


def test_attention_is_a_mean_of_the_values_by_softmax():
    q, k, v = draw(2, 3, 70, 20), draw(2, 3, 33, 20, seed=1), draw(2, 3, 33, 9, seed=2)
    np.testing.assert_allclose(call(q, k, v), attention(q, k, v), atol=2e-6)


def test_a_causal_query_sees_no_later_key():
    q, k, v = (draw(1, 2, 130, 16, seed=seed) for seed in range(3))
    past = np.tril(np.ones((130, 130), bool))
    np.testing.assert_allclose(call(q, k, v, is_causal=True), attention(q, k, v, past), atol=2e-6)


@pytest.mark.parametrize("shape", [(4, 6), (2, 1, 1, 6), (2, 3, 4, 6)])
def test_a_mask_of_truth_values_hides_where_it_is_false(shape):
    q, k, v = draw(2, 3, 4, 8), draw(2, 3, 6, 8, seed=1), draw(2, 3, 6, 8, seed=2)
    mask = draw(*shape, seed=3) > -0.5
    np.testing.assert_allclose(call(q, k, v, Tensor(mask)), attention(q, k, v, mask), atol=2e-6)


def test_a_mask_of_numbers_is_added_and_learned():
    q, k, v = draw(1, 2, 4, 8), draw(1, 2, 6, 8, seed=1), draw(1, 2, 6, 8, seed=2)
    mask = draw(2, 4, 6, seed=3)
    np.testing.assert_allclose(call(q, k, v, Tensor(mask)), attention(q, k, v, added=mask), atol=2e-6)

    def loss(bias):
        return ops.reduce_sum(ops.scaled_dot_product_attention(Tensor(q), Tensor(k), Tensor(v), bias))

    _, slope = muster.value_and_grad(loss)(Tensor(mask))
    moved = mask.copy()
    moved[1, 2, 3] += 1e-2
    above = attention(q, k, v, added=moved).sum()
    moved[1, 2, 3] -= 2e-2
    assert slope.asnumpy()[1, 2, 3] == pytest.approx(
        (above - attention(q, k, v, added=moved).sum()) / 2e-2, abs=1e-3
    )


@pytest.mark.parametrize("dtype", [muster.float32, muster.bfloat16, muster.float64])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_query_that_an_added_mask_lets_see_no_key_gives_zeros_and_no_gradient(dtype, compiled):
    q, k, v = (Tensor(draw(2, 2, 5, 8, seed=seed)).astype(dtype) for seed in range(3))
    visible = np.arange(5) < np.array([5, 3, 0, 1, 5])[:, None]
    added = Tensor(np.where(visible, 0, -np.inf).astype("float32")).astype(dtype)

    def slopes(mask):
        def loss(q, k, v):
            y = ops.scaled_dot_product_attention(q, k, v, mask)
            return ops.reduce_sum(y * v), y

        found = muster.value_and_grad(loss, (0, 1, 2), has_aux=True)
        (_, y), gradients = (muster.jit(found) if compiled else found)(q, k, v)
        return [x.astype(muster.float32).asnumpy() for x in (y, *gradients)]

    for ours, of_truth in zip(slopes(added), slopes(Tensor(visible)), strict=True):
        np.testing.assert_array_equal(ours, of_truth)
    assert (slopes(added)[0][:, :, 2] == 0).all()


def test_a_learned_mask_gets_no_gradient_from_a_query_that_sees_no_key():
    q, k, v = (Tensor(draw(1, 2, 3, 4, seed=seed)) for seed in range(3))
    mask = draw(3, 3, seed=3)
    mask[1] = -np.inf

    def loss(bias):
        return ops.reduce_sum(ops.scaled_dot_product_attention(q, k, v, bias))

    slope = muster.value_and_grad(loss)(Tensor(mask))[1].asnumpy()
    assert (slope[1] == 0).all()
    assert np.isfinite(slope).all() and slope[0].any()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_query_that_sees_no_key_is_no_number_in_several_ops_as_its_softmax_is(compiled):
    q, k, v = (Tensor(draw(1, 2, 3, 4, seed=seed)) for seed in range(3))
    mask = Tensor(np.where([[1], [0], [1]], np.zeros((3, 3)), -np.inf).astype("float32"))

    def parts(q, k, v):
        return ops.batch_matmul(ops.softmax(ops.batch_matmul(q, k, transpose_b=True) + mask), v)

    y = (muster.jit(parts) if compiled else parts)(q, k, v).asnumpy()
    assert np.isnan(y[:, :, 1]).all()
    assert np.isfinite(y[:, :, [0, 2]]).all()


def test_heads_share_keys_and_values():
    q, k, v = draw(2, 4, 5, 8), draw(2, 2, 7, 8, seed=1), draw(2, 2, 7, 8, seed=2)
    np.testing.assert_allclose(call(q, k, v), attention(q, k, v), atol=2e-6)
    np.testing.assert_array_equal(call(q, k, v, enable_gqa=True), call(q, k, v))


def test_bfloat16_gives_float32_rounded():
    q, k, v = (draw(1, 2, 40, 16, seed=seed) for seed in range(3))
    low = [ops.cast(Tensor(x), muster.bfloat16) for x in (q, k, v)]
    given = ops.scaled_dot_product_attention(*low)
    assert given.dtype is muster.bfloat16
    exact = attention(*(ops.cast(x, muster.float32).asnumpy() for x in low))
    np.testing.assert_allclose(ops.cast(given, muster.float32).asnumpy(), exact, rtol=1 / 128, atol=1e-3)


def test_dropout_drops_what_a_dropout_of_the_softmax_drops():
    q, k, v = (draw(3, 2, 20, 8, seed=seed) for seed in range(3))

    def by_parts(x, y, z):
        scores = ops.mul(ops.batch_matmul(x, y, transpose_b=True), 8**-0.5)
        return ops.batch_matmul(ops.dropout(ops.softmax(scores), 0.7), z)

    def at_once(x, y, z):
        return ops.scaled_dot_product_attention(x, y, z, dropout_p=0.3)

    def run(function):
        muster.set_seed(5)  # which begins the random numbers anew
        return muster.jit(function)(*(Tensor(x) for x in (q, k, v))).asnumpy()

    one, other = run(at_once), run(by_parts)
    np.testing.assert_allclose(one, other, atol=2e-6)
    assert not np.allclose(one, call(q, k, v))


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"q \(1, 1, 2, 3\) and k \(1, 1, 2, 4\) differ"):
        call(draw(1, 1, 2, 3), draw(1, 1, 2, 4), draw(1, 1, 2, 4))
