"""Metrics by MindSpore's names."""

import functools

import muster.train
from mindspore import _names
from muster.train import Metric


def _call(self, *inputs):
    """Counts one batch from nothing, and gives the answer."""
    self.clear()
    self.update(*inputs)
    return self.eval()


_convert = Metric._convert_data


def _array(self, data):
    if isinstance(data, str | bytes | dict):
        raise TypeError(
            "For 'Metric' and its derived classes, the input data type must be tensor, list or "
            f"numpy.ndarray, but got {type(data)}."
        )
    return _convert(self, data)


_set_indexes = Metric.set_indexes


def _chosen(self, indexes):
    """Which of the inputs update is given."""
    if not isinstance(indexes, list) or not all(isinstance(each, int) for each in indexes):
        raise ValueError(
            "For 'set_indexes', the argument 'indexes' must be a list and all its elements must be int, "
            "please check whether it is correct."
        )
    return _set_indexes(self, indexes)


Metric.__call__, Metric._convert_data, Metric.set_indexes = _call, _array, _chosen


class _Evaluations:
    """Entered while a Model evaluates, which gives a metric the outputs that set_indexes has named."""

    running = 0

    def __enter__(self):
        _Evaluations.running += 1

    def __exit__(self, *error):
        _Evaluations.running -= 1


model_chooses = _Evaluations()


def chosen_inputs(metric, inputs):
    """Those that set_indexes has named; as many as it names are left alone where a Model has chosen them."""
    wanted = metric.indexes
    if not wanted or len(inputs) < len(wanted) or (_Evaluations.running and len(inputs) == len(wanted)):
        return inputs
    return [inputs[at] for at in wanted]


class EvalError(RuntimeError, ValueError):
    """Nothing was counted: MindSpore says RuntimeError, the library below ValueError."""


@functools.cache
def _float64():
    import numpy

    class float64(numpy.float64):  # noqa: N801 - numpy's name
        """numpy's, shown as the number alone, as numpy 1 does."""

        def __repr__(self):
            return repr(float(self))

        __str__ = __repr__

    return float64


class _Numbers:
    """Checks as MindSpore's, and numpy's float64 as the answer."""

    def update(self, *inputs):
        """Counts one batch: tensors, arrays or lists."""
        for each in inputs:
            if isinstance(each, str | bytes | dict):
                self._convert_data(each)
        super().update(*self._prepared(chosen_inputs(self, inputs)))

    def _prepared(self, inputs):
        """What muster.train's metric is given for the inputs that were chosen."""
        return inputs

    def eval(self, *average, **named):
        """The answer."""
        try:
            value = super().eval(*average, **named)
        except ValueError as error:
            raise EvalError(f"{error}: call update before eval") from None
        return _float64()(value) if isinstance(value, float) else value


class _OfClasses(_Numbers):
    """Counts what was predicted as which class: labels are classes, or one-hot."""

    _is_multilabel = False

    def _prepared(self, inputs):
        """ValueError where labels of the predictions' shape are not one-hot."""
        if len(inputs) == 2 and not self._is_multilabel:
            predicted, labels = (self._convert_data(each) for each in inputs)
            if predicted.ndim == labels.ndim and not _is_one_hot(labels):
                raise ValueError(
                    f"{type(self).__name__}.update: labels of shape {labels.shape} are not one-hot, so they "
                    f"name no class for each of the predictions {predicted.shape}"
                )
        return inputs


def _is_one_hot(labels) -> bool:
    return labels.ndim > 1 and bool((labels * labels == labels).all() and (labels.sum(1) == 1).all())


def _check_type(eval_type):
    if eval_type not in ("classification", "multilabel"):
        raise TypeError(
            f"The argument 'eval_type' must be in {{'classification', 'multilabel'}}, but got {eval_type}"
        )


class Accuracy(_OfClasses, muster.train.Accuracy):
    """The share of rows that are predicted right."""

    def __init__(self, eval_type="classification"):
        _check_type(eval_type)
        super().__init__(eval_type)
        self._is_multilabel = eval_type == "multilabel"


class _ClassShares(_OfClasses):
    """Precision and Recall: with several labels a share for each row, as MindSpore counts them."""

    def __init__(self, eval_type="classification"):
        _check_type(eval_type)
        super().__init__(eval_type)
        self._is_multilabel = eval_type == "multilabel"
        self._shares = []

    def clear(self):
        """As if nothing had been counted."""
        super().clear()
        self._shares = []

    def update(self, *inputs):
        """Counts one batch."""
        super().update(*inputs)
        if self._is_multilabel:
            import numpy

            predicted, labels = (
                numpy.asarray(self._convert_data(each)) for each in chosen_inputs(self, inputs)
            )
            classes = predicted.shape[1]
            predicted, labels = (each.swapaxes(1, 0).reshape(classes, -1) for each in (predicted, labels))
            right = (predicted * labels).sum(0)
            self._shares.append(right / (self._of(predicted, labels).sum(0) + numpy.finfo(float).eps))

    def eval(self, average=False):
        """The shares, or with `average` their mean."""
        if not self._is_multilabel or not self._shares:
            return super().eval(average)
        import numpy

        shares = numpy.concatenate(self._shares)
        return _float64()(shares.mean()) if average else shares


class Precision(_ClassShares, muster.train.Precision):
    """Of what is predicted as a class, the share that is right."""

    @staticmethod
    def _of(predicted, labels):
        return predicted


class Recall(_ClassShares, muster.train.Recall):
    """Of what is of a class, the share that is predicted so."""

    @staticmethod
    def _of(predicted, labels):
        return labels


class Fbeta(_OfClasses, muster.train.Fbeta):
    """Precision and recall in one, recall `beta` times as important."""

    def __init__(self, beta):
        if beta <= 0:
            raise ValueError(f"For 'Fbeta', the argument 'beta' must be greater than 0, but got {beta}.")
        super().__init__(beta)


class F1(_OfClasses, muster.train.F1):
    """Fbeta with beta 1."""


class MAE(_Numbers, muster.train.MAE):
    """The mean of absolute errors."""


class MSE(_Numbers, muster.train.MSE):
    """The mean of squared errors."""


class Loss(_Numbers, muster.train.Loss):
    """The mean of the batches' losses."""

    def _prepared(self, inputs):
        """The loss of a batch, or of several the mean."""
        if len(inputs) != 1:
            return inputs
        import numpy

        loss = numpy.asarray(self._convert_data(inputs[0]))
        if loss.ndim > 1:
            raise ValueError(f"For 'Loss.update', the dimension of the loss must be 1, but got {loss.ndim}.")
        return (numpy.float32(loss.mean()),) if loss.size > 1 else inputs


class TopKCategoricalAccuracy(_OfClasses, muster.train.TopKCategoricalAccuracy):
    """The share of rows whose label is among the k greatest predictions."""

    def __init__(self, k):
        if not isinstance(k, int) or isinstance(k, bool):
            raise TypeError(
                f"For 'TopKCategoricalAccuracy', the type of 'k' should be int, but got 'k' type: {type(k)}."
            )
        super().__init__(k)

    def _prepared(self, inputs):
        """One-hot labels as classes."""
        inputs = super()._prepared(inputs)
        if len(inputs) != 2:
            return inputs
        labels = self._convert_data(inputs[1])
        return inputs[0], labels.argmax(1) if labels.ndim > 1 else labels


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """TopKCategoricalAccuracy with k = 1."""

    def __init__(self):
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """TopKCategoricalAccuracy with k = 5."""

    def __init__(self):
        super().__init__(5)


class ConfusionMatrix(_Numbers, muster.train.ConfusionMatrix):
    """How often each class was predicted as each class."""

    def __init__(self, num_classes, normalize="no_norm", threshold=0.5):
        if not isinstance(num_classes, int):
            raise TypeError(
                f"The type of 'num_classes' should be 'int', but got type '{type(num_classes).__name__}'."
            )
        if not isinstance(threshold, float):
            raise TypeError(
                f"The type of 'threshold' should be 'float', but got type '{type(threshold).__name__}'."
            )
        super().__init__(num_classes, normalize or "no_norm", threshold)
        self._threshold = threshold

    def _prepared(self, inputs):
        """Scores of the labels' shape are right from the threshold on."""
        if len(inputs) != 2:
            return inputs
        predicted, labels = (self._convert_data(each) for each in inputs)
        if predicted.ndim != labels.ndim or predicted.ndim < 2:
            return inputs
        predicted = predicted if predicted.dtype.kind in "iu" else predicted >= self._threshold
        return predicted.astype("int32").flatten(), labels.astype("int32").flatten()


_CLASSES = {
    "accuracy": Accuracy,
    "acc": Accuracy,
    "loss": Loss,
    "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy,
    "topk": TopKCategoricalAccuracy,
    "precision": Precision,
    "recall": Recall,
    "F1": F1,
    "mae": MAE,
    "mse": MSE,
    "confusion_matrix": ConfusionMatrix,
}
# Those that load with their first use.
_LATER = {
    "auc": "auc",
    "bleu_score": "BleuScore",
    "confusion_matrix_metric": "ConfusionMatrixMetric",
    "cosine_similarity": "CosineSimilarity",
    "dice": "Dice",
    "hausdorff_distance": "HausdorffDistance",
    "mean_surface_distance": "MeanSurfaceDistance",
    "occlusion_sensitivity": "OcclusionSensitivity",
    "perplexity": "Perplexity",
    "roc": "ROC",
    "root_mean_square_distance": "RootMeanSquareDistance",
}
_DISTANCES = ("HausdorffDistance", "MeanSurfaceDistance", "RootMeanSquareDistance")
LATER_NAMES = {
    name: "_distances" if name in _DISTANCES else "_more_metrics" for name in sorted(_LATER.values())
}


def names():
    """The names of metrics."""
    return sorted([*_CLASSES, *_LATER])


def get_metric_fn(name, *args, **kwargs):
    """A metric by its name, made with the arguments."""
    if name in _LATER:
        return __getattr__(_LATER[name])(*args, **kwargs)
    if name not in _CLASSES:
        raise KeyError(f"unsupported metric {name!r}; there are: {', '.join(names())}")
    return _CLASSES[name](*args, **kwargs)


def get_metrics(metrics):
    """A dict of metrics, of names or of a dict of them; None where None is given."""
    if metrics is None:
        return None
    if isinstance(metrics, dict):
        for name, metric in metrics.items():
            if not isinstance(name, str):
                raise TypeError(
                    f"For 'get_metrics', the key in argument 'metrics' must be string, but got {type(name)}"
                )
            if not isinstance(metric, Metric):
                raise TypeError(f"For 'get_metrics', the value must be a Metric, but got {type(metric)}")
        return metrics
    if isinstance(metrics, set | list | tuple):
        return {name: get_metric_fn(name) for name in metrics}
    raise TypeError(f"For 'get_metrics', the argument 'metrics' must be None, dict or set, but got {metrics}")


def rearrange_inputs(func):
    """A decorator of update: gives it the inputs that set_indexes has chosen."""

    @functools.wraps(func)
    def chosen(self, *inputs):
        if isinstance(self, Metric):
            return func(self, *chosen_inputs(self, inputs))
        return func(self, *([inputs[at] for at in self.indexes] if self.indexes else inputs))

    return chosen


__all__ = [
    "F1",
    "MAE",
    "MSE",
    "Accuracy",
    "ConfusionMatrix",
    "Fbeta",
    "Loss",
    "Metric",
    "Precision",
    "Recall",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "get_metric_fn",
    "get_metrics",
    "names",
    "rearrange_inputs",
    *LATER_NAMES,
]
__getattr__ = _names.later("mindspore.train", LATER_NAMES)
