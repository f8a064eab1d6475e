"""Attention, and the layers of Transformers. Vaswani et al., NeurIPS 2017."""

import copy
import functools
import math

import muster
from mindspore import nn
from muster import ops


def _xavier(shape, name: str, dtype) -> muster.Parameter:
    initial = muster.initializers.xavier_uniform()
    return muster.Parameter(muster.nn.initializer(initial, shape, dtype), name=name)


def _zeros(shape, name: str, dtype) -> muster.Parameter:
    return muster.Parameter(muster.nn.initializer("zeros", shape, dtype), name=name)


def _times(x, weight, bias):
    """x weight^T + bias over the last axis."""
    y = ops.matmul(ops.reshape(x, (-1, x.shape[-1])), ops.transpose(weight, (1, 0)))
    if bias is not None:
        y = ops.bias_add(y, bias)
    return ops.reshape(y, (*x.shape[:-1], weight.shape[0]))


def _as_scores(mask, dtype):
    """What is added to the scores: of a mask of truth values minus infinity where it is true."""
    if mask.dtype is not muster.bool_:
        return ops.cast(mask, dtype)
    return ops.select(mask, ops.full(mask.shape, -math.inf, dtype=dtype), ops.zeros(mask.shape, dtype))


class MultiheadAttention(muster.Cell):
    """softmax(q k^T / sqrt(head)) v in `num_heads` parts of the features, then a Dense: (output, weights).

    query (L, N, embed_dim), key (S, N, kdim), value (S, N, vdim); with `batch_first` the samples come first.
    A mask is true, or minus infinity, where a position must not be seen: `attn_mask` (L, S) or (N num_heads,
    L, S), `key_padding_mask` (N, S). The weights are averaged over the heads unless `average_attn_weights` is
    False.
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        has_bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        dtype=muster.float32,
    ):
        super().__init__()
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: num_heads {num_heads} must divide embed_dim {embed_dim}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.has_bias, self.batch_first = dropout, has_bias, batch_first
        self.add_zero_attn, self._has_bias_kv = add_zero_attn, add_bias_kv
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        if self._qkv_same_embed_dim:
            self.in_proj_weight = _xavier((3 * embed_dim, embed_dim), "in_proj_weight", dtype)
        else:
            self.q_proj_weight = _xavier((embed_dim, embed_dim), "q_proj_weight", dtype)
            self.k_proj_weight = _xavier((embed_dim, self.kdim), "k_proj_weight", dtype)
            self.v_proj_weight = _xavier((embed_dim, self.vdim), "v_proj_weight", dtype)
        if has_bias:
            self.in_proj_bias = _zeros((3 * embed_dim,), "in_proj_bias", dtype)
        self.out_proj = nn.Dense(embed_dim, embed_dim, has_bias=has_bias, dtype=dtype)
        if add_bias_kv:
            self.bias_k = _xavier((1, 1, embed_dim), "bias_k", dtype)
            self.bias_v = _xavier((1, 1, embed_dim), "bias_v", dtype)
        self._drop = muster.nn.Dropout(p=dropout) if dropout else None

    def construct(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
    ):
        """(output, weights or None)."""
        has_batch = query.ndim == 3
        if not has_batch:
            query, key, value = (ops.expand_dims(x, 1) for x in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = ops.expand_dims(key_padding_mask, 0)
        elif self.batch_first:
            query, key, value = (ops.transpose(x, (1, 0, 2)) for x in (query, key, value))
        parts = self._attention_parts(*self._projected(query, key, value), key_padding_mask, attn_mask)
        # Without a mask every query sees keys: graphs make one op of it, and files have MindSpore's ops.
        at_once = not need_weights and parts[-1] is not None
        heads, weights = (self._at_once(*parts), None) if at_once else self._weighted(*parts)
        output = self._joined(heads)
        if not has_batch:
            output = ops.squeeze(output, 1)
        elif self.batch_first:
            output = ops.transpose(output, (1, 0, 2))
        if not need_weights:
            return output, None
        if average_attn_weights:
            weights = ops.reduce_mean(weights, 1)
        return output, weights if has_batch else ops.squeeze(weights, 0)

    def _projected(self, query, key, value):
        if self._qkv_same_embed_dim:
            weights = ops.split(self.in_proj_weight, self.embed_dim, 0)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = ops.split(self.in_proj_bias, self.embed_dim, 0) if self.has_bias else (None,) * 3
        return [_times(*parts) for parts in zip((query, key, value), weights, biases, strict=True)]

    def _heads(self, x):
        """(L, N, embed_dim) as (N, heads, L, head_dim)."""
        return ops.transpose(
            ops.reshape(x, (x.shape[0], x.shape[1], self.num_heads, self.head_dim)), (1, 2, 0, 3)
        )

    def _attention_parts(self, q, k, v, padding, mask):
        """q, k and v with heads, and what is added to their scores."""
        batch = q.shape[1]
        added = 0
        if self._has_bias_kv:
            k = ops.concat((k, ops.broadcast_to(self.bias_k, (1, batch, self.embed_dim))), 0)
            v = ops.concat((v, ops.broadcast_to(self.bias_v, (1, batch, self.embed_dim))), 0)
            added += 1
        if self.add_zero_attn:
            none = ops.zeros((1, batch, self.embed_dim))
            k, v = ops.concat((k, none), 0), ops.concat((v, none), 0)
            added += 1
        q, k, v = (self._heads(x) for x in (q, k, v))
        extras = list(self._masks(padding, mask, batch, added, q.dtype))
        return q, k, v, functools.reduce(ops.add, extras) if extras else None

    def _weighted(self, q, k, v, extra):
        scores = ops.mul(ops.batch_matmul(q, k, transpose_b=True), 1 / math.sqrt(self.head_dim))
        weights = ops.softmax(scores if extra is None else ops.add(scores, extra), -1)
        if self._drop is not None:
            weights = self._drop(weights)
        return ops.batch_matmul(weights, v), weights

    def _at_once(self, q, k, v, extra):
        """Without the weights. A query that sees no key, of a sample that is padding alone, gets zeros."""
        dropout = self.dropout if self.training else 0.0
        return ops.scaled_dot_product_attention(q, k, v, extra, dropout_p=dropout)

    def _joined(self, heads):
        y = ops.transpose(heads, (2, 0, 1, 3))
        return self.out_proj(ops.reshape(y, (*y.shape[:2], self.embed_dim)))

    def _masks(self, padding, mask, batch, added, dtype):
        if mask is not None:
            extra = ops.pad(_as_scores(mask, dtype), (0, added)) if added else _as_scores(mask, dtype)
            shape = (batch, self.num_heads) if mask.ndim == 3 else (1, 1)
            yield ops.reshape(extra, (*shape, *extra.shape[-2:]))
        if padding is not None:
            extra = ops.pad(_as_scores(padding, dtype), (0, added)) if added else _as_scores(padding, dtype)
            yield ops.reshape(extra, (extra.shape[0], 1, 1, extra.shape[1]))


class _Function:
    """A function that copies of its cell share."""

    def __init__(self, function):
        self.function = function

    def __call__(self, x):
        return self.function(x)

    def __deepcopy__(self, memo):
        return self


_ACTIVATIONS = {"relu": ops.relu, "gelu": ops.gelu}


def _activation(activation):
    """As it is kept: a name (no cell, as in MindSpore), a cell, or a function."""
    if isinstance(activation, str):
        if activation not in _ACTIVATIONS:
            raise ValueError(f"activation is 'relu', 'gelu', a cell or a function, not {activation!r}")
        return activation
    return activation if isinstance(activation, muster.Cell) else _Function(activation)


class _TransformerLayer(muster.Cell):
    norms = 2

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        dtype=muster.float32,
    ):
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        if self.norms == 3:
            self.multihead_attn = MultiheadAttention(
                d_model, nhead, dropout, batch_first=batch_first, dtype=dtype
            )
        self.dense1 = nn.Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = muster.nn.Dropout(p=dropout)
        self.dense2 = nn.Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm_first = norm_first
        for index in range(1, self.norms + 1):
            setattr(self, f"norm{index}", nn.LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype))
        for index in range(1, self.norms + 1):
            setattr(self, f"dropout{index}", muster.nn.Dropout(p=dropout))
        self.activation1 = _activation(activation)

    def _around(self, x, part, norm, dropout):
        """x + dropout(part(x)), normalized before or after."""
        if self.norm_first:
            return ops.add(x, dropout(part(norm(x))))
        return norm(ops.add(x, dropout(part(x))))

    def _feed_forward(self, x):
        activate = _ACTIVATIONS.get(self.activation1, self.activation1)
        return self.dense2(self.dropout(activate(self.dense1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """Attention of a sequence to itself, and two Dense, each with a sum around it and a LayerNorm."""

    def construct(self, src, src_mask=None, src_key_padding_mask=None):
        """src (L, N, d_model), or (N, L, d_model) with batch_first, to the same shape."""

        def attend(x):
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask)[0]

        x = self._around(src, attend, self.norm1, self.dropout1)
        return self._around(x, self._feed_forward, self.norm2, self.dropout2)


class TransformerDecoderLayer(_TransformerLayer):
    """TransformerEncoderLayer with attention to `memory`, what an encoder gave, between its two parts."""

    norms = 3

    def construct(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        """tgt (L, N, d_model) and memory (S, N, d_model) to the shape of tgt."""

        def attend(x):
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask)[0]

        def look(x):
            return self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask)[0]

        x = self._around(tgt, attend, self.norm1, self.dropout1)
        x = self._around(x, look, self.norm2, self.dropout2)
        return self._around(x, self._feed_forward, self.norm3, self.dropout3)


def _copies(layer, count: int) -> muster.nn.CellList:
    return muster.nn.CellList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(muster.Cell):
    """`num_layers` copies of a TransformerEncoderLayer, and `norm` behind them."""

    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self._last = norm is not None
        if norm is not None:
            self.norm = norm

    def construct(self, src, src_mask=None, src_key_padding_mask=None):
        """src through all layers."""
        for layer in self.layers:
            src = layer(src, src_mask, src_key_padding_mask)
        return self.norm(src) if self._last else src


class TransformerDecoder(muster.Cell):
    """`num_layers` copies of a TransformerDecoderLayer, and `norm` behind them."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self._last = norm is not None
        if norm is not None:
            self.norm = norm

    def construct(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        """tgt through all layers, each of which sees `memory`."""
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.norm(tgt) if self._last else tgt


class Transformer(muster.Cell):
    """An encoder of `src` and a decoder of `tgt` that sees what the encoder gave."""

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        dtype=muster.float32,
    ):
        super().__init__()
        settings = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
            dtype,
        )  # fmt: skip
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*settings),
            num_encoder_layers,
            nn.LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype),
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*settings),
            num_decoder_layers,
            nn.LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype),
        )

    def construct(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        """src (S, N, d_model) and tgt (T, N, d_model) to the shape of tgt."""
        for name, x in (("src", src), ("tgt", tgt)):
            if x.shape[-1] != self.d_model:
                raise ValueError(f"Transformer: {name} {x.shape} does not end with d_model {self.d_model}")
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)


__all__ = [
    "MultiheadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]
