"""Losses as classes."""

from mindspore import _names
from mindspore.ops import _losses
from mindspore.ops._primitive import Primitive
from muster import nn, ops


class SoftmaxCrossEntropyWithLogits(Primitive):
    """The cross entropy of softmax(logits (N, C)) against probabilities (N, C), by row, and its gradient."""

    def compute(self, logits, labels):
        """(losses (N,), gradient (N, C)); the first one's gradient flows to the logits, no other."""
        labels = ops.stop_gradient(labels)
        losses = nn.SoftmaxCrossEntropyWithLogits().construct(logits, labels)
        return losses, ops.stop_gradient(ops.sub(ops.softmax(logits), labels))


class SparseSoftmaxCrossEntropyWithLogits(Primitive):
    """The mean cross entropy of softmax(logits (N, C)) against class numbers (N,), or with `is_grad` its
    gradient."""

    def __init__(self, is_grad=False):
        super().__init__()
        self.is_grad = is_grad

    def compute(self, logits, labels):
        """A scalar, or (N, C)."""
        if not self.is_grad:
            return nn.SoftmaxCrossEntropyWithLogits(True, "mean").construct(logits, labels)
        wanted = ops.cast(ops.one_hot(labels, logits.shape[1]), logits.dtype)
        return ops.div(ops.sub(ops.softmax(logits), wanted), logits.shape[0])


class NLLLoss(Primitive):
    """(ops.nll_loss, the sum of the weights of the labels that count)."""

    def __init__(self, reduction="mean", ignore_index=-100):
        super().__init__()
        self.reduction = reduction
        self.ignore_index = ignore_index

    def compute(self, logits, labels, weight):
        """(loss, total weight); the weights have no gradient."""
        weight = ops.stop_gradient(weight)
        loss = _losses.nll_loss(logits, labels, weight, self.ignore_index, self.reduction)
        counts = ops.not_equal(labels, self.ignore_index)
        of_labels = ops.gather(weight, ops.select(counts, labels, ops.zeros_like(labels)), 0)
        return loss, ops.reduce_sum(ops.mul(of_labels, ops.cast(counts, weight.dtype)))


class BinaryCrossEntropy(Primitive):
    """ops.binary_cross_entropy."""

    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction

    def compute(self, logits, labels, weight=None):
        """The loss of probabilities."""
        return _losses.binary_cross_entropy(logits, labels, weight, self.reduction)


class BCEWithLogitsLoss(Primitive):
    """ops.binary_cross_entropy_with_logits."""

    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction

    def compute(self, input, target, weight=None, pos_weight=None):
        """The loss of logits."""
        return _losses.binary_cross_entropy_with_logits(input, target, weight, pos_weight, self.reduction)


class SigmoidCrossEntropyWithLogits(Primitive):
    """The cross entropy of sigmoid(logits) against labels, element by element."""

    def compute(self, logits, label):
        """As many losses as logits."""
        return _losses.binary_cross_entropy_with_logits(logits, label, reduction="none")


class SmoothL1Loss(Primitive):
    """ops.smooth_l1_loss."""

    def __init__(self, beta=1.0, reduction="none"):
        super().__init__()
        self.beta = beta
        self.reduction = reduction

    def compute(self, prediction, target):
        """The loss."""
        return _losses.smooth_l1_loss(prediction, target, self.beta, self.reduction)


class KLDivLoss(Primitive):
    """ops.kl_div."""

    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction

    def compute(self, logits, labels):
        """The loss."""
        return _losses.kl_div(logits, labels, self.reduction)


class L2Loss(Primitive):
    """Half the sum of the squares."""

    def compute(self, input_x):
        """sum(x^2) / 2."""
        return ops.mul(ops.reduce_sum(ops.square(input_x)), 0.5)


class L2Normalize(Primitive):
    """x / sqrt(max(sum(x^2), epsilon)), the sum along `axis`."""

    def __init__(self, axis=0, epsilon=1e-4):
        super().__init__()
        if not isinstance(axis, int) and len(axis) != 1:
            raise NotImplementedError(_names.sentence(f"mindspore.ops.L2Normalize(axis={axis!r})"))
        self.axis = axis if isinstance(axis, int) else axis[0]
        self.epsilon = epsilon

    def compute(self, input_x):
        """x over its length."""
        squares = ops.reduce_sum(ops.square(input_x), self.axis, True)
        return ops.mul(input_x, ops.rsqrt(ops.maximum(squares, self.epsilon)))


__all__ = [
    "BCEWithLogitsLoss",
    "BinaryCrossEntropy",
    "KLDivLoss",
    "L2Loss",
    "L2Normalize",
    "NLLLoss",
    "SigmoidCrossEntropyWithLogits",
    "SmoothL1Loss",
    "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits",
]
