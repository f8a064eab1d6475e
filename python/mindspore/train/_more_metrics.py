"""Metrics that are written in Python: MindSpore's for text, segmentation, and the rest."""

import collections
import itertools
import math

from mindspore._lazy import numpy
from mindspore.train._metrics import EvalError, Metric, _float64, chosen_inputs

_EMPTY = "Please call the 'update' method before calling 'eval' method."


def _typed(name, value, kind):
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(
            f"The type of '{name}' should be '{kind.__name__}', but got type '{type(value).__name__}'."
        )
    return value


def _one_of(name, value, choices):
    _typed(name, value, str)
    if value not in choices:
        raise ValueError(f"The '{name}' must be str and must be in '{choices}', but got '{value}'.")
    return value


class _Counted(Metric):
    """A metric in Python: what it counts is told and taken over by state_dict and load_state_dict."""

    def __init__(self):
        super().__init__()
        self.clear()

    def _given(self, inputs, count, what):
        inputs = chosen_inputs(self, inputs)
        if len(inputs) != count:
            raise ValueError(
                f"For '{type(self).__name__}.update', it needs {count} inputs ({what}), but got "
                f"{len(inputs)}."
            )
        return inputs

    def _arrays(self, inputs, count, what):
        return [_array(each) for each in self._given(inputs, count, what)]


def _array(value):
    if isinstance(value, str | bytes | dict):
        raise TypeError(
            "For 'Metric' and its derived classes, the input data type must be tensor, list or "
            "numpy.ndarray, "
            f"but got {type(value)}."
        )
    return value.asnumpy() if hasattr(value, "asnumpy") else numpy.asarray(value)


class Perplexity(_Counted):
    """exp of the mean negative logarithm of what the labels were given; labels of `ignore_label` count 0."""

    def __init__(self, ignore_label=None):
        self.ignore_label = (
            ignore_label if ignore_label is None else _typed("ignore_label", ignore_label, int)
        )
        super().__init__()

    def clear(self):
        """As if nothing had been counted."""
        self._loss, self._rows = 0.0, 0

    def update(self, *inputs):
        """Counts one batch: predictions (N, C) and labels (N,)."""
        predicted, labels = self._arrays(inputs, 2, "predicted value, label")
        if labels.size * predicted.shape[-1] != predicted.size:
            raise RuntimeError(
                "For 'Perplexity.update', predicted value (input[0]) and label (input[1]) should have the "
                "same shape, "
                f"but got predicted value shape {predicted.shape}, label shape {labels.shape}."
            )
        labels = labels.reshape(-1)
        chosen = predicted.reshape(-1, predicted.shape[-1])[numpy.arange(labels.size), labels.astype(int)]
        rows = labels.size
        if self.ignore_label is not None:
            ignored = labels == self.ignore_label
            rows -= int(ignored.sum())
            chosen = numpy.where(ignored, 1.0, chosen)
        self._loss -= float(numpy.log(numpy.maximum(1e-10, chosen)).sum())
        self._rows += rows

    def eval(self):
        """The perplexity."""
        if self._rows == 0:
            raise EvalError("The 'Perplexity' can not be calculated, because the number of samples is 0.")
        return math.exp(self._loss / self._rows)


def _ngrams(words, up_to):
    grams = collections.Counter()
    for size in range(1, up_to + 1):
        grams.update(tuple(words[at : at + size]) for at in range(len(words) - size + 1))
    return grams


class BleuScore(_Counted):
    """How near translations are to any of their references, by runs of up to `n_gram` words."""

    def __init__(self, n_gram=4, smooth=False):
        self.n_gram = _typed("n_gram", n_gram, int)
        if not 1 <= n_gram <= 4:
            raise ValueError(
                f"For 'BleuScore', the argument 'n_gram' should range from 1 to 4, but got {n_gram}."
            )
        self.smooth = _typed("smooth", smooth, bool)
        super().__init__()

    def clear(self):
        """As if nothing had been counted."""
        self._right, self._all = numpy.zeros(self.n_gram), numpy.zeros(self.n_gram)
        self._length, self._reference_length, self._counted = 0, 0, False

    def update(self, *inputs):
        """Counts translations (lists of words), and for each a list of references."""
        translations, references = self._given(inputs, 2, "candidate_corpus, reference_corpus")
        if len(translations) != len(references):
            raise ValueError(
                "For 'BleuScore.update', 'translate_corpus' (inputs[0]) and 'reference_corpus' "
                "(inputs[1]) should be "
                f"equal in length, but got {len(translations)}, {len(references)}"
            )
        self._counted = True
        for words, others in zip(translations, references, strict=True):
            self._length += len(words)
            self._reference_length += min(
                (abs(len(words) - len(each)), at, len(each)) for at, each in enumerate(others)
            )[2]
            found, most = _ngrams(words, self.n_gram), collections.Counter()
            for each in others:
                most |= _ngrams(each, self.n_gram)
            for gram, count in (found & most).items():
                self._right[len(gram) - 1] += count
            for gram, count in found.items():
                self._all[len(gram) - 1] += count

    def eval(self):
        """The score, 0 to 1."""
        if not self._counted:
            raise EvalError(_EMPTY)
        if min(self._right) == 0.0:
            return numpy.array(0.0)
        shares = (self._right + 1) / (self._all + 1) if self.smooth else self._right / self._all
        mean = math.exp(sum(math.log(share) / self.n_gram for share in shares))
        is_short = self._length <= self._reference_length
        brevity = math.exp(1 - self._reference_length / self._length) if is_short else 1.0
        return _float64()(brevity * mean)


class CosineSimilarity(_Counted):
    """How alike the rows of one batch are, two by two."""

    def __init__(self, similarity="cosine", reduction="none", zero_diagonal=True):
        self.similarity = _one_of("similarity", similarity, ["dot", "cosine"])
        self.reduction = _one_of("reduction", reduction, ["none", "sum", "mean"])
        self.zero_diagonal = _typed("zero_diagonal", zero_diagonal, bool)
        super().__init__()

    def clear(self):
        """As if nothing had been counted."""
        self._matrix = None

    def update(self, *inputs):
        """Takes one batch (N, C)."""
        (rows,) = self._arrays(inputs, 1, "inputs")
        if self.similarity == "cosine":
            rows = rows / numpy.linalg.norm(rows, ord=2, axis=-1, keepdims=True)
        matrix = rows @ rows.T
        if self.zero_diagonal:
            numpy.fill_diagonal(matrix, 0)
        self._matrix = matrix

    def eval(self):
        """The matrix (N, N), or its sums or means along the last axis."""
        if self._matrix is None:
            raise EvalError(_EMPTY)
        how = {"none": numpy.asarray, "sum": lambda m: m.sum(-1), "mean": lambda m: m.mean(-1)}
        return how[self.reduction](self._matrix)


class Dice(_Counted):
    """Twice what is common over what both have."""

    def __init__(self, smooth=1e-5):
        if not isinstance(smooth, float):
            raise TypeError(f"The 'smooth' must be float, but got '{type(smooth).__name__}'")
        self.smooth = smooth
        super().__init__()

    def clear(self):
        """As if nothing had been counted."""
        self._sum, self._rows = 0.0, 0

    def update(self, *inputs):
        """Counts one batch: predictions and labels of one shape."""
        predicted, labels = self._arrays(inputs, 2, "predicted value, true value")
        if predicted.shape != labels.shape:
            raise ValueError(
                "For 'Dice.update', predicted value (input[0]) and true value (input[1]) should have same "
                "shape, but "
                f"got predicted value shape: {predicted.shape}, true value shape: {labels.shape}."
            )
        common = numpy.dot(predicted.flatten(), labels.flatten())
        both = numpy.dot(predicted.flatten(), predicted.flatten()) + numpy.dot(
            labels.flatten(), labels.flatten()
        )
        self._sum += 2 * float(common) / float(both + self.smooth)
        self._rows += labels.shape[0]

    def eval(self):
        """The sum over batches divided by the rows."""
        if self._rows == 0:
            raise EvalError(
                "The 'Dice coefficient' can not be calculated, because the number of samples is 0."
            )
        return self._sum / self._rows


# ---- Curves ------------------------------------------------------------------------------------------------


def _curve(scores, labels, positive):
    """False and true positives above each distinct score, and the scores."""
    order = numpy.argsort(scores)[::-1]
    scores, hits = scores[order], (labels[order] == positive).astype(int)
    ends = numpy.r_[numpy.where(numpy.diff(scores))[0], len(hits) - 1]
    right = numpy.cumsum(hits)[ends]
    wrong = 1 + ends - right
    threshold = scores[ends]
    threshold = numpy.r_[threshold[0] + 1, threshold]
    right, wrong = numpy.r_[0, right], numpy.r_[0, wrong]
    if wrong[-1] <= 0:
        raise ValueError(
            "No negative samples in true value (input[1]), false positive values are meaningless."
        )
    if right[-1] <= 0:
        raise ValueError(
            "No positive samples in true value (input[1]), true positive values are meaningless."
        )
    return wrong / wrong[-1], right / right[-1], threshold


class ROC(_Counted):
    """The curve of false and true positives."""

    def __init__(self, class_num=None, pos_label=None):
        self.class_num = class_num if class_num is None else _typed("class_num", class_num, int)
        self.pos_label = pos_label if pos_label is None else _typed("pos_label", pos_label, int)
        super().__init__()

    def clear(self):
        """As if nothing had been counted."""
        self._scores = self._labels = None

    def update(self, *inputs):
        """Takes scores (N,) or (N, C), and labels (N,)."""
        scores, labels = self._arrays(inputs, 2, "predicted value, true value")
        if not (scores.ndim == labels.ndim or scores.ndim == labels.ndim + 1):
            raise ValueError(
                "For 'ROC.update', predicted value (input[0]) and true value (input[1]) should have same "
                f"dimensions, or the former one more, but got {scores.ndim} and {labels.ndim}."
            )
        if scores.ndim == labels.ndim:
            if self.class_num not in (None, 1):
                raise ValueError(
                    "For 'ROC.update', 'class_num' should be 1 or not given for scores of one class."
                )
            scores, labels = scores.flatten(), labels.flatten()
        else:
            classes = scores.shape[1]
            if self.class_num is None:
                raise ValueError("For 'ROC.update', scores of several classes need 'class_num'.")
            if self.class_num != classes:
                raise ValueError(
                    f"For 'ROC.update', 'class_num' is {self.class_num} and scores have {classes} classes."
                )
            scores = numpy.moveaxis(scores, 1, -1).reshape(-1, classes)
            labels = labels.flatten()
        self._scores, self._labels = scores, labels

    def eval(self):
        """(false positive rate, true positive rate, thresholds); of several classes lists of them."""
        if self._scores is None:
            raise EvalError(_EMPTY)
        if self._scores.ndim == 1:
            return _curve(self._scores, self._labels, 1 if self.pos_label is None else self.pos_label)
        curves = [_curve(self._scores[:, at], self._labels, at) for at in range(self._scores.shape[1])]
        return tuple(list(part) for part in zip(*curves, strict=True))


def auc(x, y, reorder=False):
    """The area below the curve, by trapezoids."""
    if not isinstance(x, numpy.ndarray) or not isinstance(y, numpy.ndarray):
        raise TypeError(
            f"For 'auc', the argument 'x' and 'y' must all be np.ndarray, but got {type(x)}, {type(y)}"
        )
    if len(x) != len(y):
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(x), len(y)]}.")
    if len(x) < 2:
        raise ValueError(f"For 'auc', a curve has two points or more, but got 'x': {x}")
    direction = 1
    if reorder:
        order = numpy.lexsort((y, x))
        x, y = x[order], y[order]
    else:
        steps = numpy.diff(x)
        if numpy.any(steps < 0):
            if not numpy.all(steps <= 0):
                raise ValueError(
                    f"For 'auc', the argument 'x' array must be increasing or decreasing, but got 'x': {x}"
                )
            direction = -1
    return _float64()(direction * ((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum())


# ---- Counts of right and wrong -------------------------------------------------------------------------

_ALIASES = {
    "sensitivity": ("recall", "hit_rate", "true_positive_rate", "tpr"),
    "specificity": ("selectivity", "true_negative_rate", "tnr"),
    "precision": ("positive_predictive_value", "ppv"),
    "negative_predictive_value": ("npv",),
    "miss_rate": ("false_negative_rate", "fnr"),
    "fall_out": ("false_positive_rate", "fpr"),
    "false_discovery_rate": ("fdr",),
    "false_omission_rate": ("for",),
    "prevalence_threshold": ("pt",),
    "threat_score": ("critical_success_index", "ts", "csi"),
    "accuracy": ("acc",),
    "balanced_accuracy": ("ba",),
    "f1_score": ("f1",),
    "matthews_correlation_coefficient": ("mcc",),
    "fowlkes_mallows_index": ("fm",),
    "informedness": ("bookmaker_informedness", "bm"),
    "markedness": ("deltap", "mk"),
}
_SPELT = {alias: name for name, aliases in _ALIASES.items() for alias in (*aliases, name)}


def _share(name, tp, fp, tn, fn):
    """One figure of the four counts; nan where it has no meaning."""
    p, n = tp + fn, fp + tn
    tpr, tnr, ppv, npv = _over(tp, p), _over(tn, n), _over(tp, tp + fp), _over(tn, tn + fn)
    figures = {
        "sensitivity": lambda: tpr,
        "specificity": lambda: tnr,
        "precision": lambda: ppv,
        "negative_predictive_value": lambda: npv,
        "miss_rate": lambda: _over(fn, p),
        "fall_out": lambda: _over(fp, n),
        "false_discovery_rate": lambda: _over(fp, fp + tp),
        "false_omission_rate": lambda: _over(fn, fn + tn),
        "prevalence_threshold": lambda: _over(numpy.sqrt(tpr * (1 - tnr)) + tnr - 1, tpr + tnr - 1),
        "threat_score": lambda: _over(tp, tp + fn + fp),
        "accuracy": lambda: _over(tp + tn, p + n),
        "balanced_accuracy": lambda: (tpr + tnr) / 2,
        "f1_score": lambda: _over(tp * 2, tp * 2 + fn + fp),
        "matthews_correlation_coefficient": lambda: _over(
            tp * tn - fp * fn, numpy.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        ),
        "fowlkes_mallows_index": lambda: numpy.sqrt(ppv * tpr),
        "informedness": lambda: tpr + tnr - 1,
        "markedness": lambda: ppv + npv - 1,
    }
    return figures[name]()


def _over(part, whole):
    with numpy.errstate(all="ignore"):
        return numpy.where(whole == 0, numpy.nan, part / numpy.where(whole == 0, 1, whole))


class ConfusionMatrixMetric(_Counted):
    """A figure of the counts of true and false positives and negatives: predictions and labels of 0 and 1."""

    _DECREASES = ("none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel")

    def __init__(
        self, skip_channel=True, metric_name="sensitivity", calculation_method=False, decrease="mean"
    ):
        self.skip_channel = _typed("skip_channel", skip_channel, bool)
        self.metric_name = _typed("metric_name", metric_name, str)
        self.calculation_method = _typed("calculation_method", calculation_method, bool)
        self.decrease = _one_of("decrease", decrease, list(self._DECREASES))
        super().__init__()

    def clear(self):
        """As if nothing had been counted."""
        self._total = numpy.zeros(4)
        self._sum, self._valid = 0.0, 0

    def _figure(self, counts):
        name = self.metric_name.strip().lower().replace(" ", "_")
        if name not in _SPELT:
            raise NotImplementedError(f"The metric is not implemented: there are {', '.join(_ALIASES)}.")
        return numpy.asarray(_share(_SPELT[name], *[counts[..., at] for at in range(4)]))

    def update(self, *inputs):
        """Counts one batch: (N, C, ...) of 0 and 1, both."""
        predicted, labels = self._arrays(inputs, 2, "predicted value, true value")
        if predicted.shape != labels.shape or predicted.ndim < 2:
            raise ValueError(
                "For 'ConfusionMatrixMetric.update', predicted value (input[0]) and true value (input[1]) "
                f"should have the same shape (N, C, ...), but got {predicted.shape} and {labels.shape}."
            )
        if not self.skip_channel and predicted.shape[1] > 1:  # as MindSpore has it, the wrong way round
            predicted, labels = predicted[:, 1:], labels[:, 1:]
        shape = (*predicted.shape[:2], -1)
        predicted, labels = predicted.reshape(shape).astype(float), labels.reshape(shape).astype(float)
        tp = ((predicted + labels) == 2).sum(2).astype(float)
        tn = ((predicted + labels) == 0).sum(2).astype(float)
        p, n = labels.sum(2), labels.shape[2] - labels.sum(2)
        counts = numpy.stack([tp, n - tn, tn, p - tp], -1)
        if self.calculation_method:
            figures, valid = _decreased(self._figure(counts), self.decrease)
            self._sum += float(numpy.sum(figures * valid))
            self._valid += int(numpy.sum(valid))
            return
        self._total = self._total + counts.reshape(-1, 4).sum(0)

    def eval(self):
        """The figure."""
        if self.calculation_method:
            if self._valid == 0:
                raise EvalError(_EMPTY)
            return self._sum / self._valid
        return numpy.atleast_1d(self._figure(numpy.atleast_2d(self._total))).reshape(-1)[:1]


def _decreased(figures, how):
    valid = (~numpy.isnan(figures)).astype(float)
    figures = numpy.nan_to_num(figures)
    if how == "none":
        return figures, valid
    axes = {"mean": None, "sum": None, "mean_batch": 0, "sum_batch": 0, "mean_channel": 1, "sum_channel": 1}[
        how
    ]
    total, count = figures.sum(axes), valid.sum(axes)
    made = (
        total
        if how.startswith("sum")
        else numpy.where(count > 0, total / numpy.where(count > 0, count, 1), 0)
    )
    return made, (count > 0).astype(float)


class OcclusionSensitivity(_Counted):
    """How much less a network is sure of a label when a part of the picture is hidden, part by part."""

    def __init__(self, pad_val=0.0, margin=2, n_batch=128, b_box=None):
        self.pad_val = _typed("pad_val", pad_val, float)
        self.margin = margin if isinstance(margin, tuple | list) else _typed("margin", margin, int)
        self.n_batch = _typed("n_batch", n_batch, int)
        self.b_box = b_box if b_box is None else _typed("b_box", b_box, list)
        super().__init__()

    def clear(self):
        """As if nothing had been counted."""
        self._map = None

    def update(self, *inputs):
        """Takes a network, one picture (1, C, ...), and the label."""
        import mindspore

        network, picture, label = self._given(inputs, 3, "classification model, predicted value, label")
        picture, label = _array(picture), int(_array(label).reshape(-1)[0])

        def sure(pictures):
            made = network(mindspore.Tensor(numpy.concatenate(pictures).astype(numpy.float32)))
            return made.asnumpy()[:, label]

        base = sure([picture])[0]
        sizes = picture.shape[1:]
        ranges = [range(size) for size in sizes]
        if self.b_box is not None:
            for at in range(len(sizes)):
                low, high = self.b_box[2 * at], self.b_box[2 * at + 1]
                ranges[at] = range(max(low, 0), (high if high >= 0 else sizes[at] - 1) + 1)
        margins = [self.margin] * len(sizes) if isinstance(self.margin, int) else list(self.margin)
        hidden = []
        places = list(itertools.product(*ranges))
        for place in places:
            part = picture.copy()
            low = [max(0, at - margin) for at, margin in zip(place, margins, strict=True)]
            high = [at + margin for at, margin in zip(place, margins, strict=True)]
            part[(slice(None), *[slice(a, b) for a, b in zip(low, high, strict=True)])] = self.pad_val
            hidden.append(part)
        found = [sure(hidden[at : at + self.n_batch]) for at in range(0, len(hidden), self.n_batch)]
        self._map = base - numpy.concatenate(found).reshape([len(each) for each in ranges])

    def eval(self):
        """The map of differences."""
        if self._map is None:
            raise EvalError(_EMPTY)
        return numpy.squeeze(self._map)
