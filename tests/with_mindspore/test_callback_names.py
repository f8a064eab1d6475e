"""The names of what a callback is told, as `keys()` gives them."""

import mindspore as ms
import mindspore.dataset as ds
import numpy
from mindspore import nn


class Names(ms.Callback):
    """Keeps the names, and reads each of them."""

    def __init__(self):
        super().__init__()
        self.train, self.eval = [], []

    def on_train_begin(self, run_context):
        self.train = self._read(run_context.original_args())

    def on_eval_begin(self, run_context):
        self.eval = self._read(run_context.original_args())

    def _read(self, told):
        names = told.keys()
        for name in names:
            told[name]
        return names


def test_each_name_that_a_callback_is_told_comes_once_and_can_be_read():
    rows = numpy.ones((4, 3), numpy.float32), numpy.zeros(4, numpy.int32)
    data = ds.NumpySlicesDataset(rows, ["x", "y"], shuffle=False).batch(2)
    net = nn.Dense(3, 2)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    model = ms.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"loss"})
    names = Names()
    model.train(1, data, callbacks=[names], dataset_sink_mode=False)
    model.eval(data, callbacks=[names], dataset_sink_mode=False)
    assert names.train.count("train_dataset") == 1
    assert len(set(names.train)) == len(names.train)
    assert names.eval and "train_dataset" not in names.eval
