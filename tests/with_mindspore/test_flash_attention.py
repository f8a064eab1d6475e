"""flash_attention_score in every layout and mode beside the formula."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops
from mindspore.ops.operations.nn_ops import FlashAttentionScore

HEADS, ROWS, DEPTH = 4, 6, 8
_RNG = np.random.default_rng(3)
Q, K, V = (_RNG.normal(size=(2, HEADS, ROWS, DEPTH)).astype(np.float32) for _ in range(3))
CAUSAL = np.tril(np.ones((ROWS, ROWS), bool))


def formula(q, k, v, scale=1.0, seen=True, shift=0.0):
    k, v = (np.repeat(each, q.shape[1] // each.shape[1], 1) for each in (k, v))
    scores = np.where(seen, scale * q @ np.swapaxes(k, -1, -2) + shift, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def bsnd(x):
    return x.transpose(0, 2, 1, 3)


def bsh(x):
    return bsnd(x).reshape(x.shape[0], x.shape[2], -1)


def sbh(x):
    return bsh(x).transpose(1, 0, 2)


LAYOUTS = {"BNSD": lambda x: x, "BSND": bsnd, "BSH": bsh, "SBH": sbh}


def near(found, expected):
    assert found.shape == expected.shape
    assert np.abs(found.asnumpy() - expected).max() < 1e-5


def score(q, k, v, *args, heads=HEADS, **kwargs):
    return ops.flash_attention_score(Tensor(q), Tensor(k), Tensor(v), heads, *args, **kwargs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("key_heads", [HEADS, 2, 1])
def test_each_layout_takes_keys_with_as_many_heads_or_fewer(layout, key_heads):
    put = LAYOUTS[layout]
    k, v = K[:, :key_heads], V[:, :key_heads]
    found = score(put(Q), put(k), put(v), scalar_value=0.3, input_layout=layout)
    near(found, put(formula(Q, k, v, 0.3)))


def test_a_mask_says_what_is_hidden_and_a_shift_is_added():
    hidden = ~CAUSAL
    shift = _RNG.normal(size=(2, HEADS, ROWS, ROWS)).astype(np.float32)
    for mask in (hidden, hidden.astype(np.uint8)):
        near(score(Q, K, V, attn_mask=Tensor(mask), input_layout="BNSD"), formula(Q, K, V, 1, CAUSAL))
        found = score(Q, K, V, Tensor(shift), attn_mask=Tensor(mask), input_layout="BNSD")
        near(found, formula(Q, K, V, 1, CAUSAL, shift))
    near(score(Q, K, V, Tensor(shift), input_layout="BNSD"), formula(Q, K, V, shift=shift))


def test_modes_and_tokens_say_which_keys_a_query_sees():
    short = Q[:, :, :3]
    given = {"input_layout": "BNSD"}
    near(score(Q, K, V, sparse_mode=2, **given), formula(Q, K, V, 1, CAUSAL))
    near(score(short, K, V, sparse_mode=2, **given), formula(short, K, V, 1, CAUSAL[:3]))
    near(score(short, K, V, sparse_mode=3, **given), formula(short, K, V, 1, CAUSAL[3:]))
    band = CAUSAL & np.triu(np.ones((ROWS, ROWS), bool), -1)
    near(score(Q, K, V, pre_tokens=1, next_tokens=0, **given), formula(Q, K, V, 1, band))
    near(
        score(short, K, V, pre_tokens=1, next_tokens=0, sparse_mode=4, **given),
        formula(short, K, V, 1, band[3:]),
    )


def test_samples_of_their_own_lengths_lie_behind_each_other():
    def behind(x):
        return np.concatenate([bsnd(x)[0], bsnd(x)[1, :4]])

    parts = [formula(*(each[at : at + 1, :, :rows] for each in (Q, K, V))) for at, rows in ((0, 6), (1, 4))]
    expected = np.concatenate([bsnd(part)[0] for part in parts])
    for ends in ([6, 10], Tensor([6, 10])):
        given = {"actual_seq_qlen": ends, "actual_seq_kvlen": ends, "input_layout": "TND"}
        near(score(behind(Q), behind(K), behind(V), **given), expected)
    with pytest.raises(ValueError, match="needs actual_seq_qlen"):
        score(behind(Q), behind(K), behind(V), input_layout="TND")


def test_the_class_gives_the_attention_as_its_fourth_result_also_traced_and_with_gradients():
    attend = FlashAttentionScore(HEADS, scale_value=0.3, input_layout="BNSD")

    def compute(q):
        return attend(q, Tensor(K), Tensor(V), None, None, None, Tensor(~CAUSAL))[3]

    near(compute(Tensor(Q)), formula(Q, K, V, 0.3, CAUSAL))
    near(ms.jit(compute)(Tensor(Q)), formula(Q, K, V, 0.3, CAUSAL))
    gradient = ms.grad(lambda q: compute(q).sum())(Tensor(Q)).asnumpy()
    step = np.zeros_like(Q)
    step[1, 2, 3, 4] = 1e-2
    apart = formula(Q + step, K, V, 0.3, CAUSAL).sum() - formula(Q - step, K, V, 0.3, CAUSAL).sum()
    assert abs(gradient[1, 2, 3, 4] - apart / 2e-2) < 1e-3


def test_what_it_cannot_do_is_refused_by_name():
    with pytest.raises(ValueError, match="head_num is 3, the query has 4 heads"):
        score(Q, K, V, heads=3, input_layout="BNSD")
    with pytest.raises(ValueError, match=r"input_layout is BSH, .* not 'BDS'"):
        score(Q, K, V, input_layout="BDS")
    with pytest.raises(NotImplementedError, match="sparse_mode=7"):
        score(Q, K, V, sparse_mode=7, input_layout="BNSD")
    with pytest.raises(NotImplementedError, match="drop_mask"):
        score(Q, K, V, drop_mask=Tensor(CAUSAL), input_layout="BNSD")
