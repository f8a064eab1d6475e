"""Writes metrics.json: what MindSpore's metrics say about fixed batches.

python metrics.py     with a Python that has mindspore 2.7.0 and numpy 1.26.4
"""

import json
from pathlib import Path

import numpy

PLACE = Path(__file__).with_name("metrics.json")


def batches(rows=7, classes=6, count=3):
    """Scores (N, C) and labels (N,), with classes that never appear."""
    random = numpy.random.RandomState(5)
    made = []
    for _ in range(count):
        scores = numpy.round(random.standard_normal((rows, classes)), 3)
        made.append((scores.tolist(), random.randint(0, classes - 1, rows).tolist()))
    return made


def flags(rows=5, classes=4, count=2):
    """Predictions and labels (N, C) of 0 and 1; some rows are equal."""
    random = numpy.random.RandomState(6)
    made = []
    for _ in range(count):
        labels = random.randint(0, 2, (rows, classes))
        predictions = numpy.where(random.rand(rows, classes) < 0.8, labels, 1 - labels)
        made.append((predictions.tolist(), labels.tolist()))
    return made


def cases():
    scored, flagged = batches(), flags()
    real = [(scores, numpy.roll(scores, 1, axis=0).tolist()) for scores, _ in scored]
    yield "Accuracy", {}, scored, {}
    yield "Accuracy", {"eval_type": "multilabel"}, flagged, {}
    yield "TopKCategoricalAccuracy", {"k": 3}, scored, {}
    yield "Top1CategoricalAccuracy", {}, scored, {}
    yield "Top5CategoricalAccuracy", {}, scored, {}
    for average in (False, True):
        yield "Precision", {}, scored, {"average": average}
        yield "Recall", {}, scored, {"average": average}
        yield "F1", {}, scored, {"average": average}
        yield "Fbeta", {"beta": 2.0}, scored, {"average": average}
    yield "MAE", {}, real, {}
    yield "MSE", {}, real, {}
    for normalize in ("no_norm", "target", "prediction", "all"):
        yield "ConfusionMatrix", {"num_classes": 6, "normalize": normalize}, scored, {}
    yield "Loss", {}, [(0.5,), (1.25,), (4.0,)], {}


def main() -> None:
    import mindspore
    from mindspore import train

    records = []
    for name, arguments, given, how in cases():
        metric = getattr(train, name)(**arguments)
        metric.clear()
        for batch in given:
            floating = [numpy.array(part, numpy.float32) for part in batch]
            if isinstance(batch[-1], list) and isinstance(batch[-1][0], int):
                floating[-1] = floating[-1].astype(numpy.int32)
            metric.update(*[mindspore.Tensor(part) for part in floating])
        value = numpy.asarray(metric.eval(**how), numpy.float64).tolist()
        records.append({"name": name, "arguments": arguments, "batches": given, "how": how, "value": value})
    PLACE.write_text(
        json.dumps(records, indent=None, separators=(",", ":")).replace('},{"name"', '},\n{"name"') + "\n"
    )


if __name__ == "__main__":
    main()
