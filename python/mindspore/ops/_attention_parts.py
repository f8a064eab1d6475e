"""What MindSpore's nn_func builds its attention of, for libraries that build theirs of the same parts."""

import muster
from mindspore import ops as named
from muster import ops


def linear(x, w, b):
    """x times the transposed w, plus b where that is not None."""
    y = ops.matmul(x, ops.swapaxes(w, -1, -2))
    return y if b is None else ops.add(y, b)


def _inner_dropout(x, p, training):
    return named.dropout(x, p, training)


def _inner_pad(x, padding, value=None):
    """pad() of any dtype, also of truth values."""
    wide = ops.cast(x, muster.int32) if x.dtype == muster.bool_ else x
    return ops.cast(ops.pad(wide, tuple(padding), value=0 if value is None else value), x.dtype)


def _require_shape(what, tensor, shape):
    if tensor is not None and tensor.shape != shape:
        raise ValueError(f"{what} is of shape {shape}, not {tensor.shape}")


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Queries, keys and values, each times a weight of its own."""
    size = q.shape[-1]
    parts = []
    for what, x, w, b in (("query", q, w_q, b_q), ("key", k, w_k, b_k), ("value", v, w_v, b_v)):
        _require_shape(f"the weight of the {what}", w, (size, x.shape[-1]))
        _require_shape(f"the bias of the {what}", b, (size,))
        parts.append(linear(x, w, b))
    return tuple(parts)


def _in_projection_packed(q, k, v, w, b, k_is_v, q_is_k):
    """The same with the three weights, and biases, in one tensor."""
    size = q.shape[-1]
    if k_is_v and q_is_k:
        return tuple(ops.split(linear(q, w, b), size, -1))
    weights = ops.split(w, size, 0)
    biases = (None,) * 3 if b is None else ops.split(b, size, 0)
    return tuple(linear(*each) for each in zip((q, k, v), weights, biases, strict=True))


def _check_qkv_shape(query_ndim, key_ndim, value_ndim):
    """Whether there is an axis of samples."""
    if query_ndim not in (2, 3) or {key_ndim, value_ndim} != {query_ndim}:
        raise ValueError(
            "query, key and value have all 3 axes, or without samples 2, not "
            f"{query_ndim}, {key_ndim} and {value_ndim}"
        )
    return query_ndim == 3


def _check_kpm_shape(query_ndim, kmp_ndim):
    if kmp_ndim != query_ndim - 1:
        raise ValueError(f"key_padding_mask has {query_ndim - 1} axes, as query has one more, not {kmp_ndim}")


def _check_attn_mask_shape(query_ndim, query_shape, key_shape, attn_mask_ndim, attn_mask_shape, num_heads):
    if attn_mask_ndim not in (2, 3):
        raise ValueError(f"attn_mask has 2 or 3 axes, not {attn_mask_ndim}")
    wanted = (num_heads, query_shape[0], key_shape[0])
    if query_ndim == 2 and attn_mask_ndim == 3 and tuple(attn_mask_shape) != wanted:
        raise ValueError(f"attn_mask is of shape {wanted}, not {tuple(attn_mask_shape)}")


def _interploate_ext_make_tuple(input, value):
    """One number for each axis of images behind their channels."""
    return value if isinstance(value, (list, tuple)) else (value,) * (input.ndim - 2)


def _interpolate_ext_scale_factor_convert_size(input, scale_factor):
    """The sizes that come of scales."""
    return tuple(int(n * scale) for n, scale in zip(input.shape[2:], scale_factor, strict=False))


__all__ = ["linear"]
