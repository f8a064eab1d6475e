"""The metrics say what MindSpore's say about the same batches (tests/parity/metrics.py wrote the figures)."""

import json

import numpy
import pytest
from places import ROOT

import muster
from muster import train

RECORDS = json.loads((ROOT / "tests/parity/metrics.json").read_text())


def tensors(batch):
    arrays = [numpy.asarray(part, numpy.float32) for part in batch]
    if isinstance(batch[-1], list) and isinstance(batch[-1][0], int):
        arrays[-1] = arrays[-1].astype(numpy.int32)
    return [muster.Tensor(array) for array in arrays]


def label_of(record):
    return "-".join(
        [record["name"], *map(str, record["arguments"].values()), *map(str, record["how"].values())]
    )


@pytest.mark.parametrize("record", RECORDS, ids=label_of)
def test_a_metric_agrees_with_mindspore(record):
    metric = getattr(train, record["name"])(**record["arguments"])
    metric.clear()
    for batch in record["batches"]:
        metric.update(*tensors(batch))
    numpy.testing.assert_allclose(metric.eval(**record["how"]), record["value"], rtol=1e-6, atol=1e-12)


def test_metrics_take_arrays_and_lists():
    metric = train.Accuracy()
    metric.update(numpy.array([[0.1, 0.9], [0.8, 0.2]]), [1, 1])
    assert metric.eval() == 0.5


def test_a_metric_before_its_first_update_says_so():
    with pytest.raises(ValueError, match="nothing has been counted"):
        train.Accuracy().eval()


def test_bad_arguments_list_the_choices():
    with pytest.raises(ValueError, match="'classification' or 'multilabel'"):
        train.Accuracy("regression")
    with pytest.raises(ValueError, match="no_norm"):
        train.ConfusionMatrix(3, normalize="rows")


def test_a_metric_can_be_written_in_python():
    class Rows(train.Metric):
        def __init__(self):
            super().__init__()
            self.clear()

        def clear(self):
            self.rows = 0

        def update(self, *inputs):
            self.rows += self._convert_data(inputs[0]).shape[0]

        def eval(self):
            return {"rows": self.rows}

    rows = Rows()
    rows.update(muster.Tensor(numpy.zeros((3, 2), numpy.float32)))
    assert rows.eval() == {"rows": 3}
    assert rows.set_indexes([1, 2]) is rows and rows.indexes == [1, 2]
