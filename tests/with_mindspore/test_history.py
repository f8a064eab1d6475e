"""The callback History in trainings with evaluations."""

import numpy
from mindspore import dataset, nn, train


def rows(seed):
    random = numpy.random.RandomState(seed)
    columns = (random.randn(8, 3).astype(numpy.float32), random.randint(0, 2, 8).astype(numpy.int32))
    return dataset.NumpySlicesDataset(columns, ["x", "y"], shuffle=False).batch(4)


def test_it_keeps_an_epoch_of_fit_once_and_goes_on_in_the_next_training():
    net = nn.Dense(3, 2)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    model = train.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"acc"})
    history = train.History()
    model.fit(2, rows(0), rows(1), callbacks=[history], dataset_sink_mode=False)
    assert history.epoch == {"epoch": [1, 2]}
    assert [len(history.history[name]) for name in ("net_output", "acc")] == [2, 2]
    model.train(1, rows(0), callbacks=[history], dataset_sink_mode=False)
    assert history.epoch == {"epoch": [1]}
    assert [len(history.history[name]) for name in ("net_output", "acc")] == [3, 2]
