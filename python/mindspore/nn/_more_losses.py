"""Losses that are compositions."""

import math

import muster
from mindspore import _names
from muster import ops

_Loss = muster.nn.LossBase


def _same_shape(cell: str, **tensors) -> None:
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"{cell}: shapes differ: {', '.join(f'{n} {s}' for n, s in shapes.items())}")


class HuberLoss(_Loss):
    """With d = |logits - labels|: d^2 / 2 where d < delta, else delta (d - delta / 2)."""

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction)
        if delta <= 0:
            raise ValueError(f"HuberLoss: delta is above 0, not {delta}")
        self.delta = float(delta)

    def construct(self, logits, labels):
        """The loss."""
        d = ops.abs(ops.sub(logits, labels))
        far = ops.mul(ops.sub(d, self.delta / 2), self.delta)
        return self.get_loss(ops.select(ops.less_equal(d, self.delta), ops.mul(ops.square(d), 0.5), far))


class SoftMarginLoss(_Loss):
    """log(1 + exp(-labels logits)) for labels of 1 and -1."""

    def construct(self, logits, labels):
        """The loss."""
        _same_shape("SoftMarginLoss", logits=logits, labels=labels)
        return self.get_loss(ops.softplus(ops.neg(ops.mul(labels, logits))))


class MAELoss(_Loss):
    """|logits - label|."""

    def construct(self, logits, label):
        """The loss."""
        return self.get_loss(ops.abs(ops.sub(logits, label)))


class RMSELoss(_Loss):
    """The root of the mean of (logits - label)^2."""

    def __init__(self):
        super().__init__()

    def construct(self, logits, label):
        """The loss."""
        return ops.sqrt(ops.reduce_mean(ops.square(ops.sub(logits, label))))


class KLDivLoss(_Loss):
    """labels (log(labels) - logits), logits being logarithms; 'batchmean' divides by the first size."""

    def __init__(self, reduction="mean"):
        super().__init__("sum" if reduction == "batchmean" else reduction)
        self._per_sample = reduction == "batchmean"

    def construct(self, logits, labels):
        """The loss."""
        positive = ops.log(ops.maximum(labels, 1e-38))
        losses = ops.select(
            ops.greater(labels, 0), ops.mul(labels, ops.sub(positive, logits)), ops.zeros_like(labels)
        )
        loss = self.get_loss(losses)
        return ops.div(loss, logits.shape[0]) if self._per_sample else loss


class CosineEmbeddingLoss(_Loss):
    """1 - cos(x1, x2) where the label is 1, max(0, cos(x1, x2) - margin) where it is -1."""

    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__(reduction)
        if not -1 <= margin <= 1:
            raise ValueError(f"CosineEmbeddingLoss: margin is in [-1, 1], not {margin}")
        self.margin = float(margin)

    def construct(self, logits_x1, logits_x2, labels):
        """The loss of rows (N, ...)."""
        _same_shape("CosineEmbeddingLoss", logits_x1=logits_x1, logits_x2=logits_x2)
        both = ops.reduce_sum(ops.mul(logits_x1, logits_x2), 1)
        lengths = ops.mul(ops.reduce_sum(ops.square(logits_x1), 1), ops.reduce_sum(ops.square(logits_x2), 1))
        cosine = ops.div(both, ops.sqrt(lengths))
        zero = ops.zeros_like(cosine)
        alike = ops.select(ops.equal(labels, 1), ops.sub(1, cosine), zero)
        apart = ops.select(ops.equal(labels, -1), ops.maximum(ops.sub(cosine, self.margin), 0.0), zero)
        return self.get_loss(ops.add(alike, apart))


class MarginRankingLoss(_Loss):
    """max(0, -target (input1 - input2) + margin) for targets of 1 and -1."""

    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = float(margin)

    def construct(self, input1, input2, target):
        """The loss."""
        lead = ops.mul(ops.neg(target), ops.sub(input1, input2))
        return self.get_loss(ops.maximum(ops.add(lead, self.margin), 0.0))


class HingeEmbeddingLoss(_Loss):
    """logits where the label is 1, max(0, margin - logits) where it is -1."""

    def __init__(self, margin=1.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = float(margin)

    def construct(self, logits, labels):
        """The loss."""
        zero = ops.zeros_like(logits)
        alike = ops.select(ops.equal(labels, -1), zero, logits)
        apart = ops.select(ops.equal(labels, 1), zero, ops.maximum(ops.sub(self.margin, logits), 0.0))
        return self.get_loss(ops.add(alike, apart))


class MultiLabelSoftMarginLoss(_Loss):
    """The mean over classes of -(y log(sigmoid(x)) + (1 - y) log(sigmoid(-x))), times `weight`."""

    def __init__(self, weight=None, reduction="mean"):
        super().__init__(reduction)
        self._weighs = weight is not None
        self.weight = weight if weight is not None else 1.0

    def construct(self, x, target):
        """The loss of (N, C)."""
        losses = ops.add(
            ops.mul(target, ops.softplus(ops.neg(x))), ops.mul(ops.sub(1, target), ops.softplus(x))
        )
        if self._weighs:
            losses = ops.mul(losses, self.weight)
        return self.get_loss(ops.reduce_mean(losses, x.ndim - 1))


class MultiMarginLoss(_Loss):
    """The sum over wrong classes of max(0, margin - x[right] + x[wrong])^p, divided by the classes."""

    def __init__(self, p=1, margin=1.0, reduction="mean", weight=None):
        super().__init__(reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: p is 1 or 2, not {p}")
        self.p, self.margin = p, float(margin)
        self._weighs = weight is not None
        self.weight = weight if weight is not None else 1.0

    def construct(self, x, target, weight=None):
        """The loss of x (N, C) for class numbers target (N,)."""
        right = ops.gather_elements(x, ops.expand_dims(target, 1), 1)
        losses = ops.maximum(ops.add(ops.sub(x, right), self.margin), 0.0)
        losses = ops.square(losses) if self.p == 2 else losses
        weights = weight if weight is not None else (self.weight if self._weighs else None)
        if weights is not None:
            losses = ops.mul(losses, ops.expand_dims(ops.gather(weights, target), 1))
        wrong = ops.sub(1.0, ops.cast(ops.one_hot(target, x.shape[1]), x.dtype))
        return self.get_loss(ops.div(ops.reduce_sum(ops.mul(losses, wrong), 1), x.shape[1]))


class MultilabelMarginLoss(_Loss):
    """The sum over right and wrong classes of max(0, 1 - (x[right] - x[wrong])), divided by the classes.

    A row of `target` lists its classes before the first -1.
    """

    def construct(self, x, target):
        """The loss of (N, C) or (C,)."""
        one = x.ndim == 1
        x, target = (ops.expand_dims(x, 0), ops.expand_dims(target, 0)) if one else (x, target)
        classes = x.shape[1]
        counted = ops.cast(ops.greater_equal(target, 0), muster.float32)
        counted = ops.cumprod(counted, 1)
        numbers = ops.cast(ops.mul(ops.cast(target, muster.float32), counted), muster.int32)
        chosen = ops.mul(ops.cast(ops.one_hot(numbers, classes), x.dtype), ops.expand_dims(counted, 2))
        is_right = ops.reduce_max(chosen, 1)
        right = ops.gather_elements(x, numbers, 1)
        gaps = ops.sub(ops.expand_dims(ops.sub(1.0, right), 2), ops.expand_dims(ops.neg(x), 1))
        losses = ops.mul(ops.maximum(gaps, 0.0), ops.expand_dims(counted, 2))
        losses = ops.mul(losses, ops.expand_dims(ops.sub(1.0, is_right), 1))
        loss = self.get_loss(ops.div(ops.reduce_sum(losses, (1, 2)), classes))
        return ops.squeeze(loss, 0) if one and loss.ndim == 1 else loss


class PoissonNLLLoss(_Loss):
    """exp(input) - target input, or without `log_input` input - target log(input + eps).

    With `full` Stirling's approximation of log(target!) is added where the target is above 1.
    """

    def __init__(self, log_input=True, full=False, eps=1e-8, reduction="mean"):
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def construct(self, input, target):
        """The loss."""
        if self.log_input:
            loss = ops.sub(ops.exp(input), ops.mul(target, input))
        else:
            loss = ops.sub(input, ops.mul(target, ops.log(ops.add(input, self.eps))))
        if self.full:
            above = ops.maximum(target, 1.0)
            stirling = ops.add(
                ops.sub(ops.mul(above, ops.log(above)), above),
                ops.mul(ops.log(ops.mul(above, 2 * math.pi)), 0.5),
            )
            loss = ops.add(loss, ops.select(ops.greater(target, 1), stirling, ops.zeros_like(stirling)))
        return self.get_loss(loss)


class GaussianNLLLoss(_Loss):
    """(log(max(var, eps)) + (logits - labels)^2 / max(var, eps)) / 2, and with `full` log(2 pi) / 2."""

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(reduction)
        if eps <= 0:
            raise ValueError(f"GaussianNLLLoss: eps is above 0, not {eps}")
        self.full, self.eps = full, eps

    def construct(self, logits, labels, var):
        """The loss."""
        if var.ndim == logits.ndim - 1:
            var = ops.expand_dims(var, var.ndim)
        variance = ops.maximum(var, self.eps)
        variance = ops.add(var, ops.stop_gradient(ops.sub(variance, var)))
        loss = ops.mul(
            ops.add(ops.log(variance), ops.div(ops.square(ops.sub(logits, labels)), variance)), 0.5
        )
        return self.get_loss(ops.add(loss, 0.5 * math.log(2 * math.pi)) if self.full else loss)


class DiceLoss(_Loss):
    """1 - 2 |X Y| / (|X|^2 + |Y|^2), each sum with `smooth`. Milletari et al., 2016."""

    def __init__(self, smooth=1e-5):
        super().__init__()
        if not isinstance(smooth, float):
            raise TypeError(f"DiceLoss: smooth is a float, not {type(smooth).__name__}")
        if smooth <= 0:
            raise ValueError(f"DiceLoss: smooth is above 0, not {smooth}")
        self.smooth = smooth

    def construct(self, logits, label):
        """The loss."""
        _same_shape("DiceLoss", logits=logits, label=label)
        both = ops.reduce_sum(ops.mul(logits, label))
        sizes = ops.add(ops.reduce_sum(ops.square(logits)), ops.reduce_sum(ops.square(label)))
        share = ops.div(ops.mul(both, 2.0), ops.add(sizes, self.smooth))
        return ops.sub(1.0, share)


class MultiClassDiceLoss(_Loss):
    """The mean of DiceLoss over the classes (axis 1) but `ignore_indiex`, each times its `weights` (C,)."""

    def __init__(self, weights=None, ignore_indiex=None, activation="softmax"):
        super().__init__()
        self.weights, self.ignore_indiex = weights, ignore_indiex
        if isinstance(activation, str):
            activation = (
                muster.nn.Softmax(1) if activation == "softmax" else muster.nn.get_activation(activation)
            )
        self.activation = activation
        self._activates = activation is not None

    def construct(self, logits, label):
        """The loss."""
        _same_shape("MultiClassDiceLoss", logits=logits, label=label)
        if self._activates:
            logits = self.activation(logits)
        dice, total = DiceLoss(), 0.0
        for index in range(label.shape[1]):
            if index == self.ignore_indiex:
                continue
            loss = dice.construct(*(_at(x, index) for x in (logits, label)))
            total = ops.add(
                loss if self.weights is None else ops.mul(loss, _at_axis0(self.weights, index)), total
            )
        return ops.div(total, label.shape[1])


def _at(x, index):
    """x[:, index]"""
    begin, size = [0] * x.ndim, list(x.shape)
    begin[1], size[1] = index, 1
    return ops.slice(x, tuple(begin), tuple(size))


def _at_axis0(x, index):
    return ops.reduce_sum(ops.slice(x, (index, *[0] * (x.ndim - 1)), (1, *x.shape[1:])))


class FocalLoss(_Loss):
    """The mean of -weight (1 - p)^gamma log(p) of the right class. Lin et al., ICCV 2017."""

    def __init__(self, weight=None, gamma=2.0, reduction="mean"):
        super().__init__(reduction)
        if not isinstance(gamma, float):
            raise TypeError(f"FocalLoss: gamma is a float, not {type(gamma).__name__}")
        if weight is not None and not isinstance(weight, muster.Tensor):
            raise TypeError(f"FocalLoss: weight is a Tensor, not {type(weight).__name__}")
        self.gamma = gamma
        self._weighs = weight is not None
        self.weight = weight if weight is not None else 1.0

    def construct(self, logits, labels):
        """The loss of logits (N, C, ...) for class numbers (N, 1, ...) or one-hot labels (N, C, ...)."""
        n, c = logits.shape[:2]
        logs = ops.log_softmax(ops.reshape(logits, (n, c, -1)), 1)
        if labels.shape[1] == 1 and c > 1:
            numbers = ops.cast(ops.reshape(labels, (n, -1)), muster.int32)
            wanted = ops.cast(ops.one_hot(numbers, c, axis=1), logits.dtype)
        else:
            wanted = ops.cast(ops.reshape(labels, (n, c, -1)), logits.dtype)
        focus = ops.pow(ops.sub(1.0, ops.exp(logs)), self.gamma)
        losses = ops.mul(ops.mul(focus, logs), wanted)
        if self._weighs:
            losses = ops.mul(losses, ops.reshape(self.weight, (1, c, 1)))
        if labels.shape[1] == 1:
            losses = ops.reduce_sum(losses, 1)  # of one-hot labels each class keeps its own
        return self.get_loss(ops.neg(ops.reduce_mean(losses, losses.ndim - 1)))


def _distance(x, y, p, eps):
    return ops.pow(ops.reduce_sum(ops.pow(ops.add(ops.abs(ops.sub(x, y)), eps), p), x.ndim - 1), 1 / p)


class TripletMarginLoss(_Loss):
    """max(0, d(x, positive) - d(x, negative) + margin), d the p-norm of the difference."""

    def __init__(self, p=2, swap=False, eps=1e-6, reduction="mean", margin=1.0):
        super().__init__(reduction)
        self.p, self.swap, self.eps, self.margin = p, swap, eps, margin

    def construct(self, x, positive, negative, margin=None):
        """The loss."""
        _same_shape("TripletMarginLoss", x=x, positive=positive, negative=negative)
        near, far = (_distance(x, y, self.p, self.eps) for y in (positive, negative))
        if self.swap:
            far = ops.minimum(far, _distance(positive, negative, self.p, self.eps))
        reach = self.margin if margin is None else margin
        return self.get_loss(ops.maximum(ops.add(ops.sub(near, far), reach), 0.0))


class TripletMarginWithDistanceLoss(_Loss):
    """max(0, d(x, positive) - d(x, negative) + margin) for a distance of one's own."""

    def __init__(self, distance_function=None, swap=False, reduction="mean", margin=1.0):
        super().__init__(reduction)
        self.distance_function = distance_function
        self.swap, self.margin = swap, margin

    def construct(self, x, positive, negative):
        """The loss."""
        distance = self.distance_function or (lambda a, b: _distance(a, b, 2, 1e-6))
        near, far = distance(x, positive), distance(x, negative)
        if self.swap:
            far = ops.minimum(far, distance(positive, negative))
        return self.get_loss(ops.maximum(ops.add(ops.sub(near, far), self.margin), 0.0))


class L1LossExt(muster.nn.L1Loss):
    """L1Loss."""


class CTCLoss(_Loss):
    """-log of the probability of a label sequence under outputs (T, N, C). Graves et al., ICML 2006.

    `blank` is the class between labels; `zero_infinity` gives 0 for samples that no path fits.
    """

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def construct(self, log_probs, targets, input_lengths, target_lengths):
        """The loss: 'mean' divides by the lengths of the targets first."""
        if log_probs.ndim == 2:  # one sample: (T, C)
            one = ops.expand_dims(log_probs, 1), ops.reshape(targets, (1, -1))
            loss = self.construct(*one, input_lengths, target_lengths)
            return ops.reshape(loss, ())
        if targets.ndim != 2:
            raise NotImplementedError(
                _names.sentence("mindspore.nn.CTCLoss with targets one after the other")
            )
        losses = _ctc(log_probs, targets, input_lengths, target_lengths, self.blank)
        if self.zero_infinity:
            losses = ops.select(ops.greater(losses, 1e30), ops.zeros_like(losses), losses)
        if self.reduction == "mean":
            lengths = ops.maximum(ops.cast(target_lengths, losses.dtype), 1.0)
            losses = ops.div(losses, lengths)
        return self.get_loss(losses)


_NEVER = -1e30  # the logarithm of no probability, without infinities in gradients


def _log_add(*terms):
    most = terms[0]
    for term in terms[1:]:
        most = ops.maximum(most, term)
    most = ops.stop_gradient(ops.maximum(most, _NEVER))
    total = ops.exp(ops.sub(terms[0], most))
    for term in terms[1:]:
        total = ops.add(total, ops.exp(ops.sub(term, most)))
    return ops.add(ops.log(total), most)


def _shifted(x, count: int):
    """`x` (N, P) moved right by `count` places."""
    kept = ops.slice(x, (0, 0), (x.shape[0], x.shape[1] - count))
    return ops.pad(kept, (count, 0), "constant", _NEVER)


def _ctc(log_probs, targets, input_lengths, target_lengths, blank: int):
    steps, batch, _ = log_probs.shape
    count = targets.shape[1]
    places = 2 * count + 1
    labels = ops.cast(targets, muster.int32)
    blanks = ops.full_like(labels, blank)
    path = ops.reshape(ops.stack((blanks, labels), 2), (batch, 2 * count))
    path = ops.pad(path, (0, 1), "constant", blank)
    before = ops.pad(ops.slice(path, (0, 0), (batch, places - 2)), (2, 0), "constant", blank)
    may_skip = ops.logical_and(ops.not_equal(path, blank), ops.not_equal(path, before))
    frames = [ops.gather_elements(frame, path, 1) for frame in ops.unstack(log_probs)]
    place = ops.reshape(ops.arange(places), (1, places))
    alpha = ops.select(ops.less(place, 2), frames[0], ops.full_like(frames[0], _NEVER))
    never = ops.full_like(alpha, _NEVER)
    lengths = ops.expand_dims(input_lengths, 1)
    for t in range(1, steps):
        skipped = ops.select(may_skip, _shifted(alpha, 2), never)
        following = ops.add(_log_add(alpha, _shifted(alpha, 1), skipped), frames[t])
        alpha = ops.select(ops.greater(lengths, t), following, alpha)
    last = ops.cast(ops.mul(ops.expand_dims(target_lengths, 1), 2), muster.int32)
    at_blank = ops.gather_elements(alpha, last, 1)
    at_label = ops.gather_elements(alpha, ops.maximum(ops.sub(last, 1), 0), 1)
    at_label = ops.select(ops.greater(last, 0), at_label, ops.full_like(at_label, _NEVER))
    losses = ops.neg(ops.squeeze(_log_add(at_blank, at_label), 1))
    return ops.select(ops.greater(losses, 1e29), ops.full_like(losses, math.inf), losses)


__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "DiceLoss",
    "FocalLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1LossExt",
    "MAELoss",
    "MarginRankingLoss",
    "MultiClassDiceLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "MultilabelMarginLoss",
    "PoissonNLLLoss",
    "RMSELoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]
