"""How many rows a dataset has, where only a pass can tell, and the numbers of its passes."""

import sys

from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.dataset.callback import DSCallback
from mindspore.train import Callback, Model

_ROWS = np.arange(12, dtype=np.float32)


def _growing():
    return ds.NumpySlicesDataset(_ROWS, ["a"], shuffle=False).batch(lambda info: info.get_epoch_num() + 2)


def _lengths(data):
    return [len(row[0]) for row in data]


def test_questions_about_a_dataset_are_no_passes_over_it():
    data = _growing()
    assert (len(data), data.output_shapes(), data.output_types()) == (6, [[2]], [np.dtype(np.float32)])
    passes = data.create_tuple_iterator(num_epochs=3)
    assert _lengths(passes) == [2] * 6
    assert (len(data), data.output_shapes()) == (6, [[2]])
    assert [_lengths(passes) for _ in range(2)] == [[3] * 4, [4] * 3]


def test_each_loop_over_a_dataset_begins_with_the_first_epoch():
    data = _growing()
    assert [_lengths(data) for _ in range(2)] == [[2] * 6] * 2


def test_rows_are_counted_once():
    asked = []
    data = ds.NumpySlicesDataset(_ROWS, ["a"]).filter(lambda row: asked.append(row) or row > 4)
    assert [data.get_dataset_size(), len(data), data.dataset_size] == [7, 7, 7]
    assert len(asked) == len(_ROWS)


class _Begun(DSCallback):
    def __init__(self):
        super().__init__()
        self.calls = []

    def ds_begin(self, context):
        self.calls.append("begin")

    def ds_step_begin(self, context):
        self.calls.append(context.cur_step_num)


def test_callbacks_hear_of_passes_alone():
    callback = _Begun()
    data = ds.NumpySlicesDataset(_ROWS, ["a"], shuffle=False).map(lambda row: row, callbacks=callback)
    data = data.filter(lambda row: row > 9)
    assert (len(data), data.output_shapes(), data.output_types()[0]) == (2, [[]], np.dtype(np.float32))
    assert callback.calls == []
    assert [row[0].item() for row in data] == [10, 11]
    assert callback.calls == ["begin", *range(1, 13)]
    assert len(list(data)) == 2
    assert callback.calls == ["begin", *range(1, 13)] * 2


def test_a_training_tells_its_rows_of_its_epochs_and_its_callbacks_of_the_dataset():
    told, seen = [], []

    def changed(row, label, info):
        told.append(info.get_epoch_num())
        return row, label

    class Seen(Callback):
        def on_train_epoch_end(self, run_context):
            seen.append(run_context.original_args().train_dataset)

    rows = _ROWS.reshape(-1, 1)
    data = ds.NumpySlicesDataset((rows, rows), ["row", "label"], shuffle=False)
    data = data.batch(6, per_batch_map=changed, input_columns=["row", "label"])
    network = nn.Dense(1, 1)
    model = Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.01))
    for _ in range(2):
        model.train(2, data, callbacks=[Seen()], dataset_sink_mode=False)
    assert (told, seen) == ([0, 0, 1, 1] * 2, [data] * 4)


class _Steps(Callback):
    """The number of steps of each epoch."""

    def __init__(self):
        super().__init__()
        self.counts = []

    def on_train_epoch_begin(self, run_context):
        self.counts.append(0)

    def on_train_step_end(self, run_context):
        self.counts[-1] += 1


def _steps_of(data, epochs=3):
    steps, network = _Steps(), nn.Dense(1, 1)
    model = Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.01))
    model.train(epochs, data, callbacks=[steps], dataset_sink_mode=False)
    return steps.counts


def _pairs():
    rows = _ROWS.reshape(-1, 1)
    return ds.NumpySlicesDataset({"row": rows, "label": rows}, shuffle=False)


def test_a_training_takes_all_batches_of_a_pass_whatever_their_size_in_another():
    assert _steps_of(_pairs().batch(lambda info: info.get_epoch_num() + 2)) == [6, 4, 3]
    assert _steps_of(_pairs().batch(lambda info: 4 - info.get_epoch_num())) == [3, 4, 6]


def test_a_training_takes_the_rows_that_a_filter_keeps_in_each_pass():
    random = np.random.default_rng(1)
    counts = _steps_of(_pairs().filter(lambda row, label: random.random() < 0.5).batch(1), epochs=4)
    assert (min(counts) > 0, len(set(counts)) > 1) == (True, True)
