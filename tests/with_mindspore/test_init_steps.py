"""Passes that go on where a training was ended: Dataset.set_init_step."""

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn, ops, train


def _numbers(count, shuffle, in_python):
    data = ds.NumpySlicesDataset(np.arange(count, dtype=np.int32), shuffle=shuffle)
    if in_python:
        return data.batch(1, per_batch_map=lambda rows, info: ([each + 0 for each in rows],))
    return data.map(lambda each: each + 0, python_multiprocessing=False)


def _passes(iterator, count):
    return [[int(np.ravel(row[0])[0]) for row in iterator] for _ in range(count)]


@pytest.mark.parametrize("in_python", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_an_iterator_goes_on_behind_the_items_of_before(shuffle, in_python):
    whole = _passes(_numbers(5, shuffle, in_python).create_tuple_iterator(num_epochs=4, output_numpy=True), 4)
    data = _numbers(5, shuffle, in_python)
    data.set_init_step(8)
    assert data.repeat(1).get_init_step() == 8
    for _ in range(2):  # each iterator that is made goes on there
        iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
        assert _passes(iterator, 2) == [whole[1][3:], whole[2]]
    data.set_init_step(0)
    assert len(_passes(data.create_tuple_iterator(num_epochs=1, output_numpy=True), 1)[0]) == 5


@pytest.mark.parametrize("in_python", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("step", "epoch"), [(10, 1), (13, 1), (20, 2)])
def test_a_training_goes_on_behind_the_steps_of_before(step, epoch, shuffle, in_python):
    class Net(nn.Cell):
        def construct(self, x):
            return ops.square(x)

    class Seen(train.Callback):
        def __init__(self):
            self.outputs = []

        def on_train_step_end(self, run_context):
            self.outputs.append(int(run_context.original_args().net_outputs.asnumpy().ravel()[0]))

    def trained(data, **settings):
        seen = Seen()
        train.Model(Net()).train(3, data, callbacks=seen, dataset_sink_mode=False, **settings)
        return seen.outputs

    data = _numbers(10, shuffle, in_python)
    whole = trained(data)
    assert len(whole) == 30
    data.set_init_step(step)
    assert trained(data, initial_epoch=epoch) == whole[step:]
