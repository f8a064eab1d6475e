"""Metrics of segmentations: distances between their outlines."""

from mindspore._lazy import numpy
from mindspore.train._metrics import EvalError, _float64
from mindspore.train._more_metrics import _EMPTY, _array, _Counted, _one_of, _typed


def _outline(mask):
    """The points of a mask that have a neighbour outside of it, along an axis."""
    inner = mask.copy()
    for axis in range(mask.ndim):
        for shift in (1, -1):
            moved = numpy.zeros_like(mask)
            to = [slice(None)] * mask.ndim
            of = [slice(None)] * mask.ndim
            to[axis], of[axis] = (
                (slice(1, None), slice(None, -1)) if shift == 1 else (slice(None, -1), slice(1, None))
            )
            moved[tuple(to)] = mask[tuple(of)]
            inner &= moved
    return mask & ~inner


def _distances(of, to, metric):
    """From each point of one outline to the nearest of the other."""
    points, targets = numpy.argwhere(of), numpy.argwhere(to)
    if len(targets) == 0:
        return numpy.full(len(points), numpy.inf)
    apart = numpy.abs(points[:, None, :] - targets[None, :, :])
    if metric == "euclidean":
        return numpy.sqrt((apart.astype(float) ** 2).sum(-1)).min(1)
    return (apart.max(-1) if metric == "chessboard" else apart.sum(-1)).min(1).astype(numpy.int32)


class _Distance(_Counted):
    """Distances between the outlines of predictions and labels of one class."""

    _METRICS = ("euclidean", "chessboard", "taxicab")

    def __init__(self, distance_metric):
        self.distance_metric = _one_of("distance_metric", distance_metric, list(self._METRICS))
        super().__init__()

    def clear(self):
        """As if nothing had been counted."""
        self._outlines = None

    def update(self, *inputs):
        """Takes predictions, labels, and the number of the class."""
        predicted, labels, label = self._given(inputs, 3, "predicted value, true value, label index")
        predicted, labels = _array(predicted), _array(labels)
        name = type(self).__name__
        if not isinstance(label, int | float):
            raise TypeError(
                f"For '{name}.update', the label index (input[2]) must be int or float, but got "
                f"{type(label)}."
            )
        if label not in predicted and label not in labels:
            raise ValueError(
                f"For '{name}.update', the label index (input[2]) must be in predicted value (input[0]) "
                f"or true "
                f"value (input[1]), but {label} is not."
            )
        if predicted.size == 0 or predicted.shape != labels.shape:
            raise ValueError(
                f"For '{name}.update', the size of predicted value (input[0]) and true value (input[1]) "
                f"should "
                f"be equal, but got {predicted.shape} and {labels.shape}."
            )
        self._outlines = [_outline(each == label) for each in (predicted, labels)]

    def _both(self, symmetric):
        first, second = self._outlines
        there = _distances(first, second, self.distance_metric)
        return (there, _distances(second, first, self.distance_metric)) if symmetric else (there,)


class HausdorffDistance(_Distance):
    """The greatest distance (or a percentile) from one outline to the other."""

    def __init__(self, distance_metric="euclidean", percentile=None, directed=False, crop=True):
        self.percentile = percentile if percentile is None else _typed("percentile", percentile, float)
        self.directed, self.crop = _typed("directed", directed, bool), _typed("crop", crop, bool)
        super().__init__(distance_metric)

    def eval(self):
        """The distance."""
        if self._outlines is None:
            raise EvalError(_EMPTY)
        if self.percentile is not None and not 0 <= self.percentile <= 100:
            raise ValueError(
                f"For 'HausdorffDistance', the 'percentile' must be 0 to 100, but got {self.percentile}."
            )
        furthest = [self._furthest(each) for each in self._both(not self.directed)]
        return max(furthest)

    def _furthest(self, distances):
        if len(distances) == 0:
            return numpy.nan
        return distances.max() if self.percentile is None else numpy.percentile(distances, self.percentile)


class MeanSurfaceDistance(_Distance):
    """The mean distance from one outline to the other; `symmetric`: the mean of both ways."""

    def __init__(self, symmetric=False, distance_metric="euclidean"):
        self.symmetric = _typed("symmetric", symmetric, bool)
        super().__init__(distance_metric)

    def _means(self, power):
        """The mean of the distances to this power, for each way; nothing before the first update."""
        both = self._both(self.symmetric) if self._outlines is not None else ()
        return [(each.astype(float) ** power).mean() for each in both if len(each)]

    def eval(self):
        """The distance; infinite before the first update."""
        means = self._means(1)
        return _float64()(numpy.mean(means)) if means else numpy.inf


class RootMeanSquareDistance(MeanSurfaceDistance):
    """The mean squared distance between outlines; `symmetric`: the root of the mean of both ways."""

    def eval(self):
        """The distance; infinite before the first update."""
        means = self._means(2)
        if not means:
            return numpy.inf
        return _float64()(numpy.sqrt(numpy.mean(means)) if self.symmetric else means[0])
