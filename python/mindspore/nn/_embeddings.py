"""Lookups in tables of embeddings, which parameter servers may hold."""

import warnings

import muster
from mindspore.ops import _places
from muster import _core, ops

_SLICE_MODES = ("batch_slice", "field_slice", "table_row_slice", "table_column_slice")
_OPERATORS = ("SUM", "MEAN", "MAX")


def _positive(**numbers):
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"EmbeddingLookup: {name} is an int, not {type(value).__name__}")
        if value < 1:
            raise ValueError(f"EmbeddingLookup: {name} is at least 1, not {value}")


class EmbeddingLookup(muster.Cell):
    """Numbers (...) to rows (..., embedding_size) of `embedding_table`, and to zeros where it has none.

    With set_param_ps the table lives on parameter servers, and a worker pulls the rows that it needs.

    Args:
        vocab_size: How many rows the table has.
        embedding_size: How many numbers a row has.
        param_init: What rows begin with: a name, an initializer, a number, or a tensor.
        target: "CPU" or "DEVICE", which are the same here.
        slice_mode: How MindSpore would divide it; a table on servers is cut by rows. "field_slice" wants
            manual_shapes.
        manual_shapes: The rows of each field, a tuple.
        max_norm: Longer rows are given with this length; None leaves them.
        sparse: Changes nothing; True for the target "CPU".
        vocab_cache_size: With the target "DEVICE" and enable_ps, the table lives on servers without
            set_param_ps, and a worker keeps so many of its rows for as long as
            set_ps_context(staleness=...) allows: with 0 steps within a step, as between the batches of an
            evaluation. The results are the same.
        dtype: Of the table.
    """

    BATCH_SLICE, FIELD_SLICE, TABLE_ROW_SLICE, TABLE_COLUMN_SLICE = _SLICE_MODES

    def __init__(
        self,
        vocab_size,
        embedding_size,
        param_init="normal",
        target="CPU",
        slice_mode="batch_slice",
        manual_shapes=None,
        max_norm=None,
        sparse=True,
        vocab_cache_size=0,
        dtype=muster.float32,
    ):
        super().__init__()
        _positive(vocab_size=vocab_size, embedding_size=embedding_size)
        self._check(target, slice_mode, manual_shapes, sparse, vocab_cache_size)
        if max_norm is not None and not max_norm > 0:
            raise ValueError(f"EmbeddingLookup: max_norm is above 0, not {max_norm}")
        self.vocab_size, self.embedding_size, self.max_norm = vocab_size, embedding_size, max_norm
        shape = (vocab_size, embedding_size)
        self.embedding_table = muster.Parameter(
            muster.nn.initializer(param_init, shape, muster.dtype(dtype)), name="embedding_table"
        )
        self.embedding_table._mark_table()
        self.embedding_table._is_table = True
        if vocab_cache_size and target == "DEVICE":
            self.embedding_table._put_on_servers(vocab_cache_size)
            self.embedding_table.is_param_ps = True

    @staticmethod
    def _check(target, slice_mode, manual_shapes, sparse, vocab_cache_size):
        if target not in ("CPU", "DEVICE"):
            raise ValueError(f"EmbeddingLookup: target is 'CPU' or 'DEVICE', not {target!r}")
        if slice_mode not in _SLICE_MODES:
            raise ValueError(f"EmbeddingLookup: slice_mode is one of {_SLICE_MODES}, not {slice_mode!r}")
        if manual_shapes is not None and not isinstance(manual_shapes, tuple):
            raise TypeError("EmbeddingLookup: manual_shapes is a tuple")
        if not sparse and target == "CPU":
            raise ValueError("EmbeddingLookup: sparse is True for the target 'CPU'")
        if isinstance(vocab_cache_size, bool) or not isinstance(vocab_cache_size, int):
            raise TypeError("EmbeddingLookup: vocab_cache_size is an int")
        if vocab_cache_size < 0:
            raise ValueError(f"EmbeddingLookup: vocab_cache_size is at least 0, not {vocab_cache_size}")
        if vocab_cache_size and not muster.get_ps_context("enable_ps"):
            raise ValueError("EmbeddingLookup: vocab_cache_size is of parameter server training (enable_ps)")
        if vocab_cache_size and target == "CPU":
            warnings.warn(
                "EmbeddingLookup: vocab_cache_size changes nothing for the target 'CPU'", stacklevel=3
            )

    def prefetch(self, indices):
        """What the next training step will look up, before this step's optimizer: it changes no number."""
        _core._look_up_ahead(self.embedding_table, indices)

    def construct(self, indices):
        """The rows; with `max_norm` none is longer."""
        rows = _core._look_up(self.embedding_table, indices)
        if self.max_norm is None:
            return rows
        norm = ops.sqrt(ops.reduce_sum(ops.square(rows), rows.ndim - 1, True))
        return ops.div(ops.mul(rows, self.max_norm), ops.maximum(norm, self.max_norm))


class MultiFieldEmbeddingLookup(EmbeddingLookup):
    """Rows of several numbers, weighted and put together by the field that each belongs to.

    Args:
        vocab_size: How many rows the table has.
        embedding_size: How many numbers a row has.
        field_size: How many fields there are.
        param_init: What rows begin with.
        target: As of EmbeddingLookup.
        slice_mode: As of EmbeddingLookup.
        feature_num_list: Changes nothing.
        max_norm: Longer rows are taken with this length; None leaves them.
        sparse: As of EmbeddingLookup.
        operator: How the rows of a field become one: "SUM", "MEAN" by the sum of their weights, or "MAX" of
            each number.
        dtype: Of the table.
    """

    OPERATOR_SUM, OPERATOR_MEAN, OPERATOR_MAX = _OPERATORS

    def __init__(
        self,
        vocab_size,
        embedding_size,
        field_size,
        param_init="normal",
        target="CPU",
        slice_mode="batch_slice",
        feature_num_list=None,
        max_norm=None,
        sparse=True,
        operator="SUM",
        dtype=muster.float32,
    ):
        super().__init__(
            vocab_size,
            embedding_size,
            param_init,
            target,
            slice_mode,
            feature_num_list,
            max_norm,
            sparse,
            dtype=dtype,
        )
        _positive(field_size=field_size)
        if operator not in _OPERATORS:
            raise ValueError(
                f"MultiFieldEmbeddingLookup: operator is 'SUM', 'MEAN' or 'MAX', not {operator!r}"
            )
        self.field_size, self.operator = field_size, operator

    def construct(self, input_indices, input_values, field_ids):
        """(batch, sequence) each to (batch, field_size, embedding_size).

        A weight of 0 leaves its number out; a field without others is 0.
        """
        for name, given in (("indices", input_indices), ("values", input_values), ("field ids", field_ids)):
            if given.ndim != 2:
                raise ValueError(f"MultiFieldEmbeddingLookup: the {name} have 2 axes, not {given.ndim}")
        batch = input_indices.shape[0]
        segments = batch * self.field_size
        begins = ops.reshape(ops.mul(ops.arange(batch), self.field_size), (batch, 1))
        fields = ops.reshape(ops.add(field_ids, ops.cast(begins, field_ids.dtype)), (-1,))
        weights = ops.reshape(input_values, (-1, 1))
        rows = ops.reshape(super().construct(input_indices), (-1, self.embedding_size))
        rows = ops.mul(rows, weights)
        total = _places.unsorted_segment_sum(ops.abs(weights), fields, segments)
        if self.operator == "MAX":
            lowest = ops.mul(ops.cast(ops.equal(weights, 0.0), muster.float32), -3.402823466e38)
            merged = _places.unsorted_segment_max(ops.add(rows, lowest), fields, segments)
            merged = ops.mul(merged, ops.cast(ops.not_equal(total, 0.0), muster.float32))
        else:
            merged = _places.unsorted_segment_sum(rows, fields, segments)
        if self.operator == "MEAN":
            merged = ops.div(merged, ops.select(ops.equal(total, 0.0), 1.0, total))
        return ops.reshape(merged, (batch, self.field_size, self.embedding_size))


__all__ = ["EmbeddingLookup", "MultiFieldEmbeddingLookup"]
