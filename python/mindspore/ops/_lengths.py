"""mindspore.ops: sequences of different lengths, and windows for signals."""

import math

import muster
from muster import ops


def sequence_mask(lengths, maxlen=None):
    """Whether each place is before the length: (..., maxlen)."""
    if maxlen is None:
        from mindspore.ops._places import eager

        maxlen = int(eager("sequence_mask without maxlen", lengths).max())
    places = ops.reshape(ops.arange(maxlen), (1,) * lengths.ndim + (-1,))
    return ops.less(ops.cast(places, lengths.dtype), ops.expand_dims(lengths, -1))


def reverse_sequence(x, seq_lengths, seq_dim, batch_dim=0):
    """The first seq_lengths[b] places of axis seq_dim the other way round, for each sample b of batch_dim."""
    size = x.shape[seq_dim]
    places = ops.reshape(ops.cast(ops.arange(size), muster.int64), (1, -1))
    lengths = ops.cast(ops.reshape(seq_lengths, (-1, 1)), muster.int64)
    turned = ops.select(ops.less(places, lengths), ops.sub(ops.sub(lengths, places), 1), places)
    order = turned if batch_dim < seq_dim else ops.transpose(turned, (1, 0))
    sizes = [size_ if at in (seq_dim, batch_dim) else 1 for at, size_ in enumerate(x.shape)]
    index = ops.broadcast_to(ops.reshape(order, sizes), x.shape)
    return ops.gather_elements(x, index, seq_dim)


# ---- CTC ---------------------------------------------------------------------------------------------------

_NEVER = -1e30  # the logarithm of 0, without infinities, which have no gradient


def _ctc_losses(log_probs, targets, input_lengths, target_lengths, blank):
    """-log P(targets) of each sample, by the sums over all alignments (Graves et al., ICML 2006).

    Beside them the logarithms of what each step reaches: (batch, steps, 2 targets + 1).
    """
    steps, batch, _ = log_probs.shape
    longest = targets.shape[1]
    width = 2 * longest + 1
    targets = ops.cast(targets, muster.int32)
    labels = ops.stack([ops.full_like(targets, blank), targets], 2)
    labels = ops.reshape(labels, (batch, 2 * longest))
    labels = ops.concat([labels, ops.full((batch, 1), blank, dtype=muster.int32)], 1)
    places = ops.reshape(ops.arange(width), (1, -1))
    # A label may follow the one before the blank, unless both are equal.
    before = (
        ops.concat([ops.full((batch, 2), blank, dtype=muster.int32), labels[:, :-2]], 1)
        if longest
        else labels
    )
    may_skip = ops.logical_and(ops.not_equal(labels, blank), ops.not_equal(labels, before))
    index = ops.broadcast_to(ops.expand_dims(ops.maximum(labels, 0), 0), (steps, batch, width))
    seen = ops.gather_elements(log_probs, index, 2)
    never = ops.full((batch, width), _NEVER, dtype=log_probs.dtype)
    alpha = ops.select(ops.less(places, 2), seen[0], never)
    input_lengths = ops.reshape(ops.cast(input_lengths, muster.int32), (batch, 1))
    reached = [alpha]
    for step in range(1, steps):
        reach = [alpha, _shifted(alpha, 1), ops.select(may_skip, _shifted(alpha, 2), never)]
        top = ops.stop_gradient(ops.maximum(ops.maximum(reach[0], reach[1]), reach[2]))
        total = None
        for each in reach:
            part = ops.exp(ops.sub(each, top))
            total = part if total is None else ops.add(total, part)
        moved = ops.maximum(ops.add(ops.add(ops.log(total), top), seen[step]), _NEVER)
        alpha = ops.select(ops.less(step, input_lengths), moved, alpha)
        reached.append(alpha)
    lengths = ops.reshape(ops.cast(target_lengths, muster.int32), (batch, 1))
    last = ops.gather_elements(alpha, ops.mul(lengths, 2), 1)
    previous = ops.gather_elements(alpha, ops.maximum(ops.sub(ops.mul(lengths, 2), 1), 0), 1)
    previous = ops.select(ops.greater(lengths, 0), previous, ops.full_like(previous, _NEVER))
    top = ops.stop_gradient(ops.maximum(last, previous))
    total = ops.add(ops.exp(ops.sub(last, top)), ops.exp(ops.sub(previous, top)))
    losses = ops.neg(ops.reshape(ops.add(ops.log(total), top), (batch,)))
    losses = ops.select(ops.greater(losses, 1e29), ops.full_like(losses, math.inf), losses)
    return losses, _inside(ops.stack(reached, 1), input_lengths, lengths)


def _inside(alphas, input_lengths, lengths):
    """-inf behind the ends of a sample's inputs and targets, and where nothing leads."""
    _, steps, width = alphas.shape
    time = ops.less(ops.reshape(ops.arange(steps), (1, -1)), input_lengths)
    place = ops.less_equal(ops.reshape(ops.arange(width), (1, -1)), ops.mul(lengths, 2))
    inside = ops.logical_and(ops.expand_dims(time, 2), ops.expand_dims(place, 1))
    inside = ops.logical_and(inside, ops.greater(alphas, _NEVER / 10))
    return ops.select(inside, alphas, ops.full_like(alphas, -math.inf))


def _shifted(x, by):
    """Moved `by` places behind; what comes in front is never."""
    batch, width = x.shape
    front = ops.full((batch, min(by, width)), _NEVER, dtype=x.dtype)
    return ops.concat([front, x[:, : width - by]], 1) if width > by else front


def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    """Connectionist temporal classification of log_probs (T, N, C).

    Gives (loss, the logarithms of the probabilities of what each step reaches, (N, T, 2 targets + 1)).
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"ctc_loss: reduction is 'none', 'mean' or 'sum', not {reduction!r}")
    lengths = [
        each if isinstance(each, muster.Tensor) else muster.Tensor(list(each), muster.int32)
        for each in (input_lengths, target_lengths)
    ]
    losses, reached = _ctc_losses(log_probs, targets, *lengths, blank)
    if zero_infinity:
        losses = ops.select(ops.isinf(losses), ops.zeros_like(losses), losses)
    if reduction == "none":
        return losses, reached
    if reduction == "sum":
        return ops.reduce_sum(losses), reached
    counts = ops.cast(ops.maximum(lengths[1], 1), losses.dtype)
    return ops.reduce_mean(ops.div(losses, counts)), reached


def ctc_loss_of_places(x, labels_indices, labels_values, sequence_length):
    """The losses of logits x (T, N, C) whose labels are at (sample, place); the last class is blank."""
    steps, batch, classes = x.shape
    dense = ops.scatter_nd_update(
        ops.zeros((batch, steps), muster.int32),
        labels_indices,
        ops.cast(labels_values, muster.int32),
        "update",
    )
    ones = ops.scatter_nd_update(
        ops.zeros((batch, steps), muster.int32),
        labels_indices,
        ops.ones_like(ops.cast(labels_values, muster.int32)),
        "update",
    )
    lengths = ops.reduce_sum(ones, 1)
    return _ctc_losses(ops.log_softmax(x, -1), dense, sequence_length, lengths, classes - 1)[0]


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True):
    """(indices, values, shape, log probability) of the best path; outside of graphs only."""
    import numpy

    from mindspore.ops._places import eager

    x, lengths = eager("ctc_greedy_decoder", inputs), eager("ctc_greedy_decoder", sequence_length)
    blank, indices, values, scores = x.shape[2] - 1, [], [], []
    longest = 0
    for sample in range(x.shape[1]):
        path = x[: lengths[sample], sample].argmax(-1)
        scores.append([-x[: lengths[sample], sample].max(-1).sum()])
        found = [
            int(label)
            for at, label in enumerate(path)
            if label != blank and not (merge_repeated and at and path[at - 1] == label)
        ]
        indices += [[sample, at] for at in range(len(found))]
        values += found
        longest = max(longest, len(found))
    return (
        muster.Tensor(numpy.array(indices, numpy.int64).reshape(-1, 2)),
        muster.Tensor(numpy.array(values, numpy.int64)),
        muster.Tensor(numpy.array([x.shape[1], longest], numpy.int64)),
        muster.Tensor(numpy.array(scores, x.dtype)),
    )


# ---- Windows for signals -----------------------------------------------------------------------------------


def _window(length, periodic, dtype, value):
    length = length if isinstance(length, int) else int(length.item())
    if length < 0:
        raise ValueError(f"a window has a length of at least 0, not {length}")
    if length == 1:
        return ops.ones((1,), dtype or muster.float32)
    last = length if periodic else length - 1
    return muster.Tensor([value(k, last) for k in range(length)], dtype or muster.float32)


def bartlett_window(window_length, periodic=True, *, dtype=None):
    """A triangle from 0 to 1 and back."""
    return _window(window_length, periodic, dtype, lambda k, n: 1 - abs(2 * k / n - 1))


def blackman_window(window_length, periodic=True, *, dtype=None):
    """0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)."""

    def value(k, n):
        turn = 2 * math.pi * k / n
        return 0.42 - 0.5 * math.cos(turn) + 0.08 * math.cos(2 * turn)

    return _window(window_length, periodic, dtype, value)


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None):
    """alpha - beta cos(2 pi k / n)."""
    return _window(window_length, periodic, dtype, lambda k, n: alpha - beta * math.cos(2 * math.pi * k / n))


def hann_window(window_length, periodic=True, *, dtype=None):
    """0.5 - 0.5 cos(2 pi k / n)."""
    return hamming_window(window_length, periodic, 0.5, 0.5, dtype=dtype or muster.float64)


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None):
    """I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta)."""

    def value(k, n):
        import numpy

        return float(numpy.i0(beta * math.sqrt(max(1 - (2 * k / n - 1) ** 2, 0))) / numpy.i0(beta))

    return _window(window_length, periodic, dtype or muster.float64, value)


def edit_distance(hypothesis, truth):
    """Levenshtein's distance of two lists."""
    line = list(range(len(truth) + 1))
    for i, a in enumerate(hypothesis, 1):
        before, line[0] = line[0], i
        for j, b in enumerate(truth, 1):
            before, line[j] = line[j], min(line[j] + 1, line[j - 1] + 1, before + (a != b))
    return line[-1]


__all__ = [
    "bartlett_window",
    "blackman_window",
    "ctc_greedy_decoder",
    "ctc_loss",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "reverse_sequence",
    "sequence_mask",
]
