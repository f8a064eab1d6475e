"""flash_attention_score and its class: MindSpore has them for Ascend alone, and libraries call them.

They are scaled_dot_product_attention here, which keeps no products either.

Source: Dao et al., FlashAttention, arXiv 2205.14135.
"""

import muster
from mindspore import _names
from mindspore.ops._primitive import class_keeper
from muster import ops

_ALL = 2147483647  # tokens before and behind: no limit
# By layout, its features divided into heads: the transposes to (samples, heads, rows, depth) and back.
_ORDERS = {
    "BSH": ((0, 2, 1, 3), (0, 2, 1, 3)),
    "SBH": ((1, 2, 0, 3), (2, 0, 1, 3)),
    "BSND": ((0, 2, 1, 3), (0, 2, 1, 3)),
    "BNSD": (None, None),
}

_made = {}
_class = class_keeper(_made)


def _heads_first(tensor, layout, depth):
    """(samples, heads, rows, depth) of a tensor in this layout."""
    if layout in ("BSH", "SBH"):
        tensor = ops.reshape(tensor, (*tensor.shape[:2], -1, depth))
    order, _ = _ORDERS[layout]
    return tensor if order is None else ops.transpose(tensor, order)


def _as_given(y, layout):
    _, order = _ORDERS[layout]
    y = y if order is None else ops.transpose(y, order)
    return ops.reshape(y, (*y.shape[:2], -1)) if layout in ("BSH", "SBH") else y


def _band(queries, keys, sparse_mode, before, behind):
    """Which keys a query sees by its place: true where it does; None: all."""
    ends_together = sparse_mode in (
        3,
        4,
    )  # the last query beside the last key; else the first beside the first
    if sparse_mode in (2, 3):
        before, behind = _ALL, 0
    elif sparse_mode == 1:
        return None
    if before >= max(queries, keys) and behind >= max(queries, keys):
        return None
    rows = ops.reshape(ops.arange(0, queries), (-1, 1))
    apart = ops.sub(ops.reshape(ops.arange(0, keys), (1, -1)), rows)
    apart = ops.sub(apart, keys - queries if ends_together else 0)
    return ops.logical_and(ops.greater_equal(apart, -before), ops.less_equal(apart, behind))


def _mask(attn_mask, real_shift, seen, dtype):
    """What scaled_dot_product_attention takes: truth values, or numbers that are added."""
    if attn_mask is not None and seen is None:
        seen = ops.logical_not(ops.cast(attn_mask, muster.bool_))
    elif attn_mask is not None:
        seen = ops.logical_and(seen, ops.logical_not(ops.cast(attn_mask, muster.bool_)))
    if real_shift is None or seen is None:
        return seen if real_shift is None else ops.cast(real_shift, dtype)
    hidden = ops.cast(ops.select(seen, 0.0, float("-inf")), dtype)
    return ops.add(ops.cast(real_shift, dtype), hidden)


def _attention(query, key, value, given, settings):
    layout, heads = settings["input_layout"], settings["head_num"]
    depth = query.shape[-1] // heads if layout in ("BSH", "SBH") else query.shape[-1]
    q, k, v = (_heads_first(each, layout, depth) for each in (query, key, value))
    if q.shape[1] != heads:
        raise ValueError(f"flash attention: head_num is {heads}, the query has {q.shape[1]} heads")
    band = (settings["sparse_mode"], settings["pre_tokens"], settings["next_tokens"])
    seen = _band(q.shape[2], k.shape[2], *band)
    # In these modes the mask says by its triangle what the mode says, at a size of its own.
    own = None if settings["sparse_mode"] in (2, 3, 4) else given["attn_mask"]
    y = ops.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=_mask(own, given["real_shift"], seen, q.dtype),
        dropout_p=1.0 - settings["keep_prob"],
        scale=settings["scale_value"],
        enable_gqa=k.shape[1] != heads,
    )
    return _as_given(y, layout)


def _one_by_one(query, key, value, given, settings):
    """Layout TND: samples of their own lengths behind each other, which end at actual_seq_qlen and _kvlen."""
    ends = []
    for name in ("actual_seq_qlen", "actual_seq_kvlen"):
        if given[name] is None:
            raise ValueError(f"flash attention: input_layout='TND' needs {name}, the ends of the samples")
        said = given[name]
        ends.append(
            [int(end) for end in (said.asnumpy().tolist() if isinstance(said, muster.Tensor) else said)]
        )
    parts, began = [], (0, 0)
    for end in zip(*ends, strict=True):
        rows = [slice(a, b) for a, b in zip(began, end, strict=True)]
        one = [
            ops.expand_dims(each[at], 0)
            for each, at in ((query, rows[0]), (key, rows[1]), (value, rows[1]))
            if at.stop > at.start
        ]
        if len(one) == 3:
            parts.append(_attention(*one, given, {**settings, "input_layout": "BSND"})[0])
        began = end
    return ops.concat(parts, 0)


def _checked(query, key, value, given, settings):
    layout, mode = settings["input_layout"], settings["sparse_mode"]
    if layout not in (*_ORDERS, "TND"):
        raise ValueError(f"flash attention: input_layout is BSH, SBH, BNSD, BSND or TND, not {layout!r}")
    if mode not in (0, 1, 2, 3, 4):
        raise NotImplementedError(_names.sentence(f"mindspore.ops.flash_attention_score(sparse_mode={mode})"))
    for name in ("drop_mask", "padding_mask", "prefix"):
        if given[name] is not None:
            raise NotImplementedError(_names.sentence(f"mindspore.ops.flash_attention_score({name})"))
    run = _one_by_one if layout == "TND" else _attention
    return run(query, key, value, given, settings)


def flash_attention_score(
    query,
    key,
    value,
    head_num,
    real_shift=None,
    drop_mask=None,
    padding_mask=None,
    attn_mask=None,
    prefix=None,
    actual_seq_qlen=None,
    actual_seq_kvlen=None,
    keep_prob=1.0,
    scalar_value=1.0,
    pre_tokens=_ALL,
    next_tokens=_ALL,
    inner_precise=0,
    input_layout="BSH",
    sparse_mode=0,
):
    """softmax(scalar_value q k^T + real_shift) v for each of head_num heads, without keeping the products.

    Args:
        query: (B, S, H), (S, B, H), (B, N, S, D), (B, S, N, D) or (T, N, D), as input_layout says.
        key, value: The same with rows, and perhaps fewer heads, of their own.
        attn_mask: True or 1 where a query does not see a key.
        sparse_mode: 0 and 1: by attn_mask; 2 and 3: causal, by the first or the last row; 4: by tokens.
        pre_tokens, next_tokens: So many keys before and behind its own place a query sees, in modes 0 and 4.
    """
    given = {
        **{"real_shift": real_shift, "drop_mask": drop_mask, "padding_mask": padding_mask},
        **{"attn_mask": attn_mask, "prefix": prefix},
        **{"actual_seq_qlen": actual_seq_qlen, "actual_seq_kvlen": actual_seq_kvlen},
    }
    settings = {
        **{"head_num": head_num, "keep_prob": keep_prob, "scale_value": scalar_value},
        **{"pre_tokens": pre_tokens, "next_tokens": next_tokens},
        **{"input_layout": input_layout, "sparse_mode": sparse_mode},
    }
    return _checked(query, key, value, given, settings)


@_class(
    "FlashAttentionScore",
    head_num=1,
    keep_prob=1.0,
    scale_value=1.0,
    pre_tokens=_ALL,
    next_tokens=_ALL,
    inner_precise=0,
    input_layout="BSH",
    sparse_mode=0,
)
def _score(
    query,
    key,
    value,
    real_shift=None,
    drop_mask=None,
    padding_mask=None,
    attn_mask=None,
    prefix=None,
    actual_seq_qlen=None,
    actual_seq_kvlen=None,
    *,
    scale_value,
    **settings,
):
    """(None, None, None, y): the first three are for the gradient of the accelerators' kernel alone."""
    y = flash_attention_score(
        *(
            query,
            key,
            value,
            settings.pop("head_num"),
            real_shift,
            drop_mask,
            padding_mask,
            attn_mask,
            prefix,
        ),
        *(actual_seq_qlen, actual_seq_kvlen),
        scalar_value=scale_value,
        **settings,
    )
    return None, None, None, y


globals().update(_made)
__all__ = sorted({*_made, "flash_attention_score"})
