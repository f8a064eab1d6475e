"""mindspore.ops: further losses as functions."""

import math

import muster
from mindspore.ops import _losses, _numbers
from muster import ops


def reduced(losses, reduction, name):
    """The mean, the sum, or the losses as they are."""
    if reduction == "none":
        return losses
    if reduction == "mean":
        return ops.reduce_mean(losses)
    if reduction == "sum":
        return ops.reduce_sum(losses)
    raise ValueError(f"{name}: reduction is 'none', 'mean' or 'sum', not {reduction!r}")


def huber_loss(input, target, reduction="mean", delta=1.0):
    """Half the square of the difference up to delta, beyond it linear."""
    away = ops.abs(ops.sub(input, target))
    square = ops.mul(ops.square(away), 0.5)
    line = ops.mul(ops.sub(away, 0.5 * delta), delta)
    return reduced(ops.select(ops.less_equal(away, delta), square, line), reduction, "huber_loss")


def soft_margin_loss(input, target, reduction="mean"):
    """log(1 + e^(-target input)) for targets -1 and 1."""
    return reduced(ops.softplus(ops.neg(ops.mul(target, input))), reduction, "soft_margin_loss")


def hinge_embedding_loss(inputs, targets, margin=1.0, reduction="mean"):
    """inputs for targets above 0, max(0, margin - inputs) for those below, 0 for 0."""
    far = ops.maximum(ops.sub(margin, inputs), 0.0)
    losses = ops.select(ops.greater(targets, 0), inputs, far)
    losses = ops.select(ops.equal(targets, 0), ops.zeros_like(losses), losses)
    return reduced(losses, reduction, "hinge_embedding_loss")


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """max(0, -target (input1 - input2) + margin)."""
    losses = ops.maximum(ops.add(ops.neg(ops.mul(target, ops.sub(input1, input2))), margin), 0.0)
    return reduced(losses, reduction, "margin_ranking_loss")


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """1 - cos for targets 1, max(0, cos - margin) for -1."""
    axis = 1 if input1.ndim > 1 else 0
    product = ops.reduce_sum(ops.mul(input1, input2), axis)
    sizes = [ops.reduce_sum(ops.square(x), axis) for x in (input1, input2)]
    cosine = ops.div(product, ops.sqrt(ops.mul(*[ops.add(size, 1e-12) for size in sizes])))
    zero = ops.zeros_like(cosine)
    near = ops.select(ops.equal(target, 1), ops.sub(1.0, cosine), zero)
    far = ops.select(ops.equal(target, -1), ops.maximum(ops.sub(cosine, margin), 0.0), zero)
    return reduced(ops.add(near, far), reduction, "cosine_embedding_loss")


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, reduction="mean"):
    """max(0, |anchor - positive| - |anchor - negative| + margin), p-norms."""

    def distance(a, b):
        return _numbers.vector_norm(ops.add(ops.sub(a, b), eps), p, -1)

    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    margin = margin.item() if isinstance(margin, muster.Tensor) else margin
    return reduced(ops.maximum(ops.add(ops.sub(near, far), margin), 0.0), reduction, "triplet_margin_loss")


def gaussian_nll_loss(x, target, var, full=False, eps=1e-6, reduction="mean"):
    """(log(var) + (x - target)^2 / var) / 2, var at least eps."""
    var = ops.maximum(var, eps)
    losses = ops.mul(ops.add(ops.log(var), ops.div(ops.square(ops.sub(x, target)), var)), 0.5)
    if full:
        losses = ops.add(losses, 0.5 * math.log(2 * math.pi))
    return reduced(losses, reduction, "gaussian_nll_loss")


def multi_margin_loss(input, target, p=1, margin=1, weight=None, reduction="mean"):
    """The mean over other classes of max(0, margin - input[target] + input[i])^p."""
    one, target = input.ndim == 1, ops.reshape(target, (-1, 1))
    x = ops.reshape(input, (1, -1)) if one else input
    right = ops.gather_elements(x, target, 1)
    losses = ops.maximum(ops.add(ops.sub(x, right), float(margin)), 0.0)
    losses = ops.square(losses) if p == 2 else losses
    if weight is not None:
        losses = ops.mul(losses, ops.gather(weight, target, 0))
    places = ops.reshape(ops.arange(x.shape[1]), (1, -1))
    other = ops.not_equal(ops.cast(places, target.dtype), target)
    losses = ops.div(ops.reduce_sum(ops.select(other, losses, ops.zeros_like(losses)), 1), x.shape[1])
    return reduced(losses, reduction, "multi_margin_loss")


def multilabel_soft_margin_loss(input, target, weight=None, reduction="mean"):
    """The mean over classes of the binary cross entropy with logits."""
    losses = ops.add(
        ops.mul(target, ops.softplus(ops.neg(input))), ops.mul(ops.sub(1.0, target), ops.softplus(input))
    )
    losses = losses if weight is None else ops.mul(losses, weight)
    return reduced(ops.reduce_mean(losses, -1), reduction, "multilabel_soft_margin_loss")


def multilabel_margin_loss(input, target, reduction="mean"):
    """The mean of max(0, 1 - (input[label] - input[other])) over labels, which end at the first -1."""
    return reduced(multilabel_losses(input, target)[0], reduction, "multilabel_margin_loss")


def multilabel_losses(input, target):
    """(losses of the samples, 1 where a class is a label)."""
    one = input.ndim == 1
    x, target = (ops.reshape(each, (1, -1)) if one else each for each in (input, target))
    classes = x.shape[1]
    ended = ops.cumsum(ops.cast(ops.less(target, 0), muster.int32), 1)
    counts = ops.cast(ops.equal(ended, 0), x.dtype)
    index = ops.maximum(target, 0)
    is_label = ops.scatter_elements(ops.zeros_like(x), index, counts, 1, "max")
    right = ops.gather_elements(x, index, 1)
    gaps = ops.add(ops.sub(ops.expand_dims(x, 1), ops.expand_dims(right, 2)), 1.0)
    gaps = ops.mul(ops.maximum(gaps, 0.0), ops.expand_dims(counts, 2))
    gaps = ops.mul(gaps, ops.expand_dims(ops.sub(1.0, is_label), 1))
    losses = ops.div(ops.reduce_sum(gaps, (1, 2)), float(classes))
    return (ops.reshape(losses, ()) if one else losses), is_label


def mse_loss_ext(input, target, reduction="mean"):
    """ops.mse_loss."""
    return _losses.mse_loss(input, target, reduction)


__all__ = [
    "cosine_embedding_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "margin_ranking_loss",
    "mse_loss_ext",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
]
