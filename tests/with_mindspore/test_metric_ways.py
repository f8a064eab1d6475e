"""Which inputs metrics take, choose and refuse, alone and in a Model."""

import sys

import numpy as np
import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

from mindspore import Tensor, nn, train
from mindspore import dataset as ds

SCORES = np.array([[0.7, 0.3], [0.4, 0.6], [0.1, 0.9]], np.float32)
BY_CLASS = ("Accuracy", "Precision", "Recall", "F1", "Top1CategoricalAccuracy")


def counted(metric, *inputs):
    metric.clear()
    metric.update(*inputs)
    return metric.eval()


class Seen(train.Metric):
    """The means of what update is given."""

    def clear(self):
        self.seen = []

    @train.rearrange_inputs
    def update(self, *inputs):
        self.seen.append([float(np.mean(self._convert_data(each))) for each in inputs])

    def eval(self):
        return self.seen


class Outputs(nn.Cell):
    """An evaluation with three outputs."""

    def construct(self, data, label):
        return label.mean() * 0 + 1, data * 0 + 2, label * 0 + 3


def batches():
    return ds.NumpySlicesDataset((SCORES, SCORES), shuffle=False).batch(3)


@pytest.mark.parametrize("name", BY_CLASS)
def test_labels_of_the_predictions_shape_that_are_not_one_hot_are_refused(name):
    for labels in (np.ones_like(SCORES), SCORES, SCORES[0:1].repeat(3, 0)):
        with pytest.raises(ValueError, match="one-hot"):
            counted(getattr(train, name)(), SCORES, labels)


@pytest.mark.parametrize("name", BY_CLASS)
def test_one_hot_labels_count_as_their_classes(name):
    classes = np.array([0, 0, 1], np.int32)
    one_hot = np.eye(2, dtype=np.float32)[classes]
    by_class, by_row = (counted(getattr(train, name)(), SCORES, each) for each in (classes, one_hot))
    assert np.array_equal(by_class, by_row)


@pytest.mark.parametrize("name", ["acc", "precision", "top_1_accuracy", "F1"])
def test_a_model_refuses_such_labels_for_metrics_by_name_too(name):
    model = train.Model(nn.Dense(2, 2), nn.MSELoss(), metrics={name})
    with pytest.raises(ValueError, match="one-hot"):
        model.eval(batches())


def test_indexes_may_exchange_the_inputs_of_a_metric():
    labels = np.array([0, 1, 0], np.int32)
    assert counted(Seen().set_indexes([1, 0]), Tensor([1.0]), Tensor([2.0])) == [[2, 1]]
    assert counted(Seen().set_indexes([2, 0]), [1.0], [2.0], [3.0]) == [[3, 1]]
    for name in ("Accuracy", "Top1CategoricalAccuracy", "ConfusionMatrix"):
        made = [getattr(train, name)(*((2,) if name == "ConfusionMatrix" else ())) for _ in range(2)]
        turned = counted(made[0].set_indexes([1, 0]), labels, SCORES)
        assert np.array_equal(turned, counted(made[1], SCORES, labels))


def test_a_model_gives_each_metric_the_outputs_that_its_indexes_name_once():
    metrics = {"turned": Seen().set_indexes([1, 0]), "last": Seen().set_indexes([2])}
    found = train.Model(nn.ReLU(), eval_network=Outputs(), metrics=metrics).eval(batches())
    assert found == {"turned": [[2, 1]], "last": [[3]]}
    assert counted(metrics["turned"], [1.0], [2.0]) == [[2, 1]]


def test_a_metric_of_a_script_is_given_all_three_outputs_of_an_evaluation():
    class Heir(Seen):
        pass

    class Counted(train.MAE):
        pass

    metrics = {"all": Seen(), "heir": Heir(), "mae": train.MAE(), "counted": Counted(), "loss": train.Loss()}
    found = train.Model(nn.ReLU(), eval_network=Outputs(), metrics=metrics).eval(batches())
    assert found == {"all": [[1, 2, 3]], "heir": [[1, 2, 3]], "mae": 2, "counted": 2, "loss": 1}
    places = {"eval_network": Outputs(), "eval_indexes": [0, 1, 2]}
    assert train.Model(nn.ReLU(), metrics={"two": Seen()}, **places).eval(batches()) == {"two": [[2, 3]]}


def test_a_model_says_at_once_what_its_metrics_lack():
    net, loss = nn.Dense(2, 2), nn.MSELoss()
    for wrong, error in (
        ({"metrics": {"mse"}}, ValueError),
        ({"loss_fn": loss, "metrics": {"accurate"}}, KeyError),
        ({"loss_fn": loss, "metrics": {1: train.MAE()}}, TypeError),
        ({"loss_fn": loss, "metrics": {"mae": 1}}, TypeError),
        ({"eval_network": net, "metrics": {"mse"}, "eval_indexes": []}, ValueError),
    ):
        with pytest.raises(error):
            train.Model(net, **wrong)


def test_f1_gives_its_mean_by_name():
    metric = train.F1()
    metric.clear()
    metric.update(SCORES, np.array([0, 0, 1], np.int32))
    assert np.isclose(metric.eval(average=True), np.mean(metric.eval(average=False)))


def test_the_prevalence_threshold_is_one_of_the_figures():
    # Of four rows that are positive three are found, of four that are not one is taken for positive.
    predicted = np.array([[[1]], [[1]], [[1]], [[0]], [[1]], [[0]], [[0]], [[0]]])
    labels = np.array([[[1]]] * 4 + [[[0]]] * 4)
    metric = train.ConfusionMatrixMetric(metric_name="prevalence threshold")
    assert np.allclose(counted(metric, predicted, labels), (np.sqrt(0.75 * 0.25) - 0.25) / 0.5)


def test_a_curve_of_one_point_has_no_area():
    with pytest.raises(ValueError, match="two points"):
        train.auc(np.array([0.5]), np.array([0.5]))
