"""Losses as functions: each computes what the cell of its name computes."""

import muster
from mindspore import _names
from mindspore.ops import _math
from muster import nn, ops

# A cell's construct is called, not the cell: nothing is left behind that a trace would have to watch.


def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """nn.CrossEntropyLoss."""
    return nn.CrossEntropyLoss(weight, ignore_index, reduction, label_smoothing).construct(input, target)


def nll_loss(inputs, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """nn.NLLLoss."""
    _names.refuse("mindspore.ops.nll_loss", label_smoothing=(label_smoothing, 0.0))
    return nn.NLLLoss(weight, ignore_index, reduction).construct(inputs, target)


def mse_loss(input, target, reduction="mean"):
    """nn.MSELoss; of whole numbers float32, whose mean is no whole number."""
    loss = nn.MSELoss(reduction)
    if not (_math._is_whole(input) and _math._is_whole(target)):
        return loss.construct(input, target)
    squares = ops.cast(ops.square(ops.sub(input, target)), muster.float32)
    if reduction == "none":
        return squares
    return ops.reduce_mean(squares) if reduction == "mean" else ops.reduce_sum(squares)


def l1_loss(input, target, reduction="mean"):
    """nn.L1Loss."""
    return nn.L1Loss(reduction).construct(input, target)


def smooth_l1_loss(input, target, beta=1.0, reduction="none"):
    """nn.SmoothL1Loss."""
    return nn.SmoothL1Loss(beta, reduction).construct(input, target)


def binary_cross_entropy(logits, labels, weight=None, reduction="mean"):
    """nn.BCELoss: `logits` are probabilities."""
    return nn.BCELoss(weight, reduction).construct(logits, labels)


def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction="mean"):
    """nn.BCEWithLogitsLoss."""
    return nn.BCEWithLogitsLoss(reduction, weight, pos_weight).construct(input, target)


def kl_div(logits, labels, reduction="mean"):
    """labels (log(labels) - logits), logits being logarithms; 'batchmean' divides by the first size."""
    positive = ops.maximum(labels, 1e-38)
    losses = ops.select(
        ops.greater(labels, 0), ops.mul(labels, ops.sub(ops.log(positive), logits)), ops.zeros_like(labels)
    )
    if reduction == "none":
        return losses
    if reduction == "mean":
        return ops.reduce_mean(losses)
    if reduction not in ("sum", "batchmean"):
        raise ValueError(f"kl_div: reduction is 'none', 'mean', 'sum' or 'batchmean', not {reduction!r}")
    total = ops.reduce_sum(losses)
    return total if reduction == "sum" else ops.div(total, logits.shape[0])


__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]
